package trace

import (
	"strconv"

	"tidemark/reading"
)

// object builds one JSON object, members in the order in which they are given.
// Names are constants of this package and need no escaping.
type object struct{ b []byte }

func (o *object) begin() { o.b = append(o.b, '{') }
func (o *object) end()   { o.b = append(o.b, '}') }

// comma separates a value from the one before it, if there is one.
func (o *object) comma() {
	if last := o.b[len(o.b)-1]; last != '{' && last != '[' {
		o.b = append(o.b, ',')
	}
}

func (o *object) key(name string) {
	o.comma()
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

// open starts a member that is an object ('{') or an array ('[').
func (o *object) open(name string, bracket byte) {
	o.key(name)
	o.b = append(o.b, bracket)
}

func (o *object) close() { o.b = append(o.b, ']') }

func (o *object) str(name, v string) {
	o.key(name)
	o.b = reading.AppendJSONString(o.b, v)
}

// text is str, left out where it is empty.
func (o *object) text(name, v string) {
	if v != "" {
		o.str(name, v)
	}
}

func (o *object) int(name string, v int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) uint(name string, v uint64) {
	o.key(name)
	o.b = strconv.AppendUint(o.b, v, 10)
}

func (o *object) bool(name string, v bool) {
	o.key(name)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) null(name string) {
	o.key(name)
	o.b = append(o.b, "null"...)
}

// time writes nanoseconds as RFC 3339, null for NoTime.
func (o *object) time(name string, ns int64) {
	o.key(name)
	o.b = reading.AppendJSONTime(o.b, ns)
}

func (o *object) list(name string, some []string) {
	o.open(name, '[')
	for _, s := range some {
		o.comma()
		o.b = reading.AppendJSONString(o.b, s)
	}
	o.close()
}
