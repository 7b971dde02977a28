package windowing

import (
	"slices"

	"tidemark/reading"
)

// watchFlush notes from when on the combiner's windows are to be flushed: when all
// partitions have been idle for flush_after (I6).
func (c *combiner) watchFlush() {
	f := c.feature
	if f.def.FlushAfterMS == 0 {
		c.flushAt = never
		return
	}
	since := reading.NoTime
	for _, p := range c.parts {
		if !p.idle {
			c.flushAt = never
			return
		}
		if p.since == reading.NoTime {
			p.since = f.engine.now
		}
		since = max(since, p.since)
	}
	if since == reading.NoTime || c.flushAt != never {
		return
	}
	c.flushAt = since + f.def.FlushAfterMS
	f.flushes.push(c.flushAt, c)
}

// nextFlush returns the gateway time of the next idle flush.
func (f *feature) nextFlush() int64 {
	for d := f.flushes.first(); d != nil; d = f.flushes.first() {
		if d.item.flushAt == d.at && d.item.open > 0 {
			return d.at
		}
		f.flushes.pop()
	}
	return never
}

// flush gives the results of rule I6.
func (e *Engine) flush() {
	var some []*window
	for _, f := range e.features {
		for d := f.flushes.first(); d != nil && d.at <= e.now; d = f.flushes.first() {
			c := f.flushes.pop()
			if c.flushAt != d.at {
				continue
			}
			for _, s := range c.slots {
				for _, w := range s.windows {
					if w.dirty && w.readings() > 0 {
						some = append(some, w)
					}
				}
			}
		}
	}
	if len(some) == 0 {
		return
	}
	e.rank()
	slices.SortFunc(some, compareWindows)
	for _, w := range some {
		e.result(w, CauseIdleFlush)
	}
}
