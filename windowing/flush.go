package windowing

import (
	"slices"

	"tidemark/reading"
)

// watchFlush notes from when on the combiner's windows are to be flushed: when all
// partitions have been idle for flush_after (I6).
func (c *combiner) watchFlush() {
	at := never
	if since := c.idleSince(); c.feature.def.FlushAfterMS > 0 && since != reading.NoTime {
		at = since + c.feature.def.FlushAfterMS
	}
	if at == c.flushAt {
		return
	}
	c.flushAt, c.inFlush = at, false
	if at != never {
		c.flushLater()
	}
}

// idleSince is the gateway time from which all partitions have been idle, NoTime
// if not all are.
func (c *combiner) idleSince() int64 {
	since := reading.NoTime
	for _, p := range c.parts {
		if !p.idle {
			return reading.NoTime
		}
		if p.since == reading.NoTime {
			p.since = c.feature.engine.now
		}
		since = max(since, p.since)
	}
	return since
}

// flushLater has the flush happen at its time. It is called again when a window
// takes a reading after that.
func (c *combiner) flushLater() {
	if !c.inFlush {
		c.inFlush = true
		c.feature.flushes.push(c.flushAt, c)
	}
}

// nextFlush returns the gateway time of the next idle flush. One of a combiner
// that has no window at the moment counts: to drop it here would make what is
// waited for a matter of the heap's order, which a restart changes.
func (f *feature) nextFlush() int64 {
	for d := f.flushes.first(); d != nil; d = f.flushes.first() {
		if c := d.item; c.flushAt == d.at && c.inFlush {
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
			at := d.at
			c := f.flushes.pop()
			if c.flushAt != at || !c.inFlush {
				continue
			}
			c.inFlush = false
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
