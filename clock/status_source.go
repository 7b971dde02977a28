package clock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	// Tags is how many series the clock stamps; KeptOut how many of them wait, their
	// latest readings all in quarantine, by reason.
	Tags    int            `json:"tags,omitempty"`
	KeptOut map[string]int `json:"kept_out,omitempty"`
	// Policy is the when_wrong that would let in what is kept out, if there is one.
	Policy string `json:"policy,omitempty"`
	// Advice says in words what is wrong and what to do; empty when nothing is.
	Advice string `json:"advice,omitempty"`
}

// tags counts the series of a source, and those that are kept out by reason.
type tags struct {
	count int
	out   map[reading.Reason]int
}

// tags counts the series of every source.
func (s *sources) tags() map[*sourceClock]tags {
	all := make(map[*sourceClock]tags, len(s.clocks))
	for _, st := range s.streams.All() {
		t := all[st.source]
		t.count++
		if r := st.waits(); r != reading.OK {
			if t.out == nil {
				t.out = map[reading.Reason]int{}
			}
			t.out[r]++
		}
		all[st.source] = t
	}
	return all
}

// worst returns the reason that keeps out the most series, and how many it does.
func (t tags) worst() (r reading.Reason, n int) {
	for k, m := range t.out {
		if m > n || m == n && k < r {
			r, n = k, m
		}
	}
	return r, n
}

// status lists the sources, worst first.
func (s *sources) status(now reading.Instant) []SourceStatus {
	wmb := now.WallNS - now.BootNS
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []SourceStatus{}
	tags := s.tags()
	for _, k := range s.keys() {
		c := s.clocks[k]
		if t := tags[c]; c.measured() || len(t.out) > 0 {
			out = append(out, c.status(now, wmb, t))
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
	if len(s.KeptOut) > 0 {
		off += 1e29 // of equals, those with tags that wait come first
	}
	switch s.Verdict {
	case reading.SourceOK.String():
		return off / 1e30
	case reading.SourceOffsetPossible.String(), reading.SourceStep.String():
		return 1 + off/1e30
	}
	return 2 + off/1e30
}

func (c *sourceClock) status(now reading.Instant, wmb int64, t tags) SourceStatus {
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
	st.Tags = t.count
	for r, n := range t.out {
		if st.KeptOut == nil {
			st.KeptOut = make(map[string]int, len(t.out))
		}
		st.KeptOut[r.String()] = n
	}
	r, waiting := t.worst()
	if p, ok := suggestedPolicy(cmp.Or(verdictReason(v), r)); ok {
		st.Policy = p.String()
	}
	st.Advice = offsetAdvice(c.key.name(), i, v, zone)
	switch {
	case waiting == 0:
	case st.Advice != "":
		st.Advice = fmt.Sprintf("%s of %s wait: its clock is %s", countTags(waiting), c.key.name(), strings.TrimPrefix(st.Advice, "the clock of "+c.key.name()+" is "))
	default:
		st.Advice = fmt.Sprintf("%s of %s wait for %v: %s", countTags(waiting), c.key.name(), r, NextStep(r))
	}
	return st
}

func countTags(n int) string {
	if n == 1 {
		return "1 tag"
	}
	return strconv.Itoa(n) + " tags"
}

func (k sourceKey) name() string {
	if k.device == "" {
		return k.input
	}
	return k.input + " " + k.device
}

// offsetAdvice says what is wrong with a clock and which policy would fit.
func offsetAdvice(name string, i Interval, v reading.SourceVerdict, zone int16) string {
	of := "the clock of " + name + " is "
	switch v {
	case reading.SourceTZShaped:
		return of + fmt.Sprintf("%s, as local time labelled UTC is: set `when_wrong: correct_timezone`, or its zone", aheadOrBehind(int64(zone)*int64(time.Minute)))
	case reading.SourceTAIShaped:
		return of + "37 s ahead, as TAI sent for UTC is: set `when_wrong: correct_offset`, or its time scale"
	case reading.SourceGPSShaped:
		return of + "18 s ahead, as GPS time sent for UTC is: set `when_wrong: correct_offset`, or its time scale"
	case reading.SourceOffsetAhead:
		return of + aheadOrBehind(i.middle()) + ": set `when_wrong: correct_offset`, or its clock"
	case reading.SourceOffsetBehind:
		if i.covers(gpsRollover, rolloverSlack) {
			return of + "1024 weeks behind, as a GPS receiver is after a week rollover: update it, or set `when_wrong: correct_offset`"
		}
		return of + aheadOrBehind(i.middle()) + ": set `when_wrong: correct_offset`, or its clock"
	}
	return ""
}

// aheadOrBehind says an offset as people do: 61 min ahead.
func aheadOrBehind(ns int64) string {
	way := "ahead"
	if ns < 0 {
		ns, way = -ns, "behind"
	}
	switch d := time.Duration(ns); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s %s", d.Seconds(), way)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d min %s", (d+30*time.Second)/time.Minute, way)
	default:
		return fmt.Sprintf("%d days %s", d/(24*time.Hour), way)
	}
}
