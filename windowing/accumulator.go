package windowing

import (
	"bytes"
	"cmp"

	"tidemark/reading"
)

// sample is a reading as the accumulators see it.
type sample struct {
	r     *reading.Reading
	ns    int64 // event time
	ms    int64 // floored
	kind  reading.Kind
	bits  uint64
	bad   bool // in no statistic
	level reading.Level
}

func newSample(r *reading.Reading, ms int64) sample {
	kind, bits := keptBits(r.Value)
	s := sample{r: r, ns: r.Stamp.EventNS, ms: ms, kind: kind, bits: bits, level: r.Quality.Level}
	if kind == reading.Missing {
		s.level = reading.Bad
	}
	s.bad = s.level == reading.Bad
	return s
}

// accumulator is what a window keeps of its readings. Everything in it is the
// same whatever the order of adding (N1).
type accumulator struct {
	good, uncertain, bad uint64
	certain              uint64
	count                uint64 // in the statistics, of any type
	numbers              uint64
	sum                  exact
	room                 [4]uint64 // for the limbs of sum
	low, high            bound
	gaps                 gaps
	state                reading.ClockState
	maxBound             reading.Bound
	flags                reading.Flags
	floats               bool // of the numbers some are
	unit                 string
	more                 *moments // squares, slope
	edges                *edges   // first, last
}

// moments are the exact sums behind variance and slope; t is nanoseconds since
// the window's start.
type moments struct{ squares, t, tt, tx exact }

// bound is an extreme value; of equal amounts the smaller kind stands.
type bound struct {
	bits uint64
	kind reading.Kind // Missing before the first
}

// edges are the first and last number by (time, id, value).
type edges struct{ first, last edge }

type edge struct {
	ns   int64
	bits uint64
	kind reading.Kind
	id   []byte
}

// readings is how many readings the window holds, bad ones included.
func (a *accumulator) readings() uint64 { return a.good + a.uncertain + a.bad }

// add takes a reading into a window [startMS, startMS+size).
func (a *accumulator) add(f *feature, s *sample, startMS int64) {
	a.note(f, s, startMS)
	if s.bad || f.def.GoodOnly && s.level != reading.Good {
		return
	}
	a.count++
	if f.need.samples {
		// the gaps are read off the kept readings
	} else {
		a.gaps.add(s.ms-startMS, f.def.SizeMS)
	}
	if !isNumber(s.kind) {
		return
	}
	a.numbers++
	if s.kind == reading.Float {
		a.floats = true
	}
	if f.need.sum {
		x := numberTerm(s.kind, s.bits)
		a.sum.add(x)
		if f.need.squares || f.need.slope {
			a.addMoments(f, x, s.ns-startMS*1e6)
		}
	}
	if f.need.extremes {
		a.low.keep(s, -1)
		a.high.keep(s, 1)
	}
	if f.need.edges {
		a.addEdges(s)
	}
}

// note takes what is counted of every reading.
func (a *accumulator) note(f *feature, s *sample, startMS int64) {
	switch s.level {
	case reading.Good:
		a.good++
	case reading.Uncertain:
		a.uncertain++
	default:
		a.bad++
	}
	st := &s.r.Stamp
	state := reading.ClockUnknown
	if st.Clock != nil {
		state = st.Clock.State
	}
	if a.readings() == 1 || worse(state) > worse(a.state) {
		a.state = state
	}
	a.maxBound = max(a.maxBound, st.EventBound)
	a.flags |= st.Flags
	if st.EventBound.Known() {
		e, start := st.EventBound.NS(), startMS*1e6
		if s.ns-start >= e && start+f.def.SizeMS*1e6-s.ns > e {
			a.certain++
		}
	}
	if u := s.r.Unit; u > a.unit {
		a.unit = u
	}
}

// worse ranks clock states, the least trustworthy highest.
func worse(s reading.ClockState) int {
	switch s {
	case reading.ClockSynchronized:
		return 0
	case reading.ClockFreeRunning:
		return 1
	case reading.ClockUnknown:
		return 2
	case reading.ClockDisrupted:
		return 3
	}
	return 4
}

func (a *accumulator) addMoments(f *feature, x term, offsetNS int64) {
	if a.more == nil {
		a.more = new(moments)
	}
	if f.need.squares {
		a.more.squares.addProduct(x, x)
	}
	if f.need.slope {
		t := intTerm(offsetNS)
		a.more.t.add(t)
		a.more.tt.addProduct(t, t)
		a.more.tx.addProduct(t, x)
	}
}

// keep takes the sample if it lies further in the direction of sign.
func (b *bound) keep(s *sample, sign int) {
	if b.kind == reading.Missing || b.kind == s.kind && b.bits == s.bits {
		b.bits, b.kind = s.bits, s.kind
		return
	}
	c := compareNumbers(makeValue(s.kind, s.bits), makeValue(b.kind, b.bits)) * sign
	if c > 0 || c == 0 && s.kind < b.kind {
		b.bits, b.kind = s.bits, s.kind
	}
}

func (b *bound) value() reading.Value { return makeValue(b.kind, b.bits) }

func (a *accumulator) addEdges(s *sample) {
	if a.edges == nil {
		a.edges = &edges{first: newEdge(s), last: newEdge(s)}
		return
	}
	if a.edges.first.compare(s) > 0 {
		a.edges.first.set(s)
	}
	if a.edges.last.compare(s) < 0 {
		a.edges.last.set(s)
	}
}

func newEdge(s *sample) edge {
	var e edge
	e.set(s)
	return e
}

// set copies the id, which may be part of a large payload.
func (e *edge) set(s *sample) {
	e.ns, e.bits, e.kind = s.ns, s.bits, s.kind
	e.id = append(e.id[:0], s.r.ID...)
}

func (e *edge) compare(s *sample) int {
	if c := cmp.Compare(e.ns, s.ns); c != 0 {
		return c
	}
	if c := bytes.Compare(e.id, []byte(s.r.ID)); c != 0 {
		return c
	}
	return compareValues(e.kind, e.bits, s.kind, s.bits)
}

func (e *edge) value() reading.Value { return makeValue(e.kind, e.bits) }
