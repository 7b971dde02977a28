package windowing

import (
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
}

// remember puts d among the identities of readings of event time t. When it needs
// a new group, those that all keys have forgotten go.
func (s *sensor) remember(d identity, t int64, r *retention, horizon int64) {
	for i := len(s.ids.groups) - 1; i >= 0; i-- {
		if g := &s.ids.groups[i]; g.lo <= t && t < g.hi {
			g.insert(d, t)
			return
		}
	}
	s.ids.dropGroups(s.outdated(horizon))
	s.ids.group(t, r).insert(d, t)
}

// group makes the group for event time t.
func (s *idSet) group(t int64, r *retention) *idGroup {
	lo := t - floorMod(t-r.offset, r.width)
	g := idGroup{lo: lo, hi: lo + r.width, part: r.part}
	for i := range s.groups { // little comes to them any more
		if free := s.groups[i].table.trim(); cap(free) > cap(g.table.run) {
			g.table.run = free
		}
	}
	at := len(s.groups)
	for at > 0 && s.groups[at-1].lo > lo {
		at--
	}
	s.groups = slices.Insert(s.groups, at, g)
	return &s.groups[at]
}

// dropGroups forgets the groups for which gone holds.
func (s *idSet) dropGroups(gone func(*idGroup) bool) {
	s.groups = slices.DeleteFunc(s.groups, func(g idGroup) bool { return gone(&g) })
}

// addLate remembers late evidence at gateway time now, for keep milliseconds.
func (s *idSet) addLate(d identity, now, keep int64) {
	if keep == 0 {
		return
	}
	n := len(s.late)
	if n == 0 || keep > 0 && now-s.late[n-1].fromMS > keep/8 {
		if n > 0 {
			s.late[n-1].table.trim()
		}
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
