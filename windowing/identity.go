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

// idTable is a set of identities: an array in ascending order with gaps (zeros),
// in which each stands at or a little after its proportional place. A search
// starts there and ends at the first that is larger, so the table can be nearly
// full. The zero idTable is empty.
type idTable struct {
	slots []uint64
	n     int
}

const (
	idSlack    = 24        // slots after the last proportional place
	idMinSlots = 8         // proportional places of the smallest table
	idFull     = 15.0 / 16 // share of the places filled before the table grows
)

func (t *idTable) places() int { return len(t.slots) - idSlack }

func (t *idTable) place(b uint64) int {
	hi, _ := bits.Mul64(b&^0xff, uint64(t.places()))
	return int(hi)
}

// find reports whether d is in t, and whether with other content.
func (t *idTable) find(d identity) (found, conflict bool) {
	if t.n == 0 {
		return false, false
	}
	key := d.bits >> 8
	for _, s := range t.slots[t.place(d.bits):] {
		switch {
		case s == 0 || s>>8 > key:
			return conflict, conflict
		case s == d.bits:
			return true, false
		case s>>8 == key && !d.whole:
			conflict = true
		}
	}
	return conflict, conflict
}

// insert puts b into t.
func (t *idTable) insert(b uint64) {
	if len(t.slots) == 0 {
		t.resize(idMinSlots)
	} else if float64(t.n) >= idFull*float64(t.places()) {
		t.resize(t.places() + t.places()/4)
	}
	for !t.put(b) {
		t.resize(t.places() + t.places()/8 + 1)
	}
}

// put inserts b unless it is there; false if the slack is used up.
func (t *idTable) put(b uint64) bool {
	i := t.place(b)
	for i < len(t.slots) && t.slots[i] != 0 && t.slots[i] < b {
		i++
	}
	if i < len(t.slots) && t.slots[i] == b {
		return true // forgotten once, and come again
	}
	end := i
	for end < len(t.slots) && t.slots[end] != 0 {
		end++
	}
	if end == len(t.slots) {
		return false
	}
	copy(t.slots[i+1:end+1], t.slots[i:end])
	t.slots[i] = b
	t.n++
	return true
}

// resize spreads t over the given number of places, more if they cluster.
func (t *idTable) resize(places int) {
	old := t.slots
	for {
		t.slots = make([]uint64, places+idSlack)
		if t.spread(old) {
			return
		}
		places += places/8 + 1
	}
}

func (t *idTable) spread(ascending []uint64) bool {
	next := 0
	for _, b := range ascending {
		if b == 0 {
			continue
		}
		next = max(next, t.place(b))
		if next == len(t.slots) {
			return false
		}
		t.slots[next] = b
		next++
	}
	return true
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
	spare  idTable // an emptied table for the next group
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
	g.table, s.spare = s.spare, idTable{}
	if n := len(s.groups); n > 0 && len(g.table.slots) == 0 {
		if like := s.groups[n-1].table.n; like > idMinSlots {
			g.table.resize(like + like/12)
		}
	}
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
		if len(g.table.slots) > len(s.spare.slots) {
			clear(g.table.slots)
			s.spare = idTable{slots: g.table.slots}
		}
	}
	clear(s.groups[len(kept):])
	s.groups = kept
}

// remembered is how many identities the set holds.
func (s *idSet) remembered() int {
	n := 0
	for i := range s.groups {
		n += s.groups[i].table.n
	}
	for i := range s.late {
		n += s.late[i].table.n
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
