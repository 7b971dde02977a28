package windowing

import (
	"cmp"
	"slices"
	"strings"

	"tidemark/reading"
)

// keyName is what a feature's windows are kept by: asset, sensor (or group) and
// lifecycle. Names compare in the order of SEMANTICS F4, lifecycle last.
type keyName struct{ asset, sensor, lifecycle string }

func (k keyName) compare(o keyName) int {
	return cmp.Or(strings.Compare(k.asset, o.asset), strings.Compare(k.sensor, o.sensor), strings.Compare(k.lifecycle, o.lifecycle))
}

// named is a keyName with its place among all names that the engine knows, so
// that ordering compares numbers.
type named struct {
	keyName
	rank uint32
}

// key is one feature's state for one asset, lifecycle and sensor or group.
type key struct {
	feature *feature
	comb    *combiner
	cur     *window // the one that took the latest reading
	name    *named
	windows []*window    // open ones, by start
	seq     sequence     // if the feature keeps readings
	feeders []*partition // scope input with hold: the partitions that have fed it
	sensor  *sensor      // nil for a group
	// forced is the highest end of the windows that the state limit closed.
	forced int64
	serial int // place in feature.list, while a snapshot is written
}

// window is one open window of one key.
type window struct {
	key        *key
	start, end int64
	rev        uint32 // results so far (F8)
	since      uint64 // the batch that brought the first of them
	fired      bool   // its end has passed the watermark and the result is out
	dirty      bool   // something has changed since the last result
	live       bool   // … by a reading that came as it was measured
	stepped    bool   // … by one whose time of arrival an epoch correction maps (K5)
	carried    bool   // … by a reading of an earlier window alone (H4)
	touched    bool   // in Engine.touched
	closed     bool   // no longer in the state
	until      int64  // in Engine.spaced until this gateway time, NoTime if not
	corrected  int64  // gateway time of the last correction, NoTime before
	accumulator
}

// slot is the windows of one combiner that end together.
type slot struct {
	end     int64
	windows []*window
}

// firstStart is the earliest start of a window that holds t (W1, W5).
func (f *feature) firstStart(t int64) int64 {
	s := f.lastStart(t)
	if f.tumbling {
		return s
	}
	return s - (s-(t-f.def.SizeMS+1))/f.every*f.every
}

// lastStart is the latest start of a window that holds t.
func (f *feature) lastStart(t int64) int64 { return t - floorMod(t-f.def.OffsetMS, f.every) }

// nextStart is the earliest start after t.
func (f *feature) nextStart(t int64) int64 { return f.lastStart(t) + f.every }

// window returns the key's open window of that start, making it.
func (k *key) window(start int64) *window {
	i := len(k.windows)
	for i > 0 && k.windows[i-1].start >= start {
		i--
		if k.windows[i].start == start {
			return k.windows[i]
		}
	}
	f := k.feature
	w := &window{key: k, start: start, end: start + f.def.SizeMS, corrected: reading.NoTime, until: reading.NoTime}
	if f.need.sum {
		w.sum.limbs = w.room[:0]
	}
	k.windows = slices.Insert(k.windows, i, w)
	k.comb.put(w)
	f.engine.open++
	return w
}

// find returns the key's open window of that start, or nil.
func (k *key) find(start int64) *window {
	for i := len(k.windows) - 1; i >= 0 && k.windows[i].start >= start; i-- {
		if k.windows[i].start == start {
			return k.windows[i]
		}
	}
	return nil
}

// partial reports whether the window straddles the generation's birth.
func (w *window) partial() bool {
	floor := w.key.feature.engine.config.FloorMS
	return floor != reading.NoTime && w.start < floor && floor < w.end
}

// put has w wait for the combined watermark.
func (c *combiner) put(w *window) {
	c.open++
	i := len(c.slots)
	for i > 0 && c.slots[i-1].end >= w.end {
		i--
		if c.slots[i].end == w.end {
			c.slots[i].windows = append(c.slots[i].windows, w)
			return
		}
	}
	c.slots = slices.Insert(c.slots, i, slot{end: w.end, windows: []*window{w}})
}

// release forgets a closed window, but for its place in the combiner's slots.
func (k *key) release(w *window) {
	w.closed = true
	k.comb.open--
	k.feature.engine.open--
	if k.cur == w {
		k.cur = nil
	}
	if i := slices.Index(k.windows, w); i >= 0 {
		k.windows = slices.Delete(k.windows, i, i+1)
	}
}

// sweep drops closed windows from the combiner's slots.
func (c *combiner) sweep() {
	kept := c.slots[:0]
	for _, s := range c.slots {
		s.windows = slices.DeleteFunc(s.windows, func(w *window) bool { return w.closed })
		if len(s.windows) > 0 {
			kept = append(kept, s)
		}
	}
	clear(c.slots[len(kept):])
	c.slots = kept
}

// fate is what becomes of a reading in one of its windows.
func (k *key) fate(r *reading.Reading, t, end int64) Reason {
	e := k.feature.engine
	switch {
	case t < e.config.FloorMS && r.Stamp.Policy != reading.PolicyTrusted:
		return ReasonBeforeGeneration
	case end <= k.feature.retiredEnd:
		return ReasonRetired
	case end-1 <= k.comb.closed:
		return ReasonWindowClosed
	case end <= k.forced:
		return ReasonStateLimit
	}
	return ReasonNone
}

// limit fires and closes the oldest windows when there are more than allowed, and
// a sixteenth more, so that it is not done again at once.
func (e *Engine) limit() {
	most := e.config.MaxOpenWindows
	if most == 0 || e.open <= most {
		return
	}
	e.rank()
	windows := e.openWindows()
	for _, w := range windows[:min(len(windows), e.open-most+most/16)] {
		if (w.dirty || !w.fired) && w.says() {
			e.result(w, CauseStateLimit)
		}
		w.key.forced = max(w.key.forced, w.end)
		e.closing(w, ReasonStateLimit)
		w.key.prune()
	}
	for _, f := range e.features {
		for _, c := range f.combiners() {
			c.sweep()
		}
	}
}

// openWindows lists the open windows of all features in their order.
func (e *Engine) openWindows() []*window {
	list := make([]*window, 0, e.open)
	for _, f := range e.features {
		for _, k := range f.list {
			list = append(list, k.windows...)
		}
	}
	slices.SortFunc(list, compareWindows)
	return list
}
