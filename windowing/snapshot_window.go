package windowing

import (
	"errors"

	"tidemark/reading"
)

func (w *wire) window(x *window) {
	w.u32(&x.rev)
	if w.version > 1 {
		w.u64(&x.since)
	}
	for _, b := range [...]*bool{&x.fired, &x.dirty, &x.live, &x.carried} {
		w.flag(b)
	}
	w.dropped(2, 0)
	if w.version > 2 {
		w.flag(&x.stepped)
	}
	w.time(&x.corrected)
	w.time(&x.until)
	w.accumulator(x.key.feature, &x.accumulator)
}

func (w *wire) accumulator(f *feature, a *accumulator) {
	for _, u := range [...]*uint64{&a.good, &a.uncertain, &a.bad, &a.certain, &a.count, &a.numbers} {
		w.u64(u)
	}
	floats := uint64(0)
	if a.floats {
		floats = 1 // older forms count them
	}
	w.u64(&floats)
	a.floats = floats > 0
	code(w, &a.state, reading.ClockUnreliable)
	code(w, &a.maxBound, ^reading.Bound(0))
	w.flags(&a.flags)
	w.str(&a.unit)
	if !f.need.samples {
		w.gaps(&a.gaps)
	}
	if f.need.sum {
		w.exact(&a.sum)
	}
	if f.need.extremes {
		w.bound(&a.low)
		w.bound(&a.high)
	}
	w.moments(f, a)
	w.edges(f, a)
	if w.reading && a.count > 0 && a.numbers > a.count {
		w.fail(errors.New("more numbers than readings"))
	}
}

func (w *wire) gaps(g *gaps) {
	w.u64(&g.n)
	words := len(g.bits)
	if g.n < gapTimes {
		words = int(g.n+1) / 2
	}
	for i := range words {
		w.u64(&g.bits[i])
	}
}

func (w *wire) exact(x *exact) {
	w.integer(&x.base)
	list(w, &x.limbs, (*wire).fixed)
	if !w.reading || len(x.limbs) == 0 {
		return
	}
	if s := x.limbs[len(x.limbs)-1]; s+1 > 1 || len(x.limbs) > maxLimbs || x.base < -maxLimbs || x.base > maxLimbs {
		w.fail(errors.New("a sum is out of form"))
		x.reset()
	}
}

// maxLimbs is more than the largest sum of products of floats needs.
const maxLimbs = 80

func (w *wire) bound(b *bound) {
	code(w, &b.kind, reading.Float)
	w.fixed(&b.bits)
}

func (w *wire) moments(f *feature, a *accumulator) {
	if !f.need.squares && !f.need.slope || a.numbers == 0 {
		return
	}
	if a.more == nil {
		a.more = new(moments)
	}
	for _, x := range [...]*exact{&a.more.squares, &a.more.t, &a.more.tt, &a.more.tx} {
		w.exact(x)
	}
	if a.more.t.base < 0 || a.more.tt.base < 0 {
		w.fail(errors.New("sums of whole times have fractions"))
	}
}

func (w *wire) edges(f *feature, a *accumulator) {
	if !f.need.edges || a.numbers == 0 {
		return
	}
	if a.edges == nil {
		a.edges = new(edges)
	}
	for _, x := range [...]*edge{&a.edges.first, &a.edges.last} {
		w.i64(&x.ns)
		code(w, &x.kind, reading.Float)
		w.fixed(&x.bits)
		id := string(x.id)
		w.str(&id)
		x.id = append(x.id[:0], id...)
	}
}

// sequence is a key's kept readings, column by column.
func (w *wire) sequence(q *sequence, f *feature) {
	n := q.len()
	w.count(&n, 9)
	last := int64(0)
	for i := range n {
		d := int64(0)
		if !w.reading {
			d = q.kept.ns(i) - last
		}
		w.i64(&d)
		last += d
		if !w.reading {
			continue
		}
		if d < 0 && i > 0 || last < f.lo*1e6 || last/1e6 > f.hi {
			w.fail(errors.New("kept readings are out of order or range"))
			*q = sequence{}
			return
		}
		q.kept.insert(i, last, 0)
	}
	for i := range q.len() {
		num := q.kept.num(i)
		if w.fixed(&num); w.reading {
			q.kept.setNum(i, num)
		}
	}
	code(w, &q.like, metaTop)
	list(w, &q.meta, func(w *wire, m *meta) { code(w, m, metaTop) })
	list(w, &q.ends, (*wire).u32)
	ids := string(q.ids)
	w.str(&ids)
	if !w.reading {
		return
	}
	q.ids = []byte(ids)
	if !q.sound() {
		w.fail(errors.New("kept readings are out of form"))
		*q = sequence{}
	}
}

// sound reports whether the columns fit together.
func (q *sequence) sound() bool {
	n := q.len()
	if q.meta != nil && len(q.meta) != n || q.ends != nil && len(q.ends) != n || q.ends == nil && len(q.ids) > 0 {
		return false
	}
	last := uint32(0)
	for _, end := range q.ends {
		if end < last || int(end) > len(q.ids) {
			return false
		}
		last = end
	}
	return true
}
