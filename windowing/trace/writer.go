package trace

import (
	"fmt"

	"tidemark/reading"
	"tidemark/windowing"
)

// Writer writes journal blocks as operations: read back and stepped through an
// engine, they give the same emissions, byte for byte. Text that is no UTF-8,
// which JSON cannot carry, comes back with U+FFFD in it.
//
// It remembers what it has said of clocks, so one Writer is for one trace. The
// zero Writer is ready.
type Writer struct {
	clocks  told[reading.ClockSegment]
	sources told[reading.SourceSegment]
	clock   *reading.ClockSegment // of the last clock operation
}

// AppendBatch appends the operations of one block, a line each: clock, for every
// clock segment that has not been told of, then batch. It fails only on a
// configuration that this release cannot read.
func (w *Writer) AppendBatch(dst []byte, b *reading.Batch) ([]byte, error) {
	o := object{dst}
	for i := range b.Readings {
		w.tell(&o, &b.Readings[i].Stamp)
	}
	w.tellClock(&o, b.Clock)
	o.begin()
	o.str("op", "batch")
	if b.Seq != 0 {
		o.uint("seq", b.Seq)
	}
	if err := o.config(b.Config); err != nil {
		return dst, fmt.Errorf("block %d: %w", b.Seq, err)
	}
	if b.GatewayMS != reading.NoTime {
		o.int("time", b.GatewayMS)
	}
	if b.Emit != (b.GatewayMS != reading.NoTime) {
		o.bool("emit", b.Emit)
	}
	if b.WallNS != 0 {
		o.time("wall_time", b.WallNS)
	}
	if !same(b.Clock, w.clock) {
		o.clockRef("clock", b.Clock)
	}
	o.marks(b.Marks)
	o.open("readings", '[')
	for i := range b.Readings {
		o.reading(&b.Readings[i], b.Clock)
	}
	o.close()
	o.end()
	return append(o.b, '\n'), nil
}

// tell writes what the stamp refers to, unless that has been told.
func (w *Writer) tell(o *object, s *reading.Stamp) {
	w.tellClock(o, s.Clock)
	if s.Source == nil || !w.sources.news(s.Source.ID, s.Source) {
		return
	}
	o.begin()
	o.str("op", "clock")
	o.uint("source", s.Source.ID)
	o.str("verdict", s.Source.Verdict.String())
	o.int("offset_min_ns", s.Source.LoNS)
	o.int("offset_max_ns", s.Source.HiNS)
	if s.Source.ZoneMin != 0 {
		o.int("zone_minutes", int64(s.Source.ZoneMin))
	}
	o.end()
	o.b = append(o.b, '\n')
}

func (w *Writer) tellClock(o *object, s *reading.ClockSegment) {
	if s == nil || !w.clocks.news(s.ID, s) {
		return
	}
	w.clock = s
	o.begin()
	o.str("op", "clock")
	o.uint("segment", s.ID)
	o.str("state", s.State.String())
	o.str("method", s.Method.String())
	o.bool("traceable", s.Traceable)
	o.uint("servers", uint64(s.Servers))
	o.uint("epoch", uint64(s.Epoch))
	o.str("boot", fmt.Sprintf("%016x", s.Boot))
	o.int("error_ns", s.E0NS)
	o.int("rho_ppb", s.RhoPPB)
	o.int("start_boot_ns", s.StartBootNS)
	o.int("start_gateway_ms", s.StartGatewayMS)
	o.int("wall_minus_boot_ns", s.WallMinusBootNS)
	o.end()
	o.b = append(o.b, '\n')
}

func same(a, b *reading.ClockSegment) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// clockRef names a segment that has been told of.
func (o *object) clockRef(name string, s *reading.ClockSegment) {
	if s == nil {
		o.null(name)
		return
	}
	o.uint(name, s.ID)
}

// config writes an encoded configuration as a member.
func (o *object) config(encoded []byte) error {
	if encoded == nil {
		return nil
	}
	c, err := windowing.DecodeConfig(encoded)
	if err != nil {
		return err
	}
	o.key("config")
	o.b = appendConfig(o.b, c)
	return nil
}

func (o *object) marks(marks []reading.Mark) {
	if len(marks) == 0 {
		return
	}
	o.open("marks", '[')
	for i := range marks {
		m := &marks[i]
		o.comma()
		o.begin()
		evidence := m.Kind == reading.MarkActive && m.TimeMS != reading.NoTime
		switch {
		case evidence:
			o.str("op", "evidence")
		case int(m.Kind) < len(markNames):
			o.str("op", markNames[m.Kind])
		}
		if m.At != 0 {
			o.int("at", int64(m.At))
		}
		o.str("input", m.Input)
		o.text("device", m.Device)
		o.text("asset", m.Asset)
		o.text("sensor", m.Sensor)
		switch {
		case m.Kind == reading.MarkCatchUpBegin:
			o.str("state", "begin")
		case m.Kind == reading.MarkCatchUpEnd:
			o.str("state", "end")
		case m.Kind == reading.MarkIdle && m.TimeMS != reading.NoTime:
			o.int("held_until", m.TimeMS)
		case m.Kind == reading.MarkWatermark, evidence:
			o.int("time", m.TimeMS)
		}
		o.end()
	}
	o.close()
}
