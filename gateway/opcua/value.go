package opcua

import (
	"time"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// take appends to p what a DataValue of an item says: a reading, or one for each
// element of an array and each field of a structure, or a reject where there is
// no value for it. at is its arrival.
//
// The server's absent fields look like zero; only dv.EncodingMask tells.
func (it *item) take(dv *ua.DataValue, at reading.Instant, delivery reading.Delivery, p *reading.Parcel) {
	r := reading.Reading{
		Unit: it.unit, Quality: quality(dv), Source: sourceTime(dv), ServerNS: serverTime(dv), IngestNS: at.WallNS, Delivery: delivery,
		Stamp: reading.Stamp{Clock: at.Segment},
	}
	it.next = 0
	if !dv.Has(ua.DataValueValue) || dv.Value == nil || dv.Value.Value() == nil {
		it.absent(&r, p)
		return
	}
	v := dv.Value.Value()
	if value, ok := scalar(v); ok && len(value.Text()) <= maxText {
		it.give(nil, value, &r, p)
		return
	}
	f := flattener{it: it, r: r, p: p}
	f.flatten(v, 0)
}

// give appends the reading r of the part of the value at path.
func (it *item) give(path []byte, v reading.Value, r *reading.Reading, p *reading.Parcel) {
	since := r.IngestNS
	if r.Source.Given() {
		since = r.Source.NS
	}
	p.Readings = append(p.Readings, *r)
	last := &p.Readings[len(p.Readings)-1]
	last.Tag, last.Value = it.part(path).tags.At(since), v
	if v.Kind() == reading.Missing {
		last.Quality.Level = reading.Bad
	}
}

// absent says of everything that the node has ever said that it is not there.
func (it *item) absent(r *reading.Reading, p *reading.Parcel) {
	if len(it.parts) == 0 {
		it.give(nil, reading.Value{}, r, p)
		return
	}
	for i := range it.parts {
		it.give([]byte(it.parts[i].path), reading.Value{}, r, p)
	}
}

// part is one sensor of a node: its value, or a part of it.
type part struct {
	path string // below the node's value; empty: all of it
	tags reading.Tags
}

func (it *item) part(path []byte) *part {
	// Parts come in the same order every time.
	if it.next < len(it.parts) && it.parts[it.next].path == string(path) {
		it.next++
		return &it.parts[it.next-1]
	}
	for i := range it.parts {
		if it.parts[i].path == string(path) {
			it.next = i + 1
			return &it.parts[i]
		}
	}
	series := it.series
	series.Sensor += string(path)
	it.parts = append(it.parts, part{string(path), reading.TagsOf(series, it.lifecycles)})
	it.next = len(it.parts)
	return &it.parts[it.next-1]
}

// quality is the level by the severity of the status code (OPC UA Part 4 §7.39),
// with the code as sent: overflow and limit bits don't make a good value bad.
func quality(dv *ua.DataValue) reading.Quality {
	if !dv.Has(ua.DataValueStatusCode) {
		return reading.Quality{} // absent is good (Part 6 §5.2.2.17)
	}
	q := reading.Quality{Status: uint32(dv.Status)}
	switch severity(dv.Status) {
	case good:
		q.Level = reading.Good
	case uncertain:
		q.Level = reading.Uncertain
	default:
		q.Level = reading.Bad
	}
	return q
}

func sourceTime(dv *ua.DataValue) reading.SourceTime {
	if !dv.Has(ua.DataValueSourceTimestamp) || dv.SourceTimestamp.IsZero() {
		return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeNull} // 0 is 1601, and null
	}
	if latest(dv.SourceTimestamp) {
		return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeRange, Raw: "9999-12-31T23:59:59Z"}
	}
	ns, rest := finer(dv.SourceTimestamp, dv.SourcePicoseconds, dv.Has(ua.DataValueSourcePicoseconds))
	t := reading.SourceTime{NS: ns, Zoned: true}
	if rest {
		t.Raw = dv.SourceTimestamp.Format("2006-01-02T15:04:05.0000000") + digits(dv.SourcePicoseconds) + "Z"
	}
	return t
}

func serverTime(dv *ua.DataValue) int64 {
	if !dv.Has(ua.DataValueServerTimestamp) || dv.ServerTimestamp.IsZero() || latest(dv.ServerTimestamp) {
		return reading.NoTime
	}
	ns, _ := finer(dv.ServerTimestamp, dv.ServerPicoseconds, dv.Has(ua.DataValueServerPicoseconds))
	return ns
}

// picoMax is the greatest count of 10 ps in the 100 ns of a DateTime; what is
// above counts as it (Part 4 §7.7.4).
const picoMax = 9999

// finer adds a DataValue's picoseconds, which count 10 ps each, to its time, and
// reports whether a part below the nanosecond is left out.
func finer(t time.Time, pico uint16, given bool) (ns int64, rest bool) {
	ns = t.UnixNano()
	if !given {
		return ns, false
	}
	pico = min(pico, picoMax)
	return ns + int64(pico/100), pico%100 != 0
}

// digits are the decimals of a time below 100 ns, to 10 ps.
func digits(pico uint16) string {
	pico = min(pico, picoMax)
	return string([]byte{'0' + byte(pico/1000), '0' + byte(pico/100%10), '0' + byte(pico/10%10), '0' + byte(pico%10)})
}

// latest reports whether t is what the library makes of the two spellings of "the
// end of time" (Part 6 §5.2.2.5), 9999-12-31 and the largest tick: it reads what
// does not fit into int64 nanoseconds modulo 2^64. Other such times, 585 years
// from the true one, fall to the rules for times that cannot be.
func latest(t time.Time) bool {
	const end, endFraction, largest = -4852116232933722624, -4852116231933722724, 6802270473709551516
	ns := t.UnixNano()
	return ns >= end && ns <= endFraction || ns == largest
}
