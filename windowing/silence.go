package windowing

import (
	"slices"

	"tidemark/reading"
)

// A sensor is silent when nothing came from it for longer than its alarm_after
// although its input is alive: by gateway time, and by the input's evidence of
// life rather than that of a partition, which in a scope of its own would be as
// silent as the sensor. While the input is silent too nothing is said, and once
// it speaks again its sensors have their alarm_after anew.

// alive notes evidence of life of an input.
func (e *Engine) alive(in *input) {
	in.seen = e.now
	if len(in.quiet) == 0 {
		return
	}
	for _, s := range in.quiet {
		s.quiet, s.returned = false, e.now
		e.arm(s)
	}
	in.quiet = nil
}

func (e *Engine) inputAlive(name string) { e.alive(e.input(name)) }

// speaks notes a sign of life of a sensor.
func (e *Engine) speaks(s *sensor, in *input) {
	if s.silent {
		s.silent = false
		e.emit(e.silence(s, EmitResumed))
	}
	s.seen = e.now
	if s.input != in {
		s.moves(in)
	}
	if s.alarm > 0 && !s.armed {
		e.arm(s)
	}
}

// moves notes that another input brings the sensor's readings now.
func (s *sensor) moves(in *input) {
	if s.quiet {
		s.quiet = false
		s.input.quiet = slices.DeleteFunc(s.input.quiet, func(x *sensor) bool { return x == s })
	}
	s.input = in
}

// silentAt is the gateway time at which the sensor has been silent for too long.
func (s *sensor) silentAt() int64 { return max(s.seen, s.returned) + s.alarm + 1 }

// arm watches for the sensor's silence.
func (e *Engine) arm(s *sensor) {
	if s.alarm == 0 || s.silent || s.seen == reading.NoTime {
		return
	}
	s.armed = true
	e.alarms.push(s.silentAt(), s)
}

// silences says which sensors have fallen silent.
func (e *Engine) silences() {
	var silent []*sensor
	for d := e.alarms.first(); d != nil && d.at <= e.now; d = e.alarms.first() {
		s := d.item
		if at := s.silentAt(); at > e.now {
			e.alarms.postpone(at)
			continue
		}
		e.alarms.pop()
		s.armed = false
		switch {
		case s.silent || s.alarm == 0:
		case e.now-s.input.seen > s.alarm:
			s.quiet = true
			s.input.quiet = append(s.input.quiet, s)
		default:
			s.silent = true
			silent = append(silent, s)
		}
	}
	slices.SortFunc(silent, func(a, b *sensor) int { return a.name.compare(b.name) })
	for _, s := range silent {
		e.emit(e.silence(s, EmitSilent))
	}
}

func (e *Engine) silence(s *sensor, kind EmissionKind) Emission {
	return Emission{
		Kind: kind, Asset: s.name.asset, Lifecycle: s.name.lifecycle, Sensor: s.name.sensor,
		StartMS: s.lastMS, WatermarkMS: reading.NoTime, QuietMS: e.now - s.seen,
		Clock: ClockSummary{State: e.clock}, MaterializedNS: e.wall,
	}
}

// nextSilence returns the gateway time at which the next sensor may fall silent.
func (e *Engine) nextSilence() int64 {
	for d := e.alarms.first(); d != nil; d = e.alarms.first() {
		s := d.item
		switch at := s.silentAt(); {
		case s.silent || s.alarm == 0:
			e.alarms.pop()
			s.armed = false
		case at > d.at:
			e.alarms.postpone(at)
		default:
			return d.at
		}
	}
	return never
}
