package disorder

import "tidemark/reading"

// Gauge measures one stream as it comes: how far each reading is behind the highest
// event time before it, and how long it was on its way. The zero value is ready.
type Gauge struct {
	highMS          int64
	seen            bool
	disorder, delay histogram
}

// Add measures the next reading to arrive. One whose verdict is not to accept it
// moves nothing.
func (g *Gauge) Add(r *reading.Reading) {
	if !r.Stamp.Disposition.Accepted() {
		return
	}
	event := reading.FloorMS(r.Stamp.EventNS)
	if !g.seen || event > g.highMS {
		g.highMS, g.seen = event, true
	}
	g.disorder.add(g.highMS - event)
	if delay, timed := delayMS(r); timed {
		g.delay.add(delay)
	}
}

// Summary returns what was measured, nil where nothing was.
func (g *Gauge) Summary() (disorder, delay *Summary) {
	return g.disorder.summary(), g.delay.summary()
}
