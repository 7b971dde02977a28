package windowing

import (
	"cmp"
	"slices"
)

// dueEvent is a first result or a closing that a watermark has reached.
type dueEvent struct {
	due, end int64
	rest     uint64 // what decides after them: closing, rank of the key's name, feature
	w        *window
}

const closingBit = 1 << 63

func (w *window) event(due int64) dueEvent {
	return dueEvent{due: due, end: w.end, rest: uint64(w.key.name.rank)<<32 | uint64(w.key.feature.index), w: w}
}

// resultEvent is the event of the window's first result.
func (w *window) resultEvent() dueEvent { return w.event(w.end - 1) }

// closingEvent is the event of the window's closing.
func (w *window) closingEvent() dueEvent {
	d := w.event(w.end - 1 + w.key.feature.def.AllowedLatenessMS)
	d.rest |= closingBit
	return d
}

// closes reports whether the watermark has reached the window's closing.
func (w *window) closes() bool {
	return w.end-1+w.key.feature.def.AllowedLatenessMS <= w.key.comb.wm
}

func (d *dueEvent) closing() bool { return d.rest&closingBit != 0 }

// compareDue is the order of F4: due time, window end, a result before a closing,
// then asset, sensor, lifecycle, feature.
func compareDue(a, b dueEvent) int {
	if a.due != b.due {
		return cmp.Compare(a.due, b.due)
	}
	if a.end != b.end {
		return cmp.Compare(a.end, b.end)
	}
	return cmp.Compare(a.rest, b.rest)
}

// retake takes the minimum anew where it may have changed, says the new
// watermarks, and runs what fell due.
func (e *Engine) retake() {
	e.advanced = e.advanced[:0]
	for _, f := range e.features {
		for _, c := range f.urgent {
			c.queued, c.urgent = false, false
			c.watchFlush()
			if low := c.minimum(); low > c.wm {
				c.wm = low
				e.advanced = append(e.advanced, c)
			}
		}
		clear(f.urgent)
		f.urgent = f.urgent[:0]
	}
	for _, c := range e.advanced {
		if c.key == nil {
			e.emit(Emission{Kind: EmitWatermark, Feature: c.feature.def.ID, WatermarkMS: c.wm})
		}
	}
	e.fall()
	clear(e.advanced)
}

// fall runs what fell due in the combiners that advanced (F4, F6).
func (e *Engine) fall() {
	e.rank()
	e.collect()
	if n := len(e.results) + len(e.closings); n > 0 {
		e.out.Emissions = slices.Grow(e.out.Emissions, n)
		e.values = slices.Grow(e.values, e.statistics())
		results, closings := e.results, e.closings
		for len(results)+len(closings) > 0 {
			next := &results
			if len(results) == 0 || len(closings) > 0 && compareDue(closings[0], results[0]) < 0 {
				next = &closings
			}
			d := &(*next)[0]
			*next = (*next)[1:]
			e.runChain(d)
			e.runDue(d)
		}
		e.runChain(nil)
	}
	for _, c := range e.advanced {
		c.closeBehind()
	}
	clear(e.results)
	clear(e.closings)
}

// statistics is how many statistics the due results have.
func (e *Engine) statistics() int {
	n := 0
	for i := range e.results {
		n += len(e.results[i].w.key.feature.funcs)
	}
	if e.config.Finals {
		for i := range e.closings {
			n += len(e.closings[i].w.key.feature.funcs)
		}
	}
	return n
}

// collect lists in order what the watermarks have reached. Windows that are to
// give a result and to close, as most are after a long jump, are sorted once: their
// closings come in the order of their results.
func (e *Engine) collect() {
	e.results, e.closings = e.results[:0], e.closings[:0]
	for _, c := range e.advanced {
		for _, s := range c.reached() {
			e.results = slices.Grow(e.results, len(s.windows))
			for _, w := range s.windows {
				if !w.fired {
					e.results = append(e.results, w.resultEvent())
				} else if w.closes() {
					e.closings = append(e.closings, w.closingEvent())
				}
			}
		}
	}
	slices.SortFunc(e.results, compareDue)
	e.closings = slices.Grow(e.closings, len(e.results))
	for i := range e.results {
		if w := e.results[i].w; w.closes() {
			e.closings = append(e.closings, w.closingEvent())
		}
	}
	slices.SortFunc(e.closings, compareDue)
}

// reached lists the slots whose end the combiner's watermark has passed.
func (c *combiner) reached() []slot {
	n := 0
	for n < len(c.slots) && c.slots[n].end-1 <= c.wm {
		n++
	}
	return c.slots[:n]
}

// runChain runs the events of windows that came into being during the jump and
// are due before the given event; all of them if it is nil.
func (e *Engine) runChain(before *dueEvent) {
	for d := e.chain.first(); d != nil; d = e.chain.first() {
		if before != nil && d.at > before.due {
			return
		}
		next := e.takeChained(d.at)
		e.runDue(&next)
	}
}

// takeChained takes the first of the events of that due time.
func (e *Engine) takeChained(at int64) dueEvent {
	best := 0
	for i, d := range e.chain.entries {
		if d.at == at && compareDue(d.item, e.chain.entries[best].item) < 0 {
			best = i
		}
	}
	item := e.chain.entries[best].item
	if best == 0 {
		e.chain.pop()
		return item
	}
	e.chain.entries[best].item = e.chain.entries[0].item
	e.chain.pop()
	return item
}

func (e *Engine) runDue(d *dueEvent) {
	w := d.w
	switch {
	case w.closed:
	case d.closing():
		e.close(w, ReasonNone)
	case !w.fired:
		w.fired = true
		if w.says() {
			e.result(w, CauseWatermark)
		}
		if n := w.key.follow(w); n != nil {
			e.chainIn(n)
		}
	}
}

// chainIn schedules a window that came into being during the jump.
func (e *Engine) chainIn(w *window) {
	c := w.key.comb
	if w.end-1 > c.wm {
		return
	}
	e.rank()
	e.chain.push(w.end-1, w.resultEvent())
	if w.closes() {
		d := w.closingEvent()
		e.chain.push(d.due, d)
	}
}

// closeBehind settles what is closed for good after a jump.
func (c *combiner) closeBehind() {
	c.closed = max(c.closed, c.wm-c.feature.def.AllowedLatenessMS)
	n := 0
	for n < len(c.slots) && c.slots[n].end-1 <= c.closed {
		if c.feature.need.samples {
			for _, w := range c.slots[n].windows {
				w.key.prune()
			}
		}
		n++
	}
	c.slots = slices.Delete(c.slots, 0, n)
}

// says reports whether the window has something to say: readings, a result before,
// held time (H2), or emit_empty.
func (w *window) says() bool {
	return w.readings() > 0 || w.rev > 0 || w.key.feature.def.EmitEmpty || w.key.heldInto(w.start)
}

// close gives the correction that is still due (F7), then closes the window (L2).
func (e *Engine) close(w *window, reason Reason) {
	if w.dirty && w.fired {
		e.result(w, w.cause())
	}
	e.closing(w, reason)
}

func (e *Engine) closing(w *window, reason Reason) {
	k := w.key
	if w.rev > 0 || w.readings() > 0 {
		m := e.about(w, EmitClosed)
		m.Reason = reason
		if e.config.Finals && w.rev > 0 && !w.dirty {
			m.Final, m.Cause = true, CauseWatermark
			if reason == ReasonStateLimit {
				m.Cause = CauseStateLimit
			}
			e.describe(w, &m)
		}
		e.emit(m)
	}
	k.release(w)
}
