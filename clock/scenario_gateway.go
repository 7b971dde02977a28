package clock

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tidemark/reading"
)

// The operations on the gateway's clock. Given fields end in their unit.

func stateName(s reading.ClockState) string { return strings.ToUpper(s.String()) }

func parseState(s string) (reading.ClockState, error) {
	for st := reading.ClockUnknown; st <= reading.ClockUnreliable; st++ {
		if stateName(st) == s {
			return st, nil
		}
	}
	return 0, fmt.Errorf("state %q is none of SYNCHRONIZED, FREE_RUNNING, UNKNOWN, DISRUPTED, UNRELIABLE", s)
}

// orNull returns nil for no bound.
func orNull(boundNS int64) *int64 {
	if boundNS < 0 {
		return nil
	}
	return &boundNS
}

func orElse(p *int64, def int64) int64 {
	if p == nil {
		return def
	}
	return *p
}

type boundGiven struct {
	Method           string `json:"method"`
	RefID            string `json:"refid"`
	Leap             string `json:"leap"`
	SystemTimeNS     int64  `json:"system_time_ns"`
	RootDelayNS      int64  `json:"root_delay_ns"`
	RootDispersionNS int64  `json:"root_dispersion_ns"`
	MaxErrorUS       *int64 `json:"maxerror_us"`
	PendingOffsetNS  int64  `json:"pending_offset_ns"`
	E0NS             *int64 `json:"E0_ns"`
	ElapsedNS        int64  `json:"elapsed_boottime_ns"`
	RhoPPB           *int64 `json:"rho_ppb"`
	PollsMissed      int    `json:"polls_missed"`
}

func (g boundGiven) result() (any, error) {
	v, err := g.view()
	if err != nil {
		return nil, err
	}
	e := grow(v.boundNS, g.ElapsedNS, orElse(g.RhoPPB, rhoDisciplined))
	return struct {
		State        string `json:"state"`
		Traceability string `json:"traceability"`
		ENS          *int64 `json:"E_ns"`
	}{stateName(grade(e, g.PollsMissed, v.lost)), v.trace.String(), orNull(e)}, nil
}

func (g boundGiven) view() (hostView, error) {
	switch g.Method {
	case "CHRONY":
		id, err := strconv.ParseUint(g.RefID, 16, 32)
		if err != nil && g.RefID != "" {
			return hostView{}, fmt.Errorf("refid %q is no 32-bit hexadecimal number", g.RefID)
		}
		return chronyReading{RefID: uint32(id), Synchronised: g.Leap != "Not synchronised", SystemTimeNS: g.SystemTimeNS,
			RootDelayNS: g.RootDelayNS, RootDispersionNS: g.RootDispersionNS}.view(), nil
	case "KERNEL":
		return kernelReading{MaxErrorUS: orElse(g.MaxErrorUS, kernelUnsync), PendingOffsetNS: g.PendingOffsetNS}.view(), nil
	case "HELD", "NTP", "SNTP":
		if g.E0NS == nil {
			return hostView{boundNS: noBound}, nil
		}
		return hostView{trace: traceUTC, boundNS: max(*g.E0NS, 0)}, nil
	case "LOCAL":
		return hostView{trace: traceLocal, boundNS: noBound}, nil
	case "NONE":
		return hostView{boundNS: noBound}, nil
	}
	return hostView{}, fmt.Errorf("method %q is none of CHRONY, KERNEL, HELD, NTP, LOCAL, NONE", g.Method)
}

type selectGiven struct {
	Servers []struct {
		ThetaNS  *int64 `json:"theta_ns"`
		LambdaNS *int64 `json:"lambda_ns"`
	} `json:"servers"`
}

func (g selectGiven) result() (any, error) {
	var c []candidate
	for i, s := range g.Servers {
		if s.ThetaNS == nil || s.LambdaNS == nil || *s.LambdaNS < 0 {
			return nil, fmt.Errorf("server %d needs theta_ns and lambda_ns", i)
		}
		c = append(c, candidate{*s.ThetaNS, *s.LambdaNS})
	}
	type result struct {
		OK           bool   `json:"ok"`
		LoNS         *int64 `json:"lo_ns"`
		HiNS         *int64 `json:"hi_ns"`
		Falsetickers []int  `json:"falsetickers"`
		ENS          *int64 `json:"E_ns"`
		State        string `json:"state"`
	}
	in := intersect(c)
	if !in.ok {
		state := reading.ClockUnreliable
		if len(c) == 0 {
			state = reading.ClockUnknown
		}
		return result{Falsetickers: []int{}, State: stateName(state)}, nil
	}
	e := reach(in.lo, in.hi)
	return result{true, &in.lo, &in.hi, append([]int{}, in.false...), &e, stateName(grade(e, 0, false))}, nil
}

type stepGiven struct {
	State       string `json:"state"`
	ENS         *int64 `json:"E_ns"`
	DNS         *int64 `json:"d_real_minus_boot_ns"`
	KnownNS     *int64 `json:"known_correction_ns"`
	LeapPending bool   `json:"leap_pending"`
	SuspendNS   int64  `json:"suspend_ns"`
	PollsMissed int    `json:"polls_missed"`
	RhoPPB      *int64 `json:"rho_ppb"`
}

func (g stepGiven) result() (any, error) {
	state, err := parseState(g.State)
	if err != nil {
		return nil, err
	}
	if g.DNS == nil {
		return nil, errors.New("d_real_minus_boot_ns is missing")
	}
	e := orElse(g.ENS, noBound)
	ev := change{dNS: *g.DNS, suspendNS: g.SuspendNS, knownNS: orElse(g.KnownNS, 0), hasKnown: g.KnownNS != nil,
		toleranceNS: max(e, 0), leapPending: g.LeapPending}.event()
	var retro *int64
	switch ev {
	case stepSuspend:
		state, e = g.slept(state, e)
	case stepLeap:
		retro = new(int64)
	case stepExplained:
		retro = g.DNS
	case stepUnexplained:
		state, e = reading.ClockDisrupted, noBound
	}
	return struct {
		Event    string `json:"event"`
		State    string `json:"state"`
		NewEpoch bool   `json:"new_epoch"`
		RetroNS  *int64 `json:"retro_correction_ns"`
		ENS      *int64 `json:"E_ns"`
	}{ev.String(), stateName(state), ev.newEpoch(), retro, orNull(e)}, nil
}

// slept lets a clock that has a bound sleep. One that is not trusted stays so,
// and what is shown of its bound grows.
func (g stepGiven) slept(state reading.ClockState, e int64) (reading.ClockState, int64) {
	if !state.Trusted() || e < 0 {
		return state, grow(e, g.SuspendNS, orElse(g.RhoPPB, rhoDisciplined))
	}
	m := machine{State: state, HasHeld: true, Missed: g.PollsMissed, Lost: state == reading.ClockFreeRunning,
		Held: selection{LoNS: -e, HiNS: e, RhoPPB: orElse(g.RhoPPB, rhoDisciplined)}}
	m.onSleep(g.SuspendNS, g.SuspendNS)
	return m.State, m.bound(g.SuspendNS)
}

type violationGiven struct {
	E0NS      *int64 `json:"E0_ns"`
	ElapsedNS int64  `json:"elapsed_boottime_ns"`
	RhoPPB    *int64 `json:"rho_ppb"`
	LoNS      *int64 `json:"ntp_lo_ns"`
	HiNS      *int64 `json:"ntp_hi_ns"`
}

func (g violationGiven) result() (any, error) {
	if g.E0NS == nil || g.LoNS == nil || g.HiNS == nil || *g.E0NS < 0 || *g.LoNS > *g.HiNS {
		return nil, errors.New("needs E0_ns and ntp_lo_ns ≤ ntp_hi_ns")
	}
	type result struct {
		PredictedNS int64   `json:"predicted_E_ns"`
		Violated    bool    `json:"violated"`
		State       string  `json:"state"`
		ENS         *int64  `json:"E_ns"`
		BackTo      *string `json:"invalidate_back_to"`
	}
	predicted := grow(*g.E0NS, g.ElapsedNS, orElse(g.RhoPPB, rhoDisciplined))
	if contradicts(*g.LoNS, *g.HiNS, predicted) {
		backTo := "last_good_selection"
		return result{PredictedNS: predicted, Violated: true, State: stateName(reading.ClockUnreliable), BackTo: &backTo}, nil
	}
	e := reach(*g.LoNS, *g.HiNS)
	return result{PredictedNS: predicted, State: stateName(grade(e, 0, false)), ENS: &e}, nil
}

type pollGiven struct {
	PollS *int64 `json:"poll_s"`
	Event string `json:"event"`
}

func (g pollGiven) result() (any, error) {
	if g.PollS == nil || *g.PollS < 0 || *g.PollS > math.MaxInt32 {
		return nil, errors.New("needs poll_s, in seconds")
	}
	next, usable := nextPoll(*g.PollS, g.Event)
	res := struct {
		NextS  *int64 `json:"next_poll_s"`
		Usable bool   `json:"server_usable"`
	}{Usable: usable}
	if usable {
		res.NextS = &next
	}
	return res, nil
}
