package windowing

import (
	"math/bits"
	"slices"
)

// idTable is a set of identities in three parts: the latest sixteen as they came,
// a sorted run of some hundreds, and the sorted rest. Each part is merged into the
// next when it is full, so that inserting costs a little sequential work and
// nothing is left empty. The sorted run is searched from the place that an even
// spread would give. The zero idTable is empty.
type idTable struct {
	rest  *packed // nil before the first
	run   []uint64
	n     uint8 // of fresh
	fresh [16]uint64
}

// minRun is the longest run of a small table; in large ones it is a 64th of the
// rest. So a table of ten minutes at one reading a second is a run and nothing else,
// which takes eight bytes an identity; the rest's index would cost it a kilobyte.
const minRun = 1024

func (t *idTable) len() int { return t.rest.len() + len(t.run) + int(t.n) }

// find looks for d, and returns what is remembered of it: of several, one of the
// latest part, and there of the same content if there is one. 0 is nothing.
func (t *idTable) find(d identity) (latest uint64) {
	key := d.bits >> keyShift
	for _, b := range t.fresh[:t.n] {
		if b>>keyShift == key && d.takes(b, latest) {
			latest = b
		}
	}
	low := key << keyShift
	for i := place(t.run, low); i < len(t.run) && t.run[i]>>keyShift == key; i++ {
		if d.takes(t.run[i], latest) {
			latest = t.run[i]
		}
	}
	for i, end := t.rest.search(low, t.rest.len()); i < end; i++ {
		b := low&^lowMask | t.rest.lowAt(i)
		if b>>keyShift != key {
			break
		}
		if d.takes(b, latest) {
			latest = b
		}
	}
	return latest
}

// takes reports whether b, of the same key, is remembered of d and is to be
// preferred to what was found before.
func (d identity) takes(b, before uint64) bool {
	if d.whole || before == 0 {
		return !d.whole || b == d.bits
	}
	if b&partMask != before&partMask {
		return b&partMask > before&partMask
	}
	return !d.conflicts(b)
}

// conflicts reports whether b is remembered of other content.
func (d identity) conflicts(b uint64) bool { return (d.bits^b)&0xff != 0 }

// place returns the place of the first entry that is at least b.
func place(sorted []uint64, b uint64) int {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	hi, _ := bits.Mul64(b, uint64(n))
	i, step := int(hi), 8
	lo, up := 0, n // the place is within lo..up
	if sorted[i] < b {
		lo = i + 1
		for lo+step < n && sorted[lo+step] < b {
			lo, step = lo+step+1, step*2
		}
		up = min(lo+step, n)
	} else {
		up = i
		for up-step >= 0 && sorted[up-step] >= b {
			up, step = up-step, step*2
		}
		lo = max(up-step, 0)
	}
	for lo < up {
		if mid := int(uint(lo+up) / 2); sorted[mid] < b {
			lo = mid + 1
		} else {
			up = mid
		}
	}
	return lo
}

// insert puts b into t.
func (t *idTable) insert(b uint64) {
	t.fresh[t.n] = b
	t.n++
	if int(t.n) == len(t.fresh) {
		t.settle()
	}
}

// settle merges the fresh identities into the run, and the run if it has become
// long into the rest.
func (t *idTable) settle() {
	slices.Sort(t.fresh[:t.n])
	t.run = merge(t.run, t.fresh[:t.n])
	t.n = 0
	if len(t.run) > max(minRun, t.rest.len()/64) {
		if t.rest == nil {
			t.rest = new(packed)
		}
		t.rest.merge(t.run)
		t.run = t.run[:0]
	}
}

// trim is for a table to which little will be added: it gives back what memory it
// has in store, of which the run's is returned for reuse.
func (t *idTable) trim() []uint64 {
	if cap(t.run)-len(t.run) < len(t.fresh) {
		return nil // it has none
	}
	free := t.run[:0]
	if t.rest == nil {
		t.run = append(make([]uint64, 0, len(t.run)), t.run...)
	} else {
		t.rest.merge(t.run)
		t.run = nil
	}
	return free
}

// merge merges two sorted lists into the first, each entry once.
func merge(into, from []uint64) []uint64 {
	n, m := len(into), len(from)
	if cap(into) < n+m {
		into = append(make([]uint64, 0, n+m+n/16), into...)
	}
	into = into[:n+m]
	twice := false
	for i, j, k := n-1, m-1, n+m-1; j >= 0; k-- {
		if i >= 0 && into[i] >= from[j] {
			twice = twice || into[i] == from[j]
			into[k] = into[i]
			i--
		} else {
			into[k] = from[j]
			j--
		}
	}
	if twice { // forgotten once, and come again
		into = slices.Compact(into)
	}
	return into
}

// ascending appends all identities in order to the empty list all.
func (t *idTable) ascending(all []uint64) []uint64 {
	all = append(append(t.rest.appendTo(all), t.run...), t.fresh[:t.n]...)
	slices.Sort(all)
	return slices.Compact(all)
}
