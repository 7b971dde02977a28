package clock

import "tidemark/reading"

// selection is a good answer to "how far is the gateway's clock off": (true −
// gateway) lay within [LoNS, HiNS] at AtBootNS. The stored form has these names.
type selection struct {
	LoNS     int64               `json:"lo_ns"`
	HiNS     int64               `json:"hi_ns"`
	AtBootNS int64               `json:"at_boot_ns"`
	RhoPPB   int64               `json:"rho_ppb"`
	Method   reading.ClockMethod `json:"method"`
	Servers  uint8               `json:"servers"`
}

// bound returns E at bootNS. It holds before the selection too: drift is bounded
// in both directions.
func (s selection) bound(bootNS int64) int64 {
	return grow(reach(s.LoNS, s.HiNS), abs(bootNS-s.AtBootNS), s.RhoPPB)
}

// round is what one poll of everybody brought.
type round struct {
	bootNS int64
	outcome
	vote    selection // if a majority agreed
	servers int       // that could be asked; with none the host's daemon stands in
	host    hostView  // the host daemon's view, the second method
	rhoPPB  int64     // how fast the bound grows from here on
}

// outcome is how a poll ended.
type outcome uint8

const (
	roundMissed     outcome = iota // too few answers to decide anything
	roundAgreed                    // vote holds
	roundNoMajority                // answers that contradict each other
	roundLocal                     // nothing but local references
)

// machine turns evidence into a state (SEMANTICS, State and bound of the
// gateway's clock). It is pure: time enters as CLOCK_BOOTTIME. Its zero value is
// unknown and has no bound.
type machine struct {
	State reading.ClockState `json:"state"`
	// Held is the last selection, if HasHeld; it gives the bound while the state is
	// trusted or while its growth is what made it unknown.
	Held     selection    `json:"held"`
	HasHeld  bool         `json:"has_held"`
	Agreed   int          `json:"agreed"` // consecutive polls with a majority
	Missed   int          `json:"missed"` // consecutive polls without one
	Lost     bool         `json:"lost"`   // the daemon that stands in has lost its source
	Trace    traceability `json:"trace"`
	Carried  bool         `json:"carried"` // Held comes from before a restart
	SinceNS  int64        `json:"since_ns"`
	LastGood int64        `json:"last_good"` // when a selection last confirmed the held bound
}

// qualifyPolls consecutive majorities make a clock synchronized.
const qualifyPolls = 2

// transition is what a piece of evidence changed.
type transition struct {
	from, to reading.ClockState
	// SuspectSinceNS, if contradicted, is where the readings begin whose bound may
	// have been wrong (K6), on CLOCK_BOOTTIME.
	contradicted   bool
	suspectSinceNS int64
}

// bound returns E at bootNS, -1 if there is none. An unknown clock has one only
// where it is too large to be believed.
func (m *machine) bound(bootNS int64) int64 {
	if !m.HasHeld {
		return noBound
	}
	e := m.Held.bound(bootNS)
	if m.State == reading.ClockUnknown && e <= unknownAbove {
		return noBound
	}
	return e
}

// onRound takes in one poll.
func (m *machine) onRound(r round) transition {
	t := transition{from: m.State}
	if m.State == reading.ClockDisrupted {
		m.become(reading.ClockUnknown, r.bootNS)
	}
	r.standIn()
	if r.outcome == roundAgreed && r.disjoint() {
		r.outcome = roundNoMajority
	}
	switch r.outcome {
	case roundAgreed:
		m.agree(r, &t)
	case roundNoMajority:
		m.drop(reading.ClockUnreliable, r.bootNS)
	case roundLocal:
		m.miss(r)
		if !m.HasHeld {
			m.Trace = traceLocal
		}
	default:
		m.miss(r)
	}
	t.to = m.State
	return t
}

// standIn makes the host daemon's view the vote where no server was asked.
func (r *round) standIn() {
	switch {
	case r.servers > 0:
	case r.host.trace == traceLocal:
		r.outcome = roundLocal
	case r.host.boundNS >= 0:
		r.outcome = roundAgreed
		r.vote = selection{LoNS: -r.host.boundNS, HiNS: r.host.boundNS, AtBootNS: r.bootNS, RhoPPB: r.rhoPPB, Method: r.host.method}
	}
}

// disjoint reports whether the host daemon's view and the servers' cannot both
// be right. The kernel's maxerror is taken with a second of grace: there are
// daemons that restart it at zero.
func (r *round) disjoint() bool {
	if r.host.boundNS < 0 || r.host.lost || r.vote.Method == r.host.method {
		return false
	}
	e := r.host.boundNS
	if r.host.method == reading.MethodKernel {
		e = add(e, syncBelow)
	}
	return contradicts(r.vote.LoNS, r.vote.HiNS, e)
}

func (m *machine) agree(r round, t *transition) {
	if m.State.Trusted() && contradicts(r.vote.LoNS, r.vote.HiNS, m.Held.bound(r.bootNS)) {
		t.contradicted, t.suspectSinceNS = true, m.LastGood
		m.drop(reading.ClockUnreliable, r.bootNS)
		return
	}
	m.Held, m.HasHeld, m.Carried, m.Trace = r.vote, true, false, traceUTC
	m.LastGood, m.Missed, m.Lost = r.bootNS, 0, false
	if r.vote.Method == reading.MethodChrony {
		m.Lost = r.host.lost
	}
	if m.Agreed++; m.Agreed >= qualifyPolls || m.State.Trusted() {
		m.regrade(r.bootNS)
		return
	}
	m.become(reading.ClockUnknown, r.bootNS)
}

func (m *machine) miss(r round) {
	m.Agreed = 0
	m.Missed++
	m.onTick(r.bootNS)
}

// onTick lets time pass: the bound has grown.
func (m *machine) onTick(bootNS int64) transition {
	t := transition{from: m.State, to: m.State}
	if m.State.Trusted() {
		m.regrade(bootNS)
		t.to = m.State
	}
	return t
}

// onSleep counts the polls that fell into a sleep.
func (m *machine) onSleep(suspendNS, bootNS int64) transition {
	m.Missed += int(suspendNS / missedEvery)
	return m.onTick(bootNS)
}

// onStep takes in a step of the wall clock by dNS.
func (m *machine) onStep(e stepEvent, dNS, bootNS int64) transition {
	t := transition{from: m.State}
	switch e {
	case stepExplained:
		m.Held.LoNS -= dNS
		m.Held.HiNS -= dNS
		if m.State.Trusted() || m.State == reading.ClockUnknown && m.Agreed >= qualifyPolls {
			m.regrade(bootNS)
		}
	case stepUnexplained:
		m.drop(reading.ClockDisrupted, bootNS)
	default:
		m.onTick(bootNS)
	}
	t.to = m.State
	return t
}

// known returns the correction that the held selection asks for and how far off
// it may be.
func (m *machine) known(bootNS int64) (correctionNS, toleranceNS int64, ok bool) {
	if !m.HasHeld {
		return 0, 0, false
	}
	h := m.Held
	mid := h.LoNS + (h.HiNS-h.LoNS)/2
	return mid, grow(half(h.HiNS-h.LoNS)+stepAbove, abs(bootNS-h.AtBootNS), h.RhoPPB), true
}

// regrade sets the state that the bound calls for. A bound that has outgrown
// what can be believed is kept, and shown with the state unknown.
func (m *machine) regrade(bootNS int64) {
	m.become(grade(m.Held.bound(bootNS), m.Missed, m.Lost), bootNS)
}

// drop loses the bound: from here only re-qualification leads back.
func (m *machine) drop(s reading.ClockState, bootNS int64) {
	m.HasHeld, m.Held, m.Agreed, m.Trace = false, selection{}, 0, traceNone
	m.become(s, bootNS)
}

func (m *machine) become(s reading.ClockState, bootNS int64) {
	if s != m.State {
		m.State, m.SinceNS = s, bootNS
	}
}
