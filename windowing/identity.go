package windowing

import (
	"math/bits"
	"slices"

	"tidemark/reading"
)

// Identity (D1–D3). A remembered identity is 64 bits: 56 of a hash of what makes
// two readings the same, 8 of a hash of the content, which tell a conflict from a
// repetition (all 64 where the content is the identity). The chance that a new
// reading is taken for a repetition is the number of identities remembered of its
// sensor over 2^56: 10^4 identities and 10^3 readings a second make one in
// two hundred years.

// identity is what a reading is recognised by.
type identity struct {
	bits  uint64
	whole bool // the content is part of it: there are no conflicts
}

// identify returns the identity of r, and false if it has none.
func identify(r *reading.Reading, input uint64) (identity, bool) {
	kind, num := keptBits(r.Value)
	content := mix(num, uint64(kind)<<40|uint64(r.Quality.Level)<<32|uint64(r.Quality.Status))
	if r.ID != "" {
		content = mix(content, uint64(r.Source.NS))
		return identity{bits: mix(hashText(r.ID), 1)&^0xff | content>>56}.nonzero(), true
	}
	if !r.Source.Given() {
		return identity{}, false
	}
	if r.HasSeq {
		h := mix(mix(r.Seq, input), uint64(r.Source.NS))
		return identity{bits: h&^0xff | content>>56}.nonzero(), true
	}
	return identity{bits: mix(content, uint64(r.Source.NS)), whole: true}.nonzero(), true
}

func (d identity) nonzero() identity {
	if d.bits>>8 == 0 {
		d.bits |= 1 << 8
	}
	return d
}

// idTable is a set of identities in three parts: the latest sixteen as they came,
// a sorted run of a few hundred, and the sorted rest. Each part is merged into the
// next when it is full, so that inserting costs a little sequential work and
// nothing is left empty. A sorted part is searched from the place that an even
// spread would give. The zero idTable is empty.
type idTable struct {
	rest, run []uint64
	fresh     [16]uint64
	n         uint8 // of fresh
}

// minRun is the longest run of a small table; in large ones it is a 64th of the
// rest.
const minRun = 512

func (t *idTable) len() int { return len(t.rest) + len(t.run) + int(t.n) }

// find reports whether d is in t, and whether with other content.
func (t *idTable) find(d identity) (found, conflict bool) {
	key := d.bits >> 8
	for _, b := range t.fresh[:t.n] {
		if b>>8 == key {
			if b == d.bits {
				return true, false
			}
			conflict = conflict || !d.whole
		}
	}
	for _, part := range [...][]uint64{t.run, t.rest} {
		for i := place(part, key<<8); i < len(part) && part[i]>>8 == key; i++ {
			if part[i] == d.bits {
				return true, false
			}
			conflict = conflict || !d.whole
		}
	}
	return conflict, conflict
}

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
	if len(t.run) > max(minRun, len(t.rest)/64) {
		t.rest = merge(t.rest, t.run)
		t.run = t.run[:0]
	}
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

// ascending returns all identities in order.
func (t *idTable) ascending() []uint64 {
	all := slices.Concat(t.rest, t.run, t.fresh[:t.n])
	slices.Sort(all)
	return slices.Compact(all)
}

// idGroup holds the identities of one sensor's readings of event times [lo, hi).
type idGroup struct {
	lo, hi int64
	table  idTable
}

// lateGroup holds the identities of late evidence of a stretch of gateway time.
type lateGroup struct {
	fromMS int64
	table  idTable
}

// idSet remembers the readings of one sensor.
type idSet struct {
	groups []idGroup
	late   []lateGroup
	spare  []uint64 // the memory of a run, for the next group
}

// remember puts d among the identities of readings of event time t. When it needs
// a new group, those that all keys have forgotten go.
func (x *sensor) remember(d identity, t, width, horizon int64) {
	s := &x.ids
	for i := len(s.groups) - 1; i >= 0; i-- {
		if g := &s.groups[i]; g.lo <= t && t < g.hi {
			g.table.insert(d.bits)
			return
		}
	}
	s.dropGroups(x.outdated(horizon))
	s.group(t, width).table.insert(d.bits)
}

// group makes the group for event time t.
func (s *idSet) group(t, width int64) *idGroup {
	lo := t - floorMod(t, width)
	g := idGroup{lo: lo, hi: lo + width}
	g.table.run, s.spare = s.spare, nil
	at := len(s.groups)
	for at > 0 && s.groups[at-1].lo > lo {
		at--
	}
	s.groups = slices.Insert(s.groups, at, g)
	return &s.groups[at]
}

// dropGroups forgets the groups for which gone holds, and keeps one table for
// reuse.
func (s *idSet) dropGroups(gone func(*idGroup) bool) {
	kept := s.groups[:0]
	for i := range s.groups {
		g := s.groups[i]
		if !gone(&g) {
			kept = append(kept, g)
			continue
		}
		if cap(g.table.run) > cap(s.spare) {
			s.spare = g.table.run[:0]
		}
	}
	clear(s.groups[len(kept):])
	s.groups = kept
}

// remembered is how many identities the set holds.
func (s *idSet) remembered() int {
	n := 0
	for i := range s.groups {
		n += s.groups[i].table.len()
	}
	for i := range s.late {
		n += s.late[i].table.len()
	}
	return n
}

// addLate remembers late evidence at gateway time now, for keep milliseconds.
func (s *idSet) addLate(d identity, now, keep int64) {
	if keep == 0 {
		return
	}
	n := len(s.late)
	if n == 0 || keep > 0 && now-s.late[n-1].fromMS > keep/8 {
		s.late = append(s.late, lateGroup{fromMS: now})
		n++
	}
	s.late[n-1].table.insert(d.bits)
}

// findLate looks among late evidence that is still kept.
func (s *idSet) findLate(d identity, now, keep int64) (found, conflict bool) {
	for i := range s.late {
		if s.late[i].expired(now, keep) {
			continue
		}
		if found, conflict = s.late[i].table.find(d); found {
			return found, conflict
		}
	}
	return false, false
}

// expired holds once the newest of the group is older than keep.
func (g *lateGroup) expired(now, keep int64) bool {
	return keep >= 0 && now-g.fromMS > keep+keep/8
}

func (s *idSet) dropLate(now, keep int64) {
	s.late = slices.DeleteFunc(s.late, func(g lateGroup) bool { return g.expired(now, keep) })
}

// floorMod is the remainder that has the divisor's sign; b > 0.
func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}
