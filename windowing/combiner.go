package windowing

import (
	"slices"

	"tidemark/reading"
)

// combiner takes the minimum over the partitions of one key, or in scope input of
// one feature, and holds the windows that wait for it.
type combiner struct {
	feature *feature
	key     *key // nil in scope input
	parts   []*partition

	wm int64 // combined watermark, never falls (C1)
	// closed is the highest wm − lateness there was: windows whose last
	// millisecond is at or below it are closed, also after the lateness grew.
	closed int64
	slots  []slot // by end
	open   int    // windows in the slots

	queued  bool  // in feature.stale
	urgent  bool  // in feature.urgent
	flushAt int64 // gateway time from which its windows are to be flushed, never unless all partitions are idle
	inFlush bool  // in feature.flushes at flushAt
	inputs  InputSummary
	summed  bool // inputs is up to date
}

func newCombiner(f *feature, k *key) *combiner {
	return &combiner{feature: f, key: k, wm: reading.NoTime, closed: reading.NoTime, flushAt: never}
}

// attach makes p one of the combiner's partitions.
func (c *combiner) attach(p *partition) {
	if slices.Contains(c.parts, p) {
		return
	}
	c.parts = append(c.parts, p)
	p.combiners = append(p.combiners, c)
	c.feature.retakeLater(c)
	c.changed()
}

func (c *combiner) detach(p *partition) {
	c.parts = slices.DeleteFunc(c.parts, func(q *partition) bool { return q == p })
	c.feature.retakeLater(c)
	c.changed()
}

// changed is called when a partition's status or watermark changed.
func (c *combiner) changed() { c.summed = false }

// minimum returns the lowest watermark of the active partitions that are not
// stalled (C3, C10); NoTime if there is none or one is at minus infinity (C2, C9).
func (c *combiner) minimum() int64 {
	floor := c.stallFloor()
	low, any := never, false
	for _, p := range c.parts {
		if p.idle || p.stalled(floor) {
			continue
		}
		low, any = min(low, p.wm), true
	}
	if !any {
		return reading.NoTime
	}
	return low
}

// stallFloor is the watermark below which an active partition is stalled.
func (c *combiner) stallFloor() int64 {
	high := reading.NoTime
	if lag := c.feature.def.MaxLagMS; lag > 0 {
		for _, p := range c.parts {
			if !p.idle {
				high = max(high, p.wm)
			}
		}
		if high != reading.NoTime {
			return high - lag
		}
	}
	return high
}

func (p *partition) stalled(floor int64) bool {
	return floor != reading.NoTime && p.wm != reading.NoTime && p.wm < floor && !p.catchUp
}

// summary names the partitions by status, those furthest behind first.
func (c *combiner) summary() InputSummary {
	if c.summed {
		return c.inputs
	}
	floor := c.stallFloor()
	byLag := slices.Clone(c.parts)
	slices.SortFunc(byLag, comparePartitions)
	var s InputSummary
	for _, p := range byLag {
		switch {
		case p.idle:
			s.IdleCount++
			s.Idle = appendName(s.Idle, p)
		case p.stalled(floor):
			s.StalledCount++
			s.Stalled = appendName(s.Stalled, p)
		default:
			s.ActiveCount++
			s.Active = appendName(s.Active, p)
		}
	}
	c.inputs, c.summed = s, true
	return s
}

// maxNames is how many partitions a summary names of each status.
const maxNames = 8

func appendName(names []string, p *partition) []string {
	if len(names) == maxNames {
		return names
	}
	return append(names, p.name())
}

func (p *partition) name() string {
	switch p.feature.def.Scope {
	case ScopeDevice:
		return p.input + "/" + p.device
	case ScopeSensor:
		return p.input + "/" + p.asset + "/" + p.sensor
	}
	return p.input
}
