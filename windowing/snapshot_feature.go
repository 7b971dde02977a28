package windowing

import (
	"errors"
	"fmt"

	"tidemark/reading"
)

func (w *wire) featureState(f *feature) {
	w.u64(&f.windowed)
	w.u64(&f.late)
	w.u64(&f.excluded)
	w.time(&f.retiredEnd)
	w.partitions(f)
	if f.all != nil {
		w.combiner(f.all)
	}
	w.keys(f)
}

func (w *wire) partitions(f *feature) {
	n := len(f.parts)
	w.count(&n, 4)
	for i := range n {
		p := new(partition)
		if !w.reading {
			p = f.parts[i]
			p.serial = i
		}
		k := p.partitionKey
		w.str(&k.input)
		w.str(&k.device)
		w.str(&k.asset)
		w.str(&k.sensor)
		if w.reading {
			if f.partitions[k] != nil {
				w.fail(errTwice)
				return
			}
			p = f.partition(k)
			clear(f.spoken)
			f.spoken, p.queued = f.spoken[:0], false
		}
		w.str(&p.via)
		for _, t := range [...]*int64{&p.wm, &p.newest, &p.seen, &p.since} {
			w.time(t)
		}
		for _, b := range [...]*bool{&p.idle, &p.gone, &p.spoke, &p.catchUp, &p.queued} {
			w.flag(b)
		}
	}
	w.watched(f)
}

// watched restores who is looked at at the next emission, and who is watched for
// silence.
func (w *wire) watched(f *feature) {
	n := len(f.idlers.entries)
	w.count(&n, 2)
	for i := range n {
		var d deadline[*partition]
		serial := 0
		if !w.reading {
			d = f.idlers.entries[i]
			if d.item.removed {
				serial = -1
			} else {
				serial = d.item.serial
			}
		}
		w.time(&d.at)
		w.integer(&serial)
		if !w.reading || w.err != nil || serial == -1 {
			continue
		}
		if serial < 0 || serial >= len(f.parts) || f.parts[serial].waiting {
			w.fail(fmt.Errorf("partition %d of %d cannot be watched", serial, len(f.parts)))
			return
		}
		p := f.parts[serial]
		p.waiting = true
		f.idlers.push(d.at, p)
	}
	if w.reading {
		for _, p := range f.parts {
			if p.queued {
				f.spoken = append(f.spoken, p)
			}
		}
	}
}

func (w *wire) combiner(c *combiner) {
	f := c.feature
	if c.key != nil {
		var parts []*partition
		if !w.reading {
			parts = c.parts
		}
		refs(w, f.parts, &parts, func(p *partition) int { return p.serial })
		if w.reading {
			for _, p := range parts {
				c.attach(p)
			}
		}
	}
	for _, t := range [...]*int64{&c.wm, &c.closed, &c.flushAt} {
		w.time(t)
	}
	stale, urgent := c.queued, c.urgent
	w.flag(&stale)
	w.flag(&urgent)
	w.flag(&c.inFlush)
	if !w.reading {
		return
	}
	c.settleQueues(stale, urgent)
}

// settleQueues undoes what attaching has queued while reading a snapshot.
func (c *combiner) settleQueues(stale, urgent bool) {
	f := c.feature
	if n := len(f.stale); n > 0 && f.stale[n-1] == c && !stale {
		f.stale, c.queued = f.stale[:n-1], false
	}
	if stale {
		f.retakeLater(c)
	}
	if urgent {
		f.retakeNow(c)
	}
}

func (w *wire) keys(f *feature) {
	n := len(f.list)
	w.count(&n, 4)
	for i := range n {
		var k *key
		var name keyName
		if !w.reading {
			k = f.list[i]
			k.serial = i
			name = k.name.keyName
		}
		w.keyName(&name)
		if w.reading {
			if w.err != nil || f.keys[name] != nil {
				w.fail(errTwice)
				return
			}
			k = f.addKey(name)
		}
		w.key(k)
	}
}

func (w *wire) key(k *key) {
	w.dropped(2, 0)
	w.time(&k.forced)
	refs(w, k.feature.parts, &k.feeders, func(p *partition) int { return p.serial })
	if k.comb.key != nil {
		w.combiner(k.comb)
	}
	if k.feature.need.samples {
		w.sequence(&k.seq, k.feature)
	}
	n := len(k.windows)
	w.count(&n, 8)
	for i := range n {
		var start int64
		if !w.reading {
			start = k.windows[i].start
		}
		w.time(&start)
		if !w.reading {
			w.window(k.windows[i])
			continue
		}
		if w.err != nil || !k.canOpen(start) {
			w.fail(fmt.Errorf("%d is no start of a window that may be open", start))
			return
		}
		w.window(k.window(start))
	}
}

// canOpen reports whether a snapshot may have a window there.
func (k *key) canOpen(start int64) bool {
	f := k.feature
	return start >= f.lo && start <= f.hi && f.lastStart(start) == start &&
		(len(k.windows) == 0 || k.windows[len(k.windows)-1].start < start)
}

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
