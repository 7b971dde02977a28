package trace

import (
	"bytes"

	"tidemark/reading"
)

// reading writes a reading as an element. What a reader would take for granted is
// left out; clock is the batch's.
func (o *object) reading(r *reading.Reading, clock *reading.ClockSegment) {
	o.comma()
	o.begin()
	s := r.Tag.Value()
	o.str("input", s.Input)
	o.text("device", s.Device)
	o.text("asset", s.Asset)
	o.text("lifecycle", s.Lifecycle)
	o.str("sensor", s.Sensor)
	o.text("id", r.ID)
	if r.HasSeq {
		o.uint("seq", r.Seq)
	}
	o.sourceTime(&r.Source)
	if r.ServerNS != reading.NoTime {
		o.time("server_time", r.ServerNS)
	}
	if r.IngestNS != reading.NoTime {
		o.time("ingest_time", r.IngestNS)
	}
	o.key("value")
	o.b = appendValue(o.b, r.Value)
	o.text("unit", r.Unit)
	if r.Quality.Level != reading.Good {
		o.str("quality", r.Quality.Level.String())
	}
	if r.Quality.Status != 0 {
		o.uint("quality_status", uint64(r.Quality.Status))
	}
	if r.Delivery != 0 {
		o.list("delivery", r.Delivery.Names())
	}
	o.stamp(&r.Stamp, r.Source.NS, clock)
	o.end()
}

// appendValue is Value.AppendJSON with floats that cannot be taken for integers.
func appendValue(b []byte, v reading.Value) []byte {
	from := len(b)
	b = v.AppendJSON(b)
	if v.Kind() == reading.Float && !bytes.ContainsAny(b[from:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

// sourceTime writes a number of milliseconds or RFC 3339 alone where that says
// everything; else how the time was sent, too.
func (o *object) sourceTime(t *reading.SourceTime) {
	plain := t.Fault == reading.TimeOK && t.NS != reading.NoTime && t.Zoned
	if plain && t.Unit == reading.UnitMillis && t.Raw == "" && t.NS%1e6 == 0 {
		o.int("source_time", t.NS/1e6)
		return
	}
	from := len(o.b)
	o.time("source_time", t.NS)
	if plain && t.Unit == reading.UnitNone && bytes.HasSuffix(o.b[from:], []byte(`"`+t.Raw+`"`)) && t.Raw != "" {
		return
	}
	if t.Raw == "" {
		o.null("source_time_sent")
	} else {
		o.str("source_time_sent", t.Raw)
	}
	o.text("source_time_unit", t.Unit.String())
	if !t.Zoned {
		o.bool("source_time_zoned", false)
	}
	o.text("source_time_fault", t.Fault.String())
}

// stamp writes the verdict. A reading that is accepted at its source time, with
// nothing to say about it, has an empty one.
func (o *object) stamp(s *reading.Stamp, sourceNS int64, clock *reading.ClockSegment) {
	o.open("stamp", '{')
	if s.Disposition != reading.Accept {
		o.str("disposition", s.Disposition.String())
	}
	if s.Reason != reading.OK {
		o.str("reason", s.Reason.String())
	}
	if s.Basis != reading.BasisSource {
		o.str("time_basis", s.Basis.String())
	}
	if s.Policy != reading.PolicyReject {
		o.str("policy", s.Policy.String())
	}
	if s.Flags != 0 {
		o.list("flags", s.Flags.Names())
	}
	if s.EventNS != sourceNS {
		o.time("event_time", s.EventNS)
	}
	if s.EventBound.Known() {
		o.int("event_error_ns", s.EventBound.NS())
	}
	if s.IngestBound.Known() {
		o.int("ingest_error_ns", s.IngestBound.NS())
	}
	if s.TimeQuality != 0 {
		o.uint("time_quality", uint64(s.TimeQuality))
	}
	switch {
	case s.WatermarkMS == reading.FloorMS(s.EventNS):
	case s.WatermarkMS == reading.NoTime:
		o.null("watermark")
	default:
		o.int("watermark", s.WatermarkMS)
	}
	if !same(s.Clock, clock) {
		o.clockRef("clock", s.Clock)
	}
	if s.Source != nil {
		o.uint("source_clock", s.Source.ID)
	}
	o.end()
}
