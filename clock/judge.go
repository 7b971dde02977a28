package clock

import (
	"time"

	"tidemark/reading"
)

// judgement is a Judge at work.
type judgement struct {
	g     Given
	v     Verdict
	ti    int64
	ts    int64
	theta Interval
	// settled skips what was measured of the source: the time is the gateway's own
	// or corrected by that.
	settled bool
	bound   int64 // E_e of a settled time
}

// Judge rules on one reading's source time (SEMANTICS part 2, Disposition). It
// is a pure function, and the only place where the rules are.
func Judge(g Given) Verdict {
	j := judgement{g: g, ti: g.IngestNS + g.RetroNS, ts: g.SourceNS, theta: g.Source}
	j.v.Basis = reading.BasisSource
	if g.Fault != reading.TimeOK {
		j.ts = reading.NoTime
	}
	j.flag(g.RetroNS != 0, reading.RetroCorrected)
	j.flag(g.Historical, reading.HistoricalFlag)
	j.flag(g.LeapWindow, reading.LeapWindow)
	j.flag(g.State == reading.ClockFreeRunning, reading.GWFreeRunning)
	if r := j.rule(); r != reading.OK {
		return j.refuse(r)
	}
	return j.accept()
}

// rule goes through the steps in the order of the rule; the first refusal counts.
func (j *judgement) rule() reading.Reason {
	if r := j.structural(); r != reading.OK {
		return r
	}
	if r := j.gateway(); r != reading.OK {
		return r
	}
	j.null()
	if r := j.source(); r != reading.OK {
		return r
	}
	if r := j.lead(); r != reading.OK {
		return r
	}
	return j.width()
}

func (j *judgement) flag(when bool, f reading.Flags) {
	if when {
		j.v.Flags |= f
	}
}

// structural is step 1: what needs no gateway clock.
func (j *judgement) structural() reading.Reason {
	r := j.structuralFault()
	if r == reading.OK {
		return reading.OK
	}
	if r == reading.UnitMismatch && j.g.Policy == reading.PolicyCorrectUnit {
		j.ts = j.g.Number.in(j.v.FitsUnit)
		j.v.Basis, j.v.FitsUnit = reading.BasisCorrected, reading.UnitNone
		j.flag(true, reading.Corrected)
		return reading.OK
	}
	return j.substitute(r)
}

func (j *judgement) structuralFault() reading.Reason {
	g := &j.g
	if g.HasTimeQuality {
		if g.TimeQuality&clockFailure != 0 {
			return reading.SourceDeclaredBad
		}
		j.flag(g.TimeQuality&clockNotSynchronized != 0, reading.SourceUnsync)
	}
	h := g.History
	switch {
	case h.Proven != reading.OK:
		return h.Proven
	case h.ValueChanged && h.SameTimeRun >= frozenRun && j.standstill() > frozenLag+h.ResolutionNS:
		return reading.Frozen
	case h.CounterSlopeOne && g.Number.Sent && g.Number.Whole && g.Number.in(g.Number.Unit) < sentinelBelow:
		return reading.UptimeCounter
	case h.Ordered && h.PrevNS != reading.NoTime && j.ts != reading.NoTime && h.PrevNS-j.ts > regressionAbove:
		return reading.Regression
	}
	if g.Number.Sent {
		if fits, r := g.Number.fault(); r != reading.OK {
			j.v.FitsUnit = fits
			return r
		}
	}
	switch {
	case g.Fault == reading.TimeUnparseable:
		return reading.TSUnparseable
	case g.Fault == reading.TimeRange:
		return reading.TSSentinel // whatever int64 cannot hold is before 1990 or after 2100
	case j.ts != reading.NoTime && (j.ts < sentinelBelow || j.ts >= sentinelFrom):
		return reading.TSSentinel
	}
	return reading.OK
}

// standstill is how long the timestamp has stood still.
func (j *judgement) standstill() int64 {
	if j.g.History.HasStandstill {
		return j.g.History.StandstillNS
	}
	if j.ts == reading.NoTime {
		return 0
	}
	return j.ti - j.ts
}

// substitute lets the input's policy stand in for the fault r: another time is
// taken, or r stands.
func (j *judgement) substitute(r reading.Reason) reading.Reason {
	switch {
	case j.g.Policy == reading.PolicyUseServer && j.v.Basis == reading.BasisSource:
		j.useServer()
	case j.g.Policy == reading.PolicyUseIngest:
		j.useIngest()
	default:
		return r
	}
	return reading.OK
}

// useServer takes the server's timestamp, and ingest time where there is none.
func (j *judgement) useServer() {
	if s := j.g.ServerNS; s == reading.NoTime || s < sentinelBelow || s >= sentinelFrom {
		j.useIngest()
		return
	}
	j.ts, j.theta = j.g.ServerNS, j.g.Server
	j.v.Basis = reading.BasisServer
	j.v.FitsUnit = reading.UnitNone
	j.flag(true, reading.ServerTSUsed)
}

func (j *judgement) useIngest() {
	j.ts, j.settled = j.ti, true
	j.bound = noBound
	if j.g.BoundNS >= 0 {
		j.bound = add(j.g.BoundNS, j.g.DelayNS)
	}
	j.v.Basis = reading.BasisIngest
	j.v.FitsUnit = reading.UnitNone
	j.v.Flags &^= reading.ServerTSUsed
	j.flag(true, reading.IngestUsed)
}

// gateway is step 2: a gateway that cannot vouch for itself accuses nobody, and
// lends nobody its own time.
func (j *judgement) gateway() reading.Reason {
	g := &j.g
	switch {
	case g.Policy == reading.PolicyTrusted && j.ts != reading.NoTime:
		return reading.OK
	case g.State.Trusted() && g.BoundNS >= 0, g.State == reading.ClockUnknown && g.LocalTrust && g.BoundNS >= 0:
		return reading.OK
	case g.State == reading.ClockDisrupted:
		return reading.GWDisrupted
	case g.State == reading.ClockUnreliable:
		return reading.GWUnreliable
	}
	return reading.GWUnknown
}

// null is step 3.
func (j *judgement) null() {
	if j.ts == reading.NoTime {
		j.useServer()
	}
}

// source is step 4: what was measured of the clock that the time came from.
func (j *judgement) source() reading.Reason {
	if j.settled || j.g.Policy == reading.PolicyTrusted {
		return reading.OK
	}
	verdict := j.g.SourceVerdict
	if j.v.Basis == reading.BasisServer {
		verdict = j.g.ServerVerdict
	}
	j.flag(verdict == reading.SourceOffsetPossible || verdict == reading.SourceStep, reading.OffsetPossible)
	r := verdictReason(verdict)
	if r == reading.OK || j.correct(verdict) {
		return reading.OK
	}
	if r = j.substitute(r); r == reading.OK && j.v.Basis == reading.BasisServer {
		return j.source()
	}
	return r
}

func verdictReason(v reading.SourceVerdict) reading.Reason {
	switch v {
	case reading.SourceOffsetAhead:
		return reading.OffsetAhead
	case reading.SourceOffsetBehind:
		return reading.OffsetBehind
	case reading.SourceTZShaped:
		return reading.TZShaped
	case reading.SourceTAIShaped:
		return reading.TAIShaped
	case reading.SourceGPSShaped:
		return reading.GPSShaped
	}
	return reading.OK
}

// correct takes off what was measured, if the policy says so.
func (j *judgement) correct(verdict reading.SourceVerdict) bool {
	if j.v.Basis == reading.BasisServer {
		return false
	}
	var shift int64
	switch {
	case j.g.Policy == reading.PolicyCorrectOffset:
		shift = j.theta.middle()
	case j.g.Policy == reading.PolicyCorrectTimezone && verdict == reading.SourceTZShaped:
		shift = int64(j.g.ZoneMin) * int64(time.Minute)
	default:
		return false
	}
	j.ts -= shift
	j.settled = true
	j.bound = add(j.theta.less(shift).reach(0), j.g.BoundNS)
	j.v.Basis = reading.BasisCorrected
	j.flag(true, reading.Corrected)
	return true
}

// lead is steps 5 and 6: the time against the gateway's own.
func (j *judgement) lead() reading.Reason {
	if j.g.Policy == reading.PolicyTrusted || j.v.Basis == reading.BasisCorrected && j.settled {
		return reading.OK
	}
	lead, e, leap := j.ts-j.ti, j.g.BoundNS, j.leap() // of the gateway's own time 0
	r := reading.OK
	switch {
	case lead-e-leap > j.g.FutureNS:
		r = reading.Future
	case -lead-e > j.g.PastNS && !j.g.Historical && !j.g.Initial:
		r = reading.TooOld
	}
	if r != reading.OK {
		if r = j.substitute(r); r == reading.OK && j.v.Basis == reading.BasisServer {
			if r = j.source(); r == reading.OK {
				return j.lead()
			}
		}
		return r
	}
	j.flag(lead+e+leap > j.g.FutureNS, reading.FuturePossible)
	return reading.OK
}

func (j *judgement) leap() int64 {
	if j.g.LeapWindow {
		return leapAllowance
	}
	return 0
}

// width is step 7: a bound as wide as half the largest window says nothing about
// the window.
func (j *judgement) width() reading.Reason {
	if !j.settled {
		j.bound = noBound
		if j.g.BoundNS >= 0 {
			j.bound = add(j.theta.reach(j.g.BoundNS), j.leap())
		}
	}
	if j.g.Policy != reading.PolicyTrusted && j.g.WindowNS > 0 && j.bound >= half(j.g.WindowNS) {
		return reading.BoundTooWide
	}
	return reading.OK
}

// accept is step 8.
func (j *judgement) accept() Verdict {
	v := j.v
	v.Disposition = reading.Accept
	j.flag(j.g.TZAssumed && (v.Basis == reading.BasisSource || v.Basis == reading.BasisCorrected), reading.TZAssumed)
	v.Flags = j.v.Flags
	if v.Flags != 0 {
		v.Disposition = reading.Flag
	}
	v.EventNS, v.EventBound, v.WatermarkNS = j.ts, j.bound, j.ts
	switch {
	case j.g.Historical || j.g.Initial: // G3
		v.WatermarkNS = reading.NoTime
	case j.g.Policy != reading.PolicyTrusted || j.v.Basis == reading.BasisIngest:
		v.WatermarkNS = min(j.ts, j.ti-j.g.BoundNS)
	}
	return v
}

func (j *judgement) refuse(r reading.Reason) Verdict {
	v := Verdict{
		Disposition: reading.Quarantine, Reason: r, Basis: reading.BasisSource, FitsUnit: j.v.FitsUnit,
		EventNS: reading.NoTime, EventBound: noBound, WatermarkNS: reading.NoTime,
	}
	switch r {
	case reading.GWUnknown, reading.GWDisrupted, reading.GWUnreliable:
		v.Disposition, v.FitsUnit = reading.Pending, reading.UnitNone
	}
	return v
}
