package windowing

import "tidemark/reading"

// held is what a window's held values amount to (N5, N6). Durations are
// nanoseconds.
type held struct {
	covered     int64 // a value was held
	numeric     int64 // … that is a number
	weighted    exact // Σ value·duration
	states      []int64
	transitions int64
	carried     reading.Value // the number carried in, Missing if none
}

// integrate walks the window's kept readings in order, from the one carried in.
func (k *key) integrate(w *window) (h held) {
	f := k.feature
	if !f.need.order {
		return h
	}
	h.states = make([]int64, len(f.funcs))
	start, end := w.start*1e6, w.end*1e6
	lo, hi := k.span(w)
	cur := -1 // the reading whose value is held
	if k.heldInto(w.start) {
		cur = lo - 1
		if m := k.seq.metaAt(cur); isNumber(m.kind()) {
			h.carried = makeValue(m.kind(), k.seq.kept.num(cur))
		}
	}
	for i := lo; i < hi; i++ {
		m := k.seq.metaAt(i)
		if m&(metaCarry|metaEnd) == metaCarry {
			continue // it is for the windows after this one
		}
		h.hold(k, cur, start, k.seq.kept.ns(i))
		if m&metaBreak != 0 {
			cur = -1
			continue
		}
		if cur >= 0 && (k.seq.metaAt(cur).kind() != m.kind() || k.seq.kept.num(cur) != k.seq.kept.num(i)) {
			h.transitions++
		}
		cur = i
	}
	h.hold(k, cur, start, end)
	return h
}

// hold adds the value of reading i from its time or the window's start until the
// given time, at most for max_hold.
func (h *held) hold(k *key, i int, start, until int64) {
	if i < 0 {
		return
	}
	f := k.feature
	from := k.seq.kept.ns(i)
	if f.holdNS > 0 {
		until = min(until, from+f.holdNS)
	}
	span := until - max(from, start)
	if span <= 0 {
		return
	}
	kind, bits := k.seq.metaAt(i).kind(), k.seq.kept.num(i)
	h.covered += span
	if isNumber(kind) {
		h.numeric += span
		h.weighted.addProduct(numberTerm(kind, bits), intTerm(span))
	}
	for n := range f.funcs {
		if fn := &f.funcs[n]; fn.stat == statStateDuration || fn.stat == statStateShare {
			if fn.state.is(kind, bits) {
				h.states[n] += span
			}
		}
	}
}
