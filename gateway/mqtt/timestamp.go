package mqtt

import (
	"math"
	"math/bits"
	"strings"
	"time"

	"tidemark/reading"
)

// sourceTime reads a timestamp. A number has the declared unit and a text is RFC
// 3339; where a unit is declared, a text may hold the number. Nothing that is
// kept points into v.
func sourceTime(v field, unit reading.TimeUnit) reading.SourceTime {
	switch v.kind {
	case numeric:
		return numericTime(v.text, unit)
	case wording:
		if v.text == "" {
			return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeNull}
		}
		if ns, zoned, fault := parseRFC3339(v.text); fault != reading.TimeUnparseable {
			return reading.SourceTime{NS: ns, Fault: fault, Zoned: zoned, Raw: clip(v.text)}
		}
		if unit != reading.UnitNone {
			if t := numericTime(v.text, unit); t.Fault == reading.TimeOK {
				t.Raw = clip(v.text)
				return t
			}
		}
		return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeUnparseable, Raw: clip(v.text)}
	case null:
		return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeNull}
	}
	return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeUnparseable, Raw: clip(v.raw())}
}

// inZone takes a time that named no zone as one of loc; nil is UTC. Where a clock
// is set back the hour that comes twice is the first one.
func inZone(t reading.SourceTime, loc *time.Location) reading.SourceTime {
	if loc == nil || t.Zoned || !t.Given() {
		return t
	}
	u := time.Unix(0, t.NS).UTC()
	at := time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), u.Second(), u.Nanosecond(), loc)
	if first := at.Add(-time.Hour); first.Hour() == at.Hour() {
		at = first
	}
	t.NS = at.UnixNano()
	return t
}

// clip copies the beginning of s, so that a hostile timestamp stays small.
func clip(s string) string { return strings.Clone(s[:min(len(s), 64)]) }

func numericTime(raw string, unit reading.TimeUnit) reading.SourceTime {
	t := reading.SourceTime{NS: reading.NoTime, Zoned: true, Unit: unit}
	d, ok := parseDecimal(raw)
	if !ok || unit == reading.UnitNone {
		t.Fault, t.Zoned, t.Raw = reading.TimeUnparseable, false, clip(raw)
		return t
	}
	ns, ok := d.whole(unit)
	if !ok {
		ns, ok = d.scaled(unitPower[unit])
	}
	if !ok {
		t.Fault, t.Raw = reading.TimeRange, clip(raw)
		return t
	}
	t.NS = ns
	if d.exp != 0 || len(raw) > 0 && (raw[0] == '+' || raw == "-0") {
		t.Raw = clip(raw)
	}
	return t
}

// unitPower is the power of ten of a unit in nanoseconds.
var unitPower = [...]int{reading.UnitSeconds: 9, reading.UnitMillis: 6, reading.UnitMicros: 3, reading.UnitNanos: 0}

// decimal is a number as written: ±digits·10^exp. Digits beyond what uint64 holds
// are cut off.
type decimal struct {
	neg    bool
	digits uint64
	exp    int
	full   bool // no further digit fits
	cut    bool // digits other than 0 were cut off
}

// parseDecimal reads a JSON number, exactly. It returns false for anything else.
func parseDecimal(s string) (d decimal, ok bool) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		d.neg = s[i] == '-'
		i++
	}
	start := i
	i = d.take(s, i, 1)
	n := i - start
	if i < len(s) && s[i] == '.' {
		end := d.take(s, i+1, 0)
		n += end - i - 1
		i = end
	}
	if n == 0 {
		return d, false
	}
	if i == len(s) {
		return d, true
	}
	if s[i] != 'e' && s[i] != 'E' {
		return d, false
	}
	return d.exponent(s[i+1:])
}

// take reads digits from s[i:]; whole is 1 before the decimal point and 0 behind.
func (d *decimal) take(s string, i, whole int) int {
	// As long as another digit surely fits there is no need to look.
	for ; i < len(s) && '0' <= s[i] && s[i] <= '9' && d.digits < math.MaxUint64/100; i++ {
		d.digits = d.digits*10 + uint64(s[i]-'0')
		d.exp += whole - 1
	}
	for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		c := uint64(s[i] - '0')
		hi, lo := bits.Mul64(d.digits, 10)
		sum, carry := bits.Add64(lo, c, 0)
		if d.full || hi+carry != 0 {
			d.full = true
			d.cut = d.cut || c != 0
			d.exp += whole
			continue
		}
		d.digits = sum
		d.exp += whole - 1
	}
	return i
}

func (d *decimal) exponent(s string) (decimal, bool) {
	neg := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg, s = s[0] == '-', s[1:]
	}
	if s == "" {
		return *d, false
	}
	e := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return *d, false
		}
		e = min(e*10+int(s[i]-'0'), 1<<20)
	}
	if neg {
		e = -e
	}
	d.exp += e
	return *d, true
}

// whole returns a whole number of units in nanoseconds, where nothing is to be
// rounded and int64 holds it: what nearly all devices send.
func (d decimal) whole(unit reading.TimeUnit) (int64, bool) {
	hi, lo := bits.Mul64(d.digits, uint64(unit.Nanos()))
	return int64(lo), d.exp == 0 && !d.neg && !d.full && hi == 0 && lo <= math.MaxInt64
}

// scaled returns d·10^power floored to an integer, and whether int64 holds it.
func (d decimal) scaled(power int) (int64, bool) {
	u, rest := d.digits, d.cut
	e := d.exp + power
	for ; e > 0 && u != 0; e-- {
		hi, lo := bits.Mul64(u, 10)
		if hi != 0 {
			return 0, false
		}
		u = lo
	}
	for ; e < 0 && u != 0; e++ {
		rest = rest || u%10 != 0
		u /= 10
	}
	if !d.neg {
		return int64(u), u <= math.MaxInt64
	}
	if rest {
		u++ // towards the past
	}
	return -int64(u), u <= math.MaxInt64
}

// parseRFC3339 reads a date and a time of day; a space may stand for the T and
// the zone may be missing, in which case the time is read as UTC. Digits beyond
// nanoseconds are cut off. The fault is TimeUnparseable, TimeRange or none.
func parseRFC3339(s string) (ns int64, zoned bool, fault reading.TimeFault) {
	const bad = reading.TimeUnparseable
	if len(s) < len("2006-01-02T15:04:05") || s[4] != '-' || s[7] != '-' || s[13] != ':' || s[16] != ':' ||
		s[10] != 'T' && s[10] != 't' && s[10] != ' ' {
		return reading.NoTime, false, bad
	}
	year, month, day := number(s[0:4]), number(s[5:7]), number(s[8:10])
	hour, minute, second := number(s[11:13]), number(s[14:16]), number(s[17:19])
	if year < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(month, year) ||
		hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return reading.NoTime, false, bad
	}
	frac, rest, ok := fraction(s[19:])
	if !ok {
		return reading.NoTime, false, bad
	}
	offset, zoned, ok := zone(rest)
	if !ok {
		return reading.NoTime, false, bad
	}
	sec := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC).Unix() - int64(offset)
	if sec <= math.MinInt64/1_000_000_000 || sec >= math.MaxInt64/1_000_000_000 {
		return reading.NoTime, zoned, reading.TimeRange
	}
	return sec*1e9 + frac, zoned, reading.TimeOK
}

// number reads digits; -1 if there is anything else.
func number(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

func daysIn(month, year int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// fraction reads a fraction of a second, if there is one, in nanoseconds.
func fraction(s string) (ns int64, rest string, ok bool) {
	if s == "" || s[0] != '.' && s[0] != ',' {
		return 0, s, true
	}
	i := 1
	for unit := int64(1e8); i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		ns += int64(s[i]-'0') * unit
		unit /= 10
	}
	return ns, s[i:], i > 1
}

// zone reads Z, ±hh:mm or ±hhmm, in seconds east of UTC; nothing is no zone.
func zone(s string) (seconds int, zoned, ok bool) {
	switch {
	case s == "":
		return 0, false, true
	case s == "Z" || s == "z":
		return 0, true, true
	case s[0] != '+' && s[0] != '-':
		return 0, false, false
	}
	var h, m int
	switch {
	case len(s) == 6 && s[3] == ':':
		h, m = number(s[1:3]), number(s[4:6])
	case len(s) == 5:
		h, m = number(s[1:3]), number(s[3:5])
	default:
		return 0, false, false
	}
	if h < 0 || h > 23 || m < 0 || m > 59 {
		return 0, false, false
	}
	if s[0] == '-' {
		return -(h*3600 + m*60), true, true
	}
	return h*3600 + m*60, true, true
}
