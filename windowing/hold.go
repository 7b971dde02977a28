package windowing

import (
	"slices"

	"tidemark/reading"
)

// keep adds the sample to the key's kept readings, if the feature needs them;
// windowed says that it belongs to a window, else it only is what later windows
// carry in (H3, H4).
func (k *key) keep(s *sample, windowed bool) {
	f := k.feature
	if !f.need.samples || !windowed && f.holdNS == 0 {
		return
	}
	m := meta(s.kind)
	if s.bad || f.def.GoodOnly && s.level != reading.Good {
		m |= metaBreak
	}
	if !windowed {
		m |= metaCarry
	}
	id := ""
	if f.need.order {
		id = s.r.ID
	}
	at := k.seq.insert(s.ns, s.bits, m, id)
	if f.holdNS == 0 {
		return
	}
	if windowed && at == k.seq.len()-1 && f.lastStart(s.ms)+f.def.SizeMS-1 > k.comb.wm && !k.hasSiblings() {
		return // the windows after it follow when its own fires
	}
	k.carryChanged(at)
	k.endSiblings(at)
	k.prune()
}

func (k *key) hasSiblings() bool {
	return len(k.feature.siblings[[2]string{k.name.asset, k.name.sensor}]) > 1
}

// carryIn takes an initial reading: it sets the carry-in and nothing else (H3).
func (rt *route) carryIn(r *reading.Reading, t int64) {
	s := newSample(r, t)
	for i := range rt.ends {
		n := &rt.ends[i]
		if n.selected && n.f.holdNS > 0 && n.f.def.Select.Type.Takes(r.Value.Kind()) && !n.f.def.Excludes(r.Stamp.EventBound) {
			n.key(rt).keep(&s, false)
		}
	}
}

// carryChanged lets the windows follow that reading at carries into or no longer
// does (H2, H4): those that have fired are corrected, one that now has held time
// comes into being. The windows after the first that has not fired follow when it
// fires.
func (k *key) carryChanged(at int) {
	f := k.feature
	ns, until := k.seq.kept.ns(at), never
	if at+1 < k.seq.len() {
		until = k.seq.kept.ns(at + 1)
	}
	carries := func(start int64) bool { return ns < start*1e6 && start*1e6 <= until && start*1e6-ns < f.holdNS }
	for _, w := range k.windows {
		if w.fired && carries(w.start) {
			k.correctHeld(w)
		}
	}
	start := k.comb.skip(f.nextStart(reading.FloorMS(ns)))
	if k.comb.closed != reading.NoTime {
		start = max(start, f.firstStart(k.comb.closed+1))
	}
	for ; carries(start) && start <= f.hi; start += f.every {
		ahead := start+f.def.SizeMS-1 > k.comb.wm
		if k.mayOpen(start) && k.find(start) == nil && k.heldInto(start) {
			if w := k.window(start); !ahead {
				k.correctHeld(w)
			}
		}
		if ahead {
			return
		}
	}
}

// mayOpen reports whether a window without readings may come into being there.
func (k *key) mayOpen(start int64) bool {
	end := start + k.feature.def.SizeMS
	return end-1 > k.comb.closed && end > k.forced && end > k.feature.retiredEnd && end > k.feature.engine.config.FloorMS
}

// heldInto reports whether the window that starts there carries a value in (H1).
func (k *key) heldInto(start int64) bool {
	i := k.seq.from(start*1e6) - 1
	return i >= 0 && k.feature.holdNS > 0 && k.seq.metaAt(i)&metaBreak == 0 && start*1e6-k.seq.kept.ns(i) < k.feature.holdNS
}

// maxEmpties is how many windows without readings one jump of the watermark gives
// per key; of more the last stand and the others are left out.
const maxEmpties = 1024

// skip returns the start itself, or the first one that maxEmpties allows.
func (c *combiner) skip(start int64) int64 {
	every := c.feature.every
	if c.wm == reading.NoTime || c.wm-start <= maxEmpties*every {
		return start
	}
	return max(start, c.feature.lastStart(c.wm)-maxEmpties*every)
}

// follow has the window after w come into being if it fires without readings
// (H2, emit_empty), and returns it.
func (k *key) follow(w *window) *window {
	f := k.feature
	if f.holdNS == 0 && !f.def.EmitEmpty {
		return nil
	}
	start := k.comb.skip(w.start + f.every)
	if start > f.hi || start+f.def.SizeMS <= k.forced || !k.heldInto(start) && !f.def.EmitEmpty || k.find(start) != nil {
		return nil
	}
	return k.window(start)
}

// endHold ends what is held at the time ns, unless it has ended before.
func (k *key) endHold(ns int64) {
	i := k.seq.from(ns) - 1
	if i < 0 || k.seq.metaAt(i)&metaEnd != 0 {
		return
	}
	k.carryChanged(k.seq.insert(ns, 0, metaBreak|metaCarry|metaEnd, ""))
	for _, w := range k.windows {
		if w.fired && w.start*1e6 <= ns && ns < w.end*1e6 {
			k.correctHeld(w)
		}
	}
}

// correctHeld has a window corrected whose held values have changed.
func (k *key) correctHeld(w *window) {
	if !w.dirty {
		w.carried = true
	}
	w.dirty = true
	k.feature.engine.touch(w)
}

// endSiblings ends the holds of the other lifecycles of the sensor at a reading of
// this one, and this one's at theirs (H2).
func (k *key) endSiblings(at int) {
	if !k.hasSiblings() {
		return
	}
	ns := k.seq.kept.ns(at)
	next := never
	for _, o := range k.feature.siblings[[2]string{k.name.asset, k.name.sensor}] {
		if o == k {
			continue
		}
		o.endHold(ns)
		for i := o.seq.from(ns + 1); i < o.seq.len(); i++ {
			if o.seq.metaAt(i)&metaEnd == 0 {
				next = min(next, o.seq.kept.ns(i))
				break
			}
		}
	}
	if next != never {
		k.endHold(next)
	}
}

// lost ends the holds of the keys that a partition has fed, when there is evidence
// that it is gone: at the time of that evidence, else after what it last vouched
// for (H2).
func (f *feature) lost(p *partition, ms int64) {
	if f.holdNS == 0 {
		return
	}
	if ms == reading.NoTime {
		ms = p.newest
	}
	if ms < f.lo || ms > f.hi {
		return
	}
	for _, k := range f.list {
		if k.fedBy(p) {
			k.endHold(ms*1e6 + 999_999)
		}
	}
}

// prune forgets the kept readings that no open window and no window to come can
// read, but for the one that is carried in.
func (k *key) prune() {
	if k.seq.len() == 0 || k.comb.closed == reading.NoTime {
		return
	}
	first := k.feature.firstStart(k.comb.closed + 1)
	if len(k.windows) > 0 {
		first = min(first, k.windows[0].start)
	}
	n := k.seq.from(first * 1e6)
	if k.feature.holdNS > 0 {
		n--
	}
	k.seq.dropFront(n)
}

// forget takes a partition out of the key's feeders.
func (k *key) forget(p *partition) {
	k.feeders = slices.DeleteFunc(k.feeders, func(q *partition) bool { return q == p })
}
