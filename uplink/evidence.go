package uplink

import (
	"strconv"

	"tidemark/reading"
	"tidemark/windowing"
)

// late renders a reading that came after its window was closed, once per window.
func (w *emissionWriter) late() {
	r := w.e.Reading
	w.origin(r)
	w.windowKey()
	if s := r.Tag.Value().Sensor; s != w.e.Sensor {
		w.str("member", s) // of the group that the window belongs to
	}
	w.str("reason", w.e.Reason.String())
	w.reading(r)
	w.timeMS("watermark", w.e.WatermarkMS)
}

// quarantine renders a reading that the clock rules keep out.
func (w *emissionWriter) quarantine() {
	r := w.e.Reading
	w.origin(r)
	s := r.Tag.Value()
	w.name("asset", s.Asset)
	w.name("lifecycle", s.Lifecycle)
	w.str("sensor", s.Sensor)
	w.str("reason", r.Stamp.Reason.String())
	w.reading(r)
}

// duplicate renders a reading that was there already.
func (w *emissionWriter) duplicate() {
	r := w.e.Reading
	w.origin(r)
	s := r.Tag.Value()
	w.name("asset", s.Asset)
	w.name("lifecycle", s.Lifecycle)
	w.str("sensor", s.Sensor)
	if w.e.Conflict {
		w.bool("conflict", true)
	}
	w.reading(r)
}

// reading renders a reading as the journal has it.
func (c *Encoder) reading(m *Message, r *reading.Reading) {
	s := r.Tag.Value()
	h := c.newID(m.memo.room[:0], typeRaw)
	h.reading(r)
	m.memo.room = h.b
	m.Topic = c.topic(typeRaw, s.Asset, s.Sensor)
	m.head = head{kind: typeRaw, updateID: h.sum(), clock: stampClock(r)}
	o := object{append(m.Payload, '{')}
	c.head(&o, &m.head)
	w := emissionWriter{object: &o, upstream: true}
	w.origin(r)
	w.str("asset", s.Asset)
	w.str("lifecycle", s.Lifecycle)
	w.str("sensor", s.Sensor)
	w.reading(r)
	o.end()
	m.Payload = o.b
}

func (w *emissionWriter) origin(r *reading.Reading) {
	s := r.Tag.Value()
	w.str("input", s.Input)
	w.name("device", s.Device)
}

// reading renders the whole reading: identity, times as sent, as read and as
// judged, value, quality, and what vouches for its times.
func (w *emissionWriter) reading(r *reading.Reading) {
	w.identity(r)
	w.sourceTime(&r.Source)
	if w.upstream || r.ServerNS != reading.NoTime {
		w.time("server_time", r.ServerNS)
	}
	w.moment("ingest_time", r.IngestNS)
	if w.upstream {
		w.bound("ingest_error_ms", r.Stamp.IngestBound)
		w.time("event_time", r.Stamp.EventNS)
		w.bound("event_error_ms", r.Stamp.EventBound)
		w.str("time_basis", r.Stamp.Basis.String())
		w.uint("time_quality", uint64(r.Stamp.TimeQuality))
	}
	w.value("value", r.Value)
	w.name("unit", r.Unit)
	w.str("quality", r.Quality.Level.String())
	if w.upstream {
		w.uint("quality_status", uint64(r.Quality.Status))
		w.list("delivery", r.Delivery.Names())
		w.list("flags", r.Stamp.Flags.Names())
		w.str("policy", r.Stamp.Policy.String())
		w.clockSegment(r.Stamp.Clock)
		w.sourceSegment(r.Stamp.Source)
	}
}

func (w *emissionWriter) identity(r *reading.Reading) {
	switch {
	case r.ID != "":
		w.str("id", r.ID)
	case w.upstream:
		w.null("id")
	}
	switch {
	case r.HasSeq:
		w.uint("seq", r.Seq)
	case w.upstream:
		w.null("seq")
	}
}

// sourceTime writes the time as read and, upstream, as sent. A replay writes it as
// sent where that is all there is to judge by: in quarantine.
func (w *emissionWriter) sourceTime(t *reading.SourceTime) {
	w.moment("source_time", t.NS)
	if !w.upstream {
		if w.e.Kind == windowing.EmitQuarantine && (t.Raw != "" || t.Given()) {
			w.timeSent(t)
		}
		return
	}
	w.timeSent(t)
	w.text("source_time_unit", t.Unit.String())
	w.bool("source_time_zoned", t.Zoned)
	w.text("source_time_fault", t.Fault.String())
}

// timeSent writes a source time as sent: text as a string, a number in its
// declared unit, and a binary timestamp as RFC 3339.
func (w *emissionWriter) timeSent(t *reading.SourceTime) {
	w.key("source_time_sent")
	switch {
	case t.Raw != "":
		w.b = reading.AppendJSONString(w.b, t.Raw)
	case !t.Given():
		w.b = append(w.b, "null"...)
	case t.Unit != reading.UnitNone:
		w.b = strconv.AppendInt(w.b, t.NS/t.Unit.Nanos(), 10)
	default:
		w.b = reading.AppendJSONTime(w.b, t.NS)
	}
}

// clockSegment says what vouched for the gateway's clock at arrival.
func (w *emissionWriter) clockSegment(s *reading.ClockSegment) {
	if s == nil {
		s = &reading.ClockSegment{}
	}
	w.open("clock")
	w.str("state", s.State.String())
	w.uint("segment", s.ID)
	w.uint("epoch", uint64(s.Epoch))
	w.str("method", s.Method.String())
	w.bool("traceable", s.Traceable)
	w.uint("servers", uint64(s.Servers))
	w.end()
}

// sourceSegment says what was known of the source's clock; null if it was not
// measured. Offsets are source − gateway.
func (w *emissionWriter) sourceSegment(s *reading.SourceSegment) {
	if s == nil {
		w.null("source_clock")
		return
	}
	w.open("source_clock")
	w.uint("segment", s.ID)
	w.str("verdict", s.Verdict.String())
	w.millis("offset_min_ms", s.LoNS)
	w.millis("offset_max_ms", s.HiNS)
	w.int("zone_minutes", int64(s.ZoneMin))
	w.end()
}

// isReading reports whether an emission carries a whole reading.
func isReading(k windowing.EmissionKind) bool {
	return k == windowing.EmitLate || k == windowing.EmitDuplicate || k == windowing.EmitQuarantine
}
