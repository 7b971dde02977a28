package trace

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"tidemark/reading"
)

// moment is a time as read: RFC 3339, or whole milliseconds since 1970.
type moment struct {
	ms   int64 // rounded down
	ns   int64 // beyond ms, below 1e6
	far  bool  // beyond int64 milliseconds
	text []byte
	zone bool // text is RFC 3339, else the number
}

func parseMoment(field string, t token) (m moment, err error) {
	switch {
	case t == nil:
		return m, missing(field)
	case t[0] == '"':
		m, err = parseRFC3339(field, t)
	case t[0] == '-' || t[0] >= '0' && t[0] <= '9':
		m, err = parseMillis(field, t)
	default:
		err = fmt.Errorf("%s cannot be %s: write RFC 3339, or milliseconds since 1970", field, t.kind())
	}
	return m, err
}

func parseRFC3339(field string, t token) (moment, error) {
	text, err := t.text(field)
	if err != nil {
		return moment{}, err
	}
	var at time.Time
	if err := at.UnmarshalText(text); err != nil {
		return moment{}, fmt.Errorf("%s %s is no RFC 3339 time, such as 2026-01-01T12:00:10.5Z", field, quote(text))
	}
	return moment{ms: at.UnixMilli(), ns: int64(at.Nanosecond() % 1e6), text: text, zone: true}, nil
}

// parseMillis takes whole numbers however they are spelled: 1000, 1000.0, 1e3.
func parseMillis(field string, t token) (moment, error) {
	ms, err := strconv.ParseInt(string(t), 10, 64)
	if err == nil {
		return moment{ms: ms, text: t, far: ms == reading.NoTime}, nil
	}
	f, err := strconv.ParseFloat(string(t), 64)
	switch {
	case err != nil || math.Abs(f) >= 1<<63:
		return moment{text: t, far: true}, nil
	case f != math.Trunc(f):
		return moment{}, fmt.Errorf("%s %s is no whole number of milliseconds", field, quote(t))
	}
	return moment{ms: int64(f), text: t}, nil
}

// nanos returns the time in nanoseconds, and whether int64 holds it.
func (m *moment) nanos() (int64, bool) {
	first, last := reading.FloorMS(math.MinInt64+1), reading.FloorMS(math.MaxInt64)
	switch {
	case m.far || m.ms < first || m.ms > last:
		return reading.NoTime, false
	case m.ms == first && first*1e6+m.ns > 0, m.ms == last && last*1e6+m.ns < 0: // wrapped
		return reading.NoTime, false
	}
	ns := m.ms*1e6 + m.ns
	return ns, ns != reading.NoTime
}

// millis reads a time of the trace in milliseconds, rounded down.
func millis(field string, t token) (int64, error) {
	m, err := parseMoment(field, t)
	if err == nil && m.far {
		err = fmt.Errorf("%s %s is out of range: it must fit into 64 bits", field, quote(m.text))
	}
	return m.ms, err
}

// readTime reads the source's time. One that int64 nanoseconds cannot hold has
// the fault TimeRange. Where the trace says how the time was sent, that stands;
// then there need not be a time.
func (s *sample) readTime() (t reading.SourceTime, err error) {
	if s.sent {
		return s.timeAsSent()
	}
	m, err := parseMoment("source_time", s.sourceTime)
	if err != nil {
		return t, err
	}
	ns, ok := m.nanos()
	t = reading.SourceTime{NS: ns, Zoned: true, Unit: reading.UnitMillis}
	if m.zone {
		t.Unit, t.Raw = reading.UnitNone, string(m.text)
	}
	if !ok {
		t.Fault, t.Raw = reading.TimeRange, string(m.text)
	}
	return t, nil
}

func (s *sample) timeAsSent() (t reading.SourceTime, err error) {
	t.Zoned = true
	for _, err := range [...]error{
		enum("source_time_unit", s.timeUnit, reading.UnitNanos, reading.TimeUnit.String, &t.Unit),
		enum("source_time_fault", s.timeFault, reading.TimeRange, reading.TimeFault.String, &t.Fault),
		truth("source_time_zoned", s.timeZoned, &t.Zoned),
	} {
		if err != nil {
			return t, err
		}
	}
	raw, err := s.timeSent.text("source_time_sent")
	if err != nil {
		return t, err
	}
	t.Raw = string(raw)
	t.NS, err = instant("source_time", s.sourceTime)
	return t, err
}

// instant reads a time to the nanosecond; null is none.
func instant(field string, t token) (int64, error) {
	if t == nil {
		return reading.NoTime, nil
	}
	m, err := parseMoment(field, t)
	if err != nil {
		return 0, err
	}
	ns, ok := m.nanos()
	if !ok {
		return 0, fmt.Errorf("%s %s is out of range: it must lie between 1677-09-21 and 2262-04-11", field, quote(m.text))
	}
	return ns, nil
}

// signed reads a whole number; a missing one leaves to as it is.
func signed[T ~int | ~int16 | ~int64](field string, t token, to *T) error {
	if t == nil {
		return nil
	}
	n, err := strconv.ParseInt(string(t), 10, 64)
	if err != nil || int64(T(n)) != n {
		return fmt.Errorf("%s %s is no whole number, or too large", field, quote(t))
	}
	*to = T(n)
	return nil
}

// unsigned is signed for what is never negative.
func unsigned[T ~uint8 | ~uint32 | ~uint64](field string, t token, to *T) error {
	if t == nil {
		return nil
	}
	n, err := strconv.ParseUint(string(t), 10, 64)
	if err != nil || uint64(T(n)) != n {
		return fmt.Errorf("%s %s is no whole number from 0 to %d", field, quote(t), uint64(^T(0)))
	}
	*to = T(n)
	return nil
}

func truth(field string, t token, to *bool) error {
	switch {
	case t == nil:
	case t[0] == 't' || t[0] == 'f':
		*to = t[0] == 't'
	default:
		return fmt.Errorf("%s cannot be %s", field, t.kind())
	}
	return nil
}

// value reads a number, a boolean, a string or null.
func value(t token) (reading.Value, error) {
	if t == nil {
		return reading.Value{}, nil
	}
	switch t[0] {
	case 't', 'f':
		return reading.BoolValue(t[0] == 't'), nil
	case '"':
		text, err := t.text("value")
		return reading.TextValue(string(text)), err
	case '[', '{':
		return reading.Value{}, fmt.Errorf("value cannot be %s", t.kind())
	}
	return number(t)
}

// number keeps integers of up to 64 bits exact; larger ones are floats.
func number(t token) (reading.Value, error) {
	if !bytes.ContainsAny(t, ".eE") {
		if i, err := strconv.ParseInt(string(t), 10, 64); err == nil {
			return reading.IntValue(i), nil
		}
		if u, err := strconv.ParseUint(string(t), 10, 64); err == nil {
			return reading.UintValue(u), nil
		}
	}
	f, err := strconv.ParseFloat(string(t), 64)
	if err != nil {
		return reading.Value{}, fmt.Errorf("value %s is beyond every float", quote(t))
	}
	return reading.FloatValue(f), nil
}

func level(t token) (reading.Level, error) {
	text, err := t.text("quality")
	if err != nil || len(text) == 0 {
		return reading.Good, err
	}
	l, ok := reading.ParseLevel(string(text))
	if !ok {
		return l, fmt.Errorf("unknown quality %s: it is good, uncertain or bad", quote(text))
	}
	return l, nil
}

// quote shows the beginning of what stands in the trace.
func quote(b []byte) string {
	const most = 60
	if len(b) > most {
		return strconv.Quote(string(b[:most]) + "…")
	}
	return strconv.Quote(string(b))
}
