package windowing

import (
	"math"
	"math/big"
	"slices"

	"tidemark/reading"
)

// result gives the window's next revision.
func (e *Engine) result(w *window, cause Cause) {
	w.rev++
	if w.rev == 1 {
		w.since = e.batch
	}
	w.dirty, w.live, w.stepped, w.carried = false, false, false, false
	m := e.about(w, EmitFeature)
	m.Cause = cause
	e.describe(w, &m)
	e.emit(m)
}

// about begins an emission of a window: its key and where things stand.
func (e *Engine) about(w *window, kind EmissionKind) Emission {
	k := w.key
	return Emission{
		Kind: kind, Feature: k.feature.def.ID, Asset: k.name.asset, Lifecycle: k.name.lifecycle, Sensor: k.name.sensor,
		StartMS: w.start, EndMS: w.end, Revision: w.rev, Since: w.since, Clock: w.clock(),
		WatermarkMS: k.comb.wm, MaterializedNS: e.wall,
	}
}

// describe adds what the window holds.
func (e *Engine) describe(w *window, m *Emission) {
	k, f := w.key, w.key.feature
	h := k.integrate(w)
	m.Unit, m.PartialStart = w.unit, w.partial()
	m.Quality = QualityCounts{Good: int64(w.good), Uncertain: int64(w.uncertain), Bad: int64(w.bad)}
	m.Inputs, m.Coverage = k.comb.summary(), w.coverage(&h)
	from := len(e.values)
	for i := range f.funcs {
		e.values = append(e.values, NamedValue{Name: f.funcs[i].name, Value: w.statistic(i, &h)})
	}
	m.Values = e.values[from:len(e.values):len(e.values)]
}

// clock is the worst that the window's readings say about their times.
func (w *window) clock() ClockSummary {
	return ClockSummary{State: w.state, MaxBound: w.maxBound, Flags: w.flags}
}

func (w *window) coverage(h *held) Coverage {
	f := w.key.feature
	c := Coverage{Expected: -1, Observed: int64(w.count), CoveredMS: -1, Certain: int64(w.certain)}
	if s := w.key.sensor; s != nil && s.every > 0 {
		c.Expected = f.def.SizeMS / s.every
	}
	if f.need.order {
		c.CoveredMS = h.covered / 1e6
	}
	if f.need.samples {
		c.LongestGapMS = w.key.longestGap(w)
	} else {
		c.LongestGapMS = w.gaps.longest(f.def.SizeMS)
	}
	return c
}

// statistic computes the feature's i-th function; a Missing value where it is not
// defined or no float64.
func (w *window) statistic(i int, h *held) reading.Value {
	fn := &w.key.feature.funcs[i]
	switch fn.stat {
	case statCount:
		return reading.IntValue(int64(w.count))
	case statTimeWeightedMean:
		if h.numeric == 0 {
			return reading.Value{}
		}
		return reading.FloatValue(h.weighted.over(uint64(h.numeric)))
	case statIntegral:
		if h.numeric == 0 {
			return reading.Value{}
		}
		return reading.FloatValue(h.weighted.over(1e9))
	case statTransitions:
		return reading.IntValue(h.transitions)
	case statStateDuration:
		return reading.FloatValue(float64(h.states[i]) / 1e9)
	case statStateShare:
		if h.covered == 0 {
			return reading.Value{}
		}
		return reading.FloatValue(float64(h.states[i]) / float64(h.covered))
	case statLast:
		if w.numbers == 0 {
			return h.carried
		}
	}
	if w.numbers == 0 {
		return reading.Value{}
	}
	return w.ofNumbers(fn)
}

// ofNumbers computes a function of at least one number.
func (w *window) ofNumbers(fn *function) reading.Value {
	switch fn.stat {
	case statSum:
		return w.total()
	case statMean:
		return reading.FloatValue(w.sum.over(w.numbers))
	case statMin:
		return w.low.value()
	case statMax:
		return w.high.value()
	case statRange:
		return difference(w.high.value(), w.low.value())
	case statFirst:
		return w.edges.first.value()
	case statLast:
		return w.edges.last.value()
	case statDelta:
		return difference(w.edges.last.value(), w.edges.first.value())
	case statVariance:
		return reading.FloatValue(w.variance())
	case statStddev:
		return reading.FloatValue(math.Sqrt(w.variance()))
	case statRMS:
		return reading.FloatValue(math.Sqrt(w.more.squares.over(w.numbers)))
	case statSlope:
		return w.slope()
	case statPercentile:
		return w.key.percentile(w, fn)
	}
	return reading.Value{}
}

// total is the sum: an integer if all readings are and it is one that 64 bits
// hold, else the nearest float64.
func (w *window) total() reading.Value {
	if !w.floats {
		if m, neg, ok := w.sum.integer(); ok {
			return signed(m, neg)
		}
	}
	return reading.FloatValue(w.sum.float())
}

func signed(m uint64, neg bool) reading.Value {
	if neg {
		return reading.IntValue(-int64(m))
	}
	return reading.UintValue(m)
}

// difference is a − b, exact for integers, else rounded once.
func difference(a, b reading.Value) reading.Value {
	var x exact
	ak, ab := a.Bits()
	bk, bb := b.Bits()
	x.add(numberTerm(ak, ab))
	t := numberTerm(bk, bb)
	t.neg = !t.neg
	x.add(t)
	if ak != reading.Float && bk != reading.Float {
		if m, neg, ok := x.integer(); ok {
			return signed(m, neg)
		}
	}
	return reading.FloatValue(x.float())
}

// scaled returns x·2^(64·(x.base−base)) as an integer; base is at most x.base.
func scaled(x *exact, base int) *big.Int {
	i := x.big()
	return i.Lsh(i, uint(64*(x.base-base)))
}

// variance is (n·Σx² − (Σx)²)/n², exact before the one rounding (N2).
func (w *window) variance() float64 {
	sum, squares := &w.sum, &w.more.squares
	if len(squares.limbs) == 0 {
		return 0
	}
	base := min(squares.base, 2*sum.base)
	n := new(big.Int).SetUint64(w.numbers)
	num := new(big.Int).Mul(n, scaled(squares, base))
	s := sum.big()
	s.Mul(s, s)
	num.Sub(num, s.Lsh(s, uint(64*(2*sum.base-base))))
	return quotient(num, n.Mul(n, n), 64*base)
}

// slope is the least squares line's, per second: (n·Σtx − Σt·Σx)/(n·Σt² − (Σt)²).
// It is not defined for readings of one instant.
func (w *window) slope() reading.Value {
	m := w.more
	n := new(big.Int).SetUint64(w.numbers)
	st := scaled(&m.t, 0)
	den := new(big.Int).Mul(n, scaled(&m.tt, 0))
	den.Sub(den, new(big.Int).Mul(st, st))
	if den.Sign() == 0 {
		return reading.Value{}
	}
	base := min(m.tx.base, w.sum.base)
	num := n.Mul(n, scaled(&m.tx, base))
	num.Sub(num, st.Mul(st, scaled(&w.sum, base)))
	num.Mul(num, big.NewInt(1e9))
	return reading.FloatValue(quotient(num, den, 64*base))
}

// span returns the places of the window's kept readings.
func (k *key) span(w *window) (lo, hi int) {
	return k.seq.from(w.start * 1e6), k.seq.from(w.end * 1e6)
}

// percentile is the ⌈p·n⌉-th smallest number of the window (nearest rank, N4).
func (k *key) percentile(w *window, fn *function) reading.Value {
	values := k.feature.engine.scratch[:0]
	lo, hi := k.span(w)
	for i := lo; i < hi; i++ {
		if m := k.seq.metaAt(i); m&(metaBreak|metaCarry) == 0 && isNumber(m.kind()) {
			values = append(values, makeValue(m.kind(), k.seq.kept.num(i)))
		}
	}
	k.feature.engine.scratch = values
	if len(values) == 0 {
		return reading.Value{}
	}
	slices.SortFunc(values, func(a, b reading.Value) int {
		ak, ab := a.Bits()
		bk, bb := b.Bits()
		return compareValues(ak, ab, bk, bb)
	})
	hundred := uint64(100)
	for range fn.scale {
		hundred *= 10
	}
	rank := (fn.rank*uint64(len(values)) + hundred - 1) / hundred
	return values[rank-1]
}

// longestGap is the longest stretch without a reading, to the millisecond.
func (k *key) longestGap(w *window) int64 {
	last, best := w.start, int64(0)
	lo, hi := k.span(w)
	for i := lo; i < hi; i++ {
		if k.seq.metaAt(i)&(metaBreak|metaCarry) == 0 {
			at := reading.FloorMS(k.seq.kept.ns(i))
			best = max(best, at-last)
			last = at
		}
	}
	return max(best, w.end-last)
}
