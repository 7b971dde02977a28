package windowing

import (
	"errors"
	"fmt"

	"tidemark/reading"
)

var errTwice = errors.New("a name comes twice")

// ref reads or writes a reference into a list; serial is the place of *p.
func ref[T any](w *wire, list []*T, p **T, serial int) {
	n := serial
	w.integer(&n)
	if !w.reading || w.err != nil {
		return
	}
	if n < 0 || n >= len(list) {
		w.fail(fmt.Errorf("reference to entry %d of %d", n, len(list)))
		return
	}
	*p = list[n]
}

// refs reads or writes a list of references.
func refs[T any](w *wire, list []*T, some *[]*T, serial func(*T) int) {
	n := len(*some)
	w.count(&n, 1)
	for i := range n {
		var p *T
		at := 0
		if !w.reading {
			p = (*some)[i]
			at = serial(p)
		}
		if ref(w, list, &p, at); w.reading && w.err == nil {
			*some = append(*some, p)
		}
	}
}

func (w *wire) keyName(k *keyName) {
	w.str(&k.asset)
	w.str(&k.sensor)
	w.str(&k.lifecycle)
}

func (w *wire) inputs(e *Engine) {
	n := len(e.inputList)
	w.count(&n, 1)
	for i := range n {
		in := new(input)
		if !w.reading {
			in = e.inputList[i]
			in.serial = i
		}
		name := in.name
		w.str(&name)
		if w.reading {
			in = e.input(name)
		}
		w.time(&in.seen)
	}
	if len(e.inputList) != n {
		w.fail(errTwice)
	}
}

func (w *wire) sensors(e *Engine) {
	n := len(e.sensorList)
	w.count(&n, 1)
	for i := range n {
		s := new(sensor)
		if !w.reading {
			s = e.sensorList[i]
			s.serial = i
		}
		name := s.name
		w.keyName(&name)
		if w.reading {
			if e.sensors[name] != nil {
				w.fail(errTwice)
				return
			}
			s = e.addSensor(name)
		}
		w.sensor(e, s)
	}
}

func (w *wire) sensor(e *Engine, s *sensor) {
	has := s.input != nil
	w.flag(&has)
	if has {
		serial := 0
		if !w.reading {
			serial = s.input.serial
		}
		ref(w, e.inputList, &s.input, serial)
	}
	if w.version > 2 {
		refs(w, e.inputList, &s.inputs, func(in *input) int { return in.serial })
	} else if s.input != nil {
		s.inputs = []*input{s.input}
	}
	if w.reading {
		e.expectOf(s)
	}
	w.dropped(2, 0)
	w.time(&s.seen)
	if w.version > 2 {
		w.time(&s.returned)
	}
	w.time(&s.lastMS)
	w.i64(&s.newestNS)
	w.flag(&s.silent)
	w.flag(&s.armed)
	list(w, &s.ids.groups, func(w *wire, g *idGroup) {
		w.idGroup(g)
		w.table(&g.table)
	})
	list(w, &s.ids.late, func(w *wire, g *lateGroup) {
		w.time(&g.fromMS)
		w.table(&g.table)
	})
	if w.reading && s.armed && s.input == nil {
		w.fail(errors.New("a sensor that was never heard is watched"))
	}
}

func (w *wire) idGroup(g *idGroup) {
	w.time(&g.lo)
	w.time(&g.hi)
	if w.version > 2 {
		w.i64(&g.part)
	} else {
		g.part = g.hi - g.lo // what stands in the place of a part's number says nothing
	}
	if w.reading && (g.lo >= g.hi || g.part <= 0 || (g.hi-g.lo-1)/g.part > 15) {
		w.fail(fmt.Errorf("identities of %d to %d ms in parts of %d ms", g.lo, g.hi, g.part))
		*g = idGroup{hi: 1, part: 1}
	}
}

// table is the identities in ascending order, by their differences.
func (w *wire) table(t *idTable) {
	all := []uint64(nil)
	if !w.reading {
		w.scratch = t.ascending(w.scratch[:0])
		all = w.scratch
	}
	n := len(all)
	w.count(&n, 1)
	if w.reading {
		all = make([]uint64, n)
	}
	last := uint64(0)
	for i := range all {
		d := all[i] - last
		w.u64(&d)
		if all[i] = last + d; all[i] < last {
			w.fail(errors.New("identities are out of order"))
			return
		}
		last = all[i]
	}
	if !w.reading {
		return
	}
	if n > minRun {
		t.rest = new(packed)
		t.rest.merge(all)
		return
	}
	t.run = all
}

// sensorKeys is which keys each sensor feeds.
func (w *wire) sensorKeys(e *Engine) {
	for _, s := range e.sensorList {
		for i, f := range e.features {
			var some []*key
			if !w.reading {
				for _, k := range s.keys {
					if k.feature == e.features[i] {
						some = append(some, k)
					}
				}
			}
			refs(w, f.list, &some, func(k *key) int { return k.serial })
			if w.reading {
				s.keys = append(s.keys, some...)
			}
		}
	}
}

// timers are the deadlines that cannot be told from the rest of the state.
func (w *wire) timers(e *Engine) {
	w.deadlines(&e.alarms, e.sensorList)
	for _, in := range e.inputList {
		refs(w, e.sensorList, &in.quiet, func(s *sensor) int { return s.serial })
		for _, s := range in.quiet {
			s.armed, s.quiet = false, true
		}
	}
	if !w.reading || w.err != nil {
		return
	}
	for _, d := range e.alarms.entries {
		if d.item.input == nil {
			w.fail(errors.New("a sensor that was never heard is watched"))
			return
		}
	}
	for _, f := range e.features {
		for _, k := range f.list {
			for _, x := range k.windows {
				if x.until != reading.NoTime {
					e.spaced.push(x.until, x)
				}
			}
		}
		for _, c := range f.combiners() {
			if c.inFlush {
				f.flushes.push(c.flushAt, c)
			}
		}
	}
}

func (w *wire) deadlines(h *deadlines[*sensor], all []*sensor) {
	n := len(h.entries)
	w.count(&n, 2)
	for i := range n {
		var d deadline[*sensor]
		if !w.reading {
			d = h.entries[i]
		}
		w.time(&d.at)
		serial := 0
		if !w.reading {
			serial = d.item.serial
		}
		if ref(w, all, &d.item, serial); w.reading && w.err == nil {
			h.push(d.at, d.item)
		}
	}
}
