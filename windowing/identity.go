package windowing

import (
	"math/bits"
	"slices"

	"tidemark/reading"
)

// Identity (D1–D3). A remembered identity is 64 bits: 52 of a hash of what makes
// two readings the same, 4 that say when in its group the reading was, 8 of a hash
// of the content, which tell a conflict from a repetition (all 64 are of one hash
// where time and content are the identity). The chance that a new reading is taken
// for a repetition is the number of identities remembered of its sensor over 2^52:
// 10^4 identities and 10^3 readings a second make one in fourteen years.
const (
	keyShift  = 12 // of the key within the bits
	partShift = 8
	partMask  = 0xf << partShift
)

// identity is what a reading is recognised by.
type identity struct {
	bits  uint64
	whole bool // time and content are part of it: there are no conflicts
}

// at returns d as it is remembered of a reading in that part of its group.
func (d identity) at(part uint64) identity {
	if !d.whole {
		d.bits = d.bits&^partMask | part<<partShift
	}
	return d
}

// valueStatus is a status code without what OPC UA says in it of a value's way and not of
// its quality (Part 4 §7.39.2): the overflow bit, and that there are such bits. A
// value that is left of a full queue has them, and has not when it comes out of the
// server's history.
func valueStatus(status uint32) uint32 {
	const typeMask, dataValue, overflow = 0x0C00, 0x0400, 0x0080
	if status&typeMask == dataValue {
		return status &^ (dataValue | overflow)
	}
	return status
}

// identify returns the identity of r, and false if it has none.
func identify(r *reading.Reading, input uint64) (identity, bool) {
	kind, num := keptBits(r.Value)
	content := mix(num, uint64(kind)<<40|uint64(r.Quality.Level)<<32|uint64(valueStatus(r.Quality.Status)))
	if r.ID != "" {
		content = mix(content, uint64(r.Source.NS))
		return identity{bits: mix(hashText(r.ID), 1)>>keyShift<<keyShift | content>>56}.nonzero(), true
	}
	if !r.Source.Given() {
		return identity{}, false
	}
	if r.HasSeq {
		h := mix(mix(r.Seq, input), uint64(r.Source.NS))
		return identity{bits: h>>keyShift<<keyShift | content>>56}.nonzero(), true
	}
	return identity{bits: mix(content, uint64(r.Source.NS)), whole: true}.nonzero(), true
}

func (d identity) nonzero() identity {
	if d.bits>>keyShift == 0 {
		d.bits |= 1 << keyShift
	}
	return d
}

// idTable is a set of identities in three parts: the latest sixteen as they came,
// a sorted run of a few hundred, and the sorted rest. Each part is merged into the
// next when it is full, so that inserting costs a little sequential work and
// nothing is left empty. The sorted run is searched from the place that an even
// spread would give. The zero idTable is empty.
type idTable struct {
	rest  *packed // nil before the first
	run   []uint64
	fresh [16]uint64
	n     uint8 // of fresh
}

// minRun is the longest run of a small table; in large ones it is a 64th of the
// rest.
const minRun = 512

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

// idGroup holds the identities of one sensor's readings of event times [lo, hi),
// which is up to sixteen parts of the given length.
type idGroup struct {
	lo, hi int64
	part   int64
	table  idTable
}

// time is the event time of what is remembered as b of d: t if that is of the same
// part, else the last of its part.
func (g *idGroup) time(b uint64, d identity, t int64) int64 {
	part := int64(b & partMask >> partShift)
	if d.whole || g.lo <= t && t < g.hi && (t-g.lo)/g.part == part {
		return t
	}
	return min(g.hi, g.lo+(part+1)*g.part) - 1
}

func (g *idGroup) insert(d identity, t int64) {
	g.table.insert(d.at(uint64((t - g.lo) / g.part)).bits)
}

// retention says how a sensor's identities are grouped: in stretches of width from
// multiples of it beyond offset, in parts whose ends are those of windows.
type retention struct{ offset, width, part int64 }

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
func (x *sensor) remember(d identity, t int64, r *retention, horizon int64) {
	s := &x.ids
	for i := len(s.groups) - 1; i >= 0; i-- {
		if g := &s.groups[i]; g.lo <= t && t < g.hi {
			g.insert(d, t)
			return
		}
	}
	s.dropGroups(x.outdated(horizon))
	s.group(t, r).insert(d, t)
}

// group makes the group for event time t.
func (s *idSet) group(t int64, r *retention) *idGroup {
	lo := t - floorMod(t-r.offset, r.width)
	g := idGroup{lo: lo, hi: lo + r.width, part: r.part}
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
		if b := s.late[i].table.find(d); b != 0 {
			return true, d.conflicts(b)
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
