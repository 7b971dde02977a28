package uplink

import (
	"strconv"

	"tidemark/reading"
)

// object builds one JSON object, members in the order in which they are given.
// Names are constants of this package and need no escaping.
type object struct{ b []byte }

// key starts a member.
func (o *object) key(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *object) open(name string) {
	o.key(name)
	o.b = append(o.b, '{')
}

func (o *object) end() { o.b = append(o.b, '}') }

func (o *object) null(name string) {
	o.key(name)
	o.b = append(o.b, "null"...)
}

func (o *object) str(name, v string) {
	o.key(name)
	o.b = reading.AppendJSONString(o.b, v)
}

// text is str, with null for nothing.
func (o *object) text(name, v string) {
	if v == "" {
		o.null(name)
		return
	}
	o.str(name, v)
}

func (o *object) int(name string, v int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) uint(name string, v uint64) {
	o.key(name)
	o.b = strconv.AppendUint(o.b, v, 10)
}

// count is int, with null for a negative count: not known.
func (o *object) count(name string, v int64) {
	if v < 0 {
		o.null(name)
		return
	}
	o.int(name, v)
}

func (o *object) bool(name string, v bool) {
	o.key(name)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) float(name string, v float64) {
	o.key(name)
	o.b = reading.AppendJSONFloat(o.b, v)
}

func (o *object) value(name string, v reading.Value) {
	o.key(name)
	o.b = v.AppendJSON(o.b)
}

// time is a moment in Unix nanoseconds, null for none.
func (o *object) time(name string, ns int64) {
	o.key(name)
	o.b = reading.AppendJSONTime(o.b, ns)
}

// timeMS is a moment in Unix milliseconds, null for none.
func (o *object) timeMS(name string, ms int64) {
	o.key(name)
	o.b = reading.AppendJSONTimeMS(o.b, ms)
}

// hash is a definition's or a tuning's hash, eight hex digits.
func (o *object) hash(name string, v uint32) {
	o.key(name)
	o.b = append(o.b, '"')
	for shift := 28; shift >= 0; shift -= 4 {
		o.b = append(o.b, hexDigits[v>>shift&15])
	}
	o.b = append(o.b, '"')
}

// millis is a length of time in milliseconds with all its digits, down to the
// nanosecond.
func (o *object) millis(name string, ns int64) {
	o.key(name)
	o.b = appendMillis(o.b, ns)
}

// bound is an error bound in milliseconds, null if none is known.
func (o *object) bound(name string, v reading.Bound) {
	if !v.Known() {
		o.null(name)
		return
	}
	o.millis(name, v.NS())
}

// clockState is the member in which every record says what vouches for its times.
func (o *object) clockState(s reading.ClockState) {
	o.open("clock")
	o.str("state", s.String())
	o.end()
}

// list is an array of strings, never null.
func (o *object) list(name string, vs []string) {
	o.key(name)
	o.b = append(o.b, '[')
	for i, v := range vs {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = reading.AppendJSONString(o.b, v)
	}
	o.b = append(o.b, ']')
}

const hexDigits = "0123456789abcdef"

// appendMillis writes nanoseconds as decimal milliseconds: no float is between,
// so a bound is never printed smaller than it is.
func appendMillis(b []byte, ns int64) []byte {
	u := uint64(ns)
	if ns < 0 {
		b = append(b, '-')
		u = -u
	}
	b = strconv.AppendUint(b, u/1e6, 10)
	frac := u % 1e6
	if frac == 0 {
		return b
	}
	b = append(b, '.')
	for div := uint64(1e5); frac > 0; div /= 10 {
		b = append(b, byte('0'+frac/div))
		frac %= div
	}
	return b
}
