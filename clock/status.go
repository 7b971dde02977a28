package clock

import (
	"fmt"
	"maps"
)

// Status is the clock as `tidemark status` shows it. Offsets are true − gateway
// for the gateway and its servers, source − gateway for sources.
type Status struct {
	State       string `json:"state"`
	BoundNS     int64  `json:"bound_ns"` // -1 if none
	OffsetLoNS  int64  `json:"offset_lo_ns"`
	OffsetHiNS  int64  `json:"offset_hi_ns"`
	HasOffset   bool   `json:"has_offset"`
	Method      string `json:"method"`
	Epoch       uint32 `json:"epoch"`
	Segment     uint64 `json:"segment"`
	MissedPolls int    `json:"missed_polls"`
	Trust       string `json:"trust"`
	FloorNS     int64  `json:"time_floor_ns"`
	LeapPending bool   `json:"leap_pending"`
	HostMethod  string `json:"host_method"` // the daemon beside our own queries
	HostBoundNS int64  `json:"host_bound_ns"`
	HostError   string `json:"host_error,omitempty"`
	// Advice says in words what keeps the clock from being synchronized and what to
	// do; empty when nothing does.
	Advice  string         `json:"advice,omitempty"`
	Servers []ServerStatus `json:"servers"`
	Sources []SourceStatus `json:"sources"` // worst first
}

// ServerStatus is one configured NTP server.
type ServerStatus struct {
	Address  string `json:"address"`
	Verdict  string `json:"verdict"` // truechimer, falseticker, no_majority, local, kiss_RATE…, or a fault
	OffsetNS int64  `json:"offset_ns"`
	// DistanceNS is how far OffsetNS may be off if the server is right.
	DistanceNS int64            `json:"distance_ns"`
	RTTNS      int64            `json:"rtt_ns"`
	Stratum    uint8            `json:"stratum"`
	Answers    int64            `json:"answers"`
	Faults     map[string]int64 `json:"faults,omitempty"`
	Error      string           `json:"error,omitempty"`
	Ended      bool             `json:"ended,omitempty"` // it told us to go away
}

// Status returns the clock's present status.
func (c *Clock) Status() Status {
	now := c.Now()
	c.mu.Lock()
	s := Status{
		State: now.State.String(), BoundNS: now.BoundNS, Method: now.Segment.Method.String(),
		Epoch: now.Segment.Epoch, Segment: now.Segment.ID, MissedPolls: c.m.Missed, Trust: c.cfg.Trust.String(),
		FloorNS: c.floor.NS, LeapPending: c.leap.pending,
		HostMethod: c.host.view.method.String(), HostBoundNS: c.host.view.boundNS, HostError: c.host.err,
		HasOffset: c.m.HasHeld,
	}
	if c.m.HasHeld {
		s.OffsetLoNS, s.OffsetHiNS = c.m.Held.LoNS, c.m.Held.HiNS
	}
	for _, v := range c.servers {
		s.Servers = append(s.Servers, v.status())
	}
	s.Advice = c.adviceLocked()
	c.mu.Unlock()
	s.Sources = c.sources.status(now)
	return s
}

// Sources returns what is known of the sources' clocks, the worst first.
func (c *Clock) Sources() []SourceStatus { return c.sources.status(c.Now()) }

func (s *server) status() ServerStatus {
	st := ServerStatus{Address: s.address, Verdict: s.verdict, Answers: s.answers, Error: s.lastErr, Ended: s.ended}
	if s.hasLast {
		st.OffsetNS, st.DistanceNS, st.RTTNS, st.Stratum = s.thetaNS, s.lambdaNS, s.last.rttNS, s.last.stratum
	}
	if len(s.faults) > 0 {
		st.Faults = make(map[string]int64, len(s.faults))
		for f, n := range maps.All(s.faults) {
			st.Faults[string(f)] = n
		}
	}
	return st
}

// whyLocked is the short reason of the present state, for the log.
func (c *Clock) whyLocked() string {
	answering := 0
	for _, s := range c.servers {
		if s.hasLast {
			answering++
		}
	}
	if len(c.servers) == 0 {
		return "host daemon: " + c.host.view.method.String()
	}
	why := fmt.Sprintf("%d of %d servers answer", answering, len(c.servers))
	if 2*answering <= len(c.servers) {
		why += "; are they up, and can UDP port 123 reach them?"
	}
	return why
}
