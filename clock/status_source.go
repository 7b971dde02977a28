package clock

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tidemark/reading"
)

// SourceStatus is one source clock, measured one way from its readings, or, with
// Server set, both ways. Offsets are source − gateway.
type SourceStatus struct {
	Input      string  `json:"input"`
	Device     string  `json:"device,omitempty"`
	Server     bool    `json:"server,omitempty"`
	OffsetLoNS int64   `json:"offset_lo_ns"`
	OffsetHiNS int64   `json:"offset_hi_ns"` // one way: assuming that a reading travels no longer than D_cap
	Verdict    string  `json:"verdict"`
	ZoneMin    int16   `json:"tz_minutes,omitempty"`
	Samples    int64   `json:"samples"`
	DriftPPB   float64 `json:"drift_ppb"`
	HasDrift   bool    `json:"has_drift"`
	DriftHigh  bool    `json:"drift_high,omitempty"`
	Steps      int64   `json:"steps,omitempty"`
	Wrong      int64   `json:"wrong_readings,omitempty"` // quarantined for this clock since the start
	// Advice says in words what is wrong and what to do; empty when nothing is.
	Advice string `json:"advice,omitempty"`
}

// status lists the sources, worst first.
func (s *sources) status(now Instant) []SourceStatus {
	wmb := now.WallNS - now.BootNS
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []SourceStatus{}
	for _, k := range s.keys() {
		if c := s.clocks[k]; c.measured() {
			out = append(out, c.status(now, wmb))
		}
	}
	for input, sc := range s.servers {
		i, v := sc.view(now.BootNS, wmb, max(now.BoundNS, 0))
		out = append(out, SourceStatus{Input: input, Server: true, OffsetLoNS: i.LoNS, OffsetHiNS: i.HiNS,
			Verdict: v.String(), Samples: int64(len(sc.exchanges)), Steps: sc.steps, Advice: offsetAdvice(input, i, v, 0)})
	}
	slices.SortStableFunc(out, func(a, b SourceStatus) int {
		return cmp.Or(cmp.Compare(severity(b), severity(a)), cmp.Compare(a.Input, b.Input), cmp.Compare(a.Device, b.Device))
	})
	return out
}

// severity orders sources: proven wrong before possibly wrong before right, and
// among them the further off first.
func severity(s SourceStatus) float64 {
	off := float64(min(abs(s.OffsetLoNS), abs(s.OffsetHiNS)))
	switch s.Verdict {
	case reading.SourceOK.String():
		return off / 1e30
	case reading.SourceOffsetPossible.String(), reading.SourceStep.String():
		return 1 + off/1e30
	}
	return 2 + off/1e30
}

func (c *sourceClock) status(now Instant, wmb int64) SourceStatus {
	e := max(now.BoundNS, 0)
	env, n := c.good, c.good.n
	switch {
	case c.isAhead:
		env, n = c.ahead, c.ahead.n
	case c.isBehind:
		env, n = c.behind, c.behind.n
	}
	i := env.interval(now.BootNS, wmb, c.dCap)
	v, zone := verdictOneWay(i, e)
	if !c.isAhead && !c.isBehind && verdictReason(v) != reading.OK {
		v, zone = reading.SourceOffsetPossible, 0 // past is only suspicion
	}
	st := SourceStatus{Input: c.key.input, Device: c.key.device, OffsetLoNS: i.LoNS, OffsetHiNS: i.HiNS,
		Verdict: v.String(), ZoneMin: zone, Samples: n, Wrong: c.wrong}
	st.DriftPPB, st.HasDrift = c.drift()
	st.DriftHigh = st.HasDrift && (st.DriftPPB > driftAbove || st.DriftPPB < -driftAbove)
	st.Advice = offsetAdvice(c.key.name(), i, v, zone)
	return st
}

func (k sourceKey) name() string {
	if k.device == "" {
		return k.input
	}
	return k.input + " " + k.device
}

// offsetAdvice says what is wrong with a clock and which policy would fit.
func offsetAdvice(name string, i Interval, v reading.SourceVerdict, zone int16) string {
	off := (time.Duration(i.middle()) / time.Second * time.Second).Abs()
	switch v {
	case reading.SourceTZShaped:
		return fmt.Sprintf("the clock of %s is %+d min off, as local time labelled UTC is: set its zone, or when_wrong: correct_timezone", name, zone)
	case reading.SourceTAIShaped:
		return fmt.Sprintf("the clock of %s is 37 s ahead, as TAI sent for UTC is: set its time scale, or when_wrong: correct_offset", name)
	case reading.SourceGPSShaped:
		return fmt.Sprintf("the clock of %s is 18 s ahead, as GPS time sent for UTC is: set its time scale, or when_wrong: correct_offset", name)
	case reading.SourceOffsetAhead:
		return fmt.Sprintf("the clock of %s is %v ahead: set it, or when_wrong: correct_offset", name, off)
	case reading.SourceOffsetBehind:
		if i.covers(gpsRollover, rolloverSlack) {
			return fmt.Sprintf("the clock of %s is 1024 weeks behind, as a GPS receiver is after a week rollover: update it, or when_wrong: correct_offset", name)
		}
		return fmt.Sprintf("the clock of %s is %v behind: set it, or when_wrong: correct_offset", name, off)
	}
	return ""
}
