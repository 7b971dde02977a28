package clock

import (
	"time"

	"tidemark/reading"
)

// stream is the history of one series: what its timestamps did.
type stream struct {
	source *sourceClock
	lastNS int64 // timestamp of the reading before, or NoTime

	run     int   // readings in a row with lastNS
	since   int64 // CLOCK_BOOTTIME of the run's first
	value   reading.Value
	changed bool

	resolution int // index into resolutions

	counter    counter
	hasCounter bool
	slopeIsOne bool
	seenNS     int64

	keptOut reading.Reason // why the last live reading is in quarantine; OK if it is not
	outRun  uint8          // live readings in a row that are
}

// waitsAfter readings in a row in quarantine make a series one that waits; fewer are
// glitches.
const waitsAfter = 3

// judged notes the verdict of a live reading.
func (s *stream) judged(v *Verdict) {
	if v.Disposition != reading.Quarantine {
		s.keptOut, s.outRun = reading.OK, 0
		return
	}
	s.keptOut, s.outRun = v.Reason, min(s.outRun, waitsAfter-1)+1
}

// waits returns the reason for which the series waits, OK if it does not.
func (s *stream) waits() reading.Reason {
	if s.outRun < waitsAfter {
		return reading.OK
	}
	return s.keptOut
}

// resolutions are those that timestamps come in, coarsest first. A stream has the
// coarsest that divides all its timestamps.
var resolutions = [...]int64{
	int64(time.Minute), int64(10 * time.Second), int64(time.Second),
	int64(100 * time.Millisecond), int64(10 * time.Millisecond), int64(time.Millisecond), 0,
}

// counter is a small number that may count seconds since a device's start.
type counter struct {
	first, last float64
	boot        int64
	n           int
}

// observe takes in a live reading and says what the ones before say about it.
// tolerable tells that its time agrees with the gateway's.
func (s *stream) observe(r *reading.Reading, n Number, boot int64, ordered, tolerable bool, dCap int64) History {
	h := History{PrevNS: reading.NoTime}
	s.count(n, boot, dCap)
	h.CounterSlopeOne = s.slopeIsOne
	if !r.Source.Given() {
		return h
	}
	ts := r.Source.NS
	if ordered && !tolerable {
		h.Ordered, h.PrevNS = true, s.lastNS // a clock that was set back to right is an event, no fault
	}
	for s.resolution < len(resolutions)-1 && ts%resolutions[s.resolution] != 0 {
		s.resolution++
	}
	if ts == s.lastNS {
		s.run++
		s.changed = s.changed || r.Value != s.value
	} else {
		s.run, s.since, s.value, s.changed = 1, boot, r.Value, false
	}
	s.lastNS = ts
	h.SameTimeRun, h.ValueChanged, h.ResolutionNS = s.run, s.changed, resolutions[s.resolution]
	h.StandstillNS, h.HasStandstill = boot-s.since, true
	return h
}

// count follows a number that is no time: it is an uptime counter if it grows
// with gateway time, slope 1 ± 0.01. Its own resolution and the time that
// messages travel blur the slope over short spans.
func (s *stream) count(n Number, boot, dCap int64) {
	unit := float64(n.Unit.Nanos())
	if !n.Sent || !n.Whole || n.in(n.Unit) >= sentinelBelow {
		s.hasCounter, s.slopeIsOne = false, false
		return
	}
	c := &s.counter
	if !s.hasCounter || n.Float < c.last {
		*c, s.hasCounter, s.slopeIsOne = counter{first: n.Float, last: n.Float, boot: boot, n: 1}, true, false
		return
	}
	c.last = n.Float
	c.n++
	span := float64(boot - c.boot)
	if c.n < 3 || span < 2e9 {
		return
	}
	slope := (n.Float - c.first) * unit / span
	slack := min(0.01+(2*unit+float64(dCap))/span, 0.5)
	s.slopeIsOne = slope > 1-slack && slope < 1+slack
}
