package windowing

import "tidemark/reading"

// lookAhead finds the routes of a batch's readings some at a time, and touches what
// hangs on them. With many sensors nearly every look waits for memory; so many of them
// in a row wait side by side, those of one reading stepped after the other do not. At
// 100,000 sensors it halves the time of a reading.
type lookAhead struct {
	routes  [ahead]*route  // of the readings ahead, by their number
	windows [ahead]*window // likewise: where they will probably go
	found   int            // readings whose route has been looked up
	touched uint64         // a sum of what was touched, so that it is not left out
}

const ahead = 16

// route returns the route of reading i, nil if it has none. It makes nothing: what
// comes into being does so in the order of the readings.
func (l *lookAhead) route(e *Engine, readings []reading.Reading, i int) *route {
	if i == l.found {
		l.look(e, readings[i:min(i+ahead, len(readings))])
	}
	return l.routes[i%ahead]
}

func (l *lookAhead) look(e *Engine, readings []reading.Reading) {
	l.found += len(readings)
	for i := range readings {
		l.routes[i] = e.routes.Get(readings[i].Tag)
	}
	for i, rt := range l.routes[:len(readings)] {
		l.windows[i] = nil
		if rt == nil {
			continue
		}
		if n := len(rt.sensor.ids.groups); n > 0 {
			t := &rt.sensor.ids.groups[n-1].table
			l.touched += t.fresh[t.n]
		}
		if len(rt.ends) > 0 && rt.ends[0].k != nil {
			l.windows[i] = rt.ends[0].k.cur
		}
	}
	for _, w := range l.windows[:len(readings)] {
		if w != nil { // one word of every cache line
			l.touched += uint64(w.start) + w.good + w.room[0] + w.low.bits + w.gaps.bits[len(w.gaps.bits)-1] + uint64(w.maxBound)
		}
	}
}
