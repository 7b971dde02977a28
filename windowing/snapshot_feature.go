package windowing

import (
	"fmt"
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
