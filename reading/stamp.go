package reading

import (
	"math"
	"math/bits"
)

// Disposition is what the clock rules decided about a reading. The zero value
// is unjudged, and unjudged readings are never windowed.
type Disposition uint8

const (
	Unjudged   Disposition = iota
	Accept                 // the source time holds
	Flag                   // accepted with something to say about it: see Flags
	Quarantine             // a rule is broken: kept as evidence, moves nothing
	Pending                // the gateway cannot vouch for itself; judged again when it can
)

// String returns ACCEPT, FLAG, QUARANTINE or PENDING, as `tidemark judge` prints
// it.
func (d Disposition) String() string {
	return [...]string{"UNJUDGED", "ACCEPT", "FLAG", "QUARANTINE", "PENDING"}[min(d, Pending)]
}

// Accepted reports whether the reading may be windowed.
func (d Disposition) Accepted() bool { return d == Accept || d == Flag }

// Reason says why a reading is quarantined or pending (SEMANTICS part 2,
// Disposition). Codes are stored: append, never renumber.
type Reason uint8

const (
	OK Reason = iota
	SourceDeclaredBad
	Frozen
	UptimeCounter
	Regression
	UnitMismatch
	TSUnparseable
	TSSentinel
	GWUnknown
	GWDisrupted
	GWUnreliable
	OffsetAhead
	OffsetBehind
	TZShaped
	TAIShaped
	GPSShaped
	Future
	TooOld
	BoundTooWide
	SourceTimeRange
	EngineFault // the engine failed on this reading
)

var reasonNames = [...]string{
	OK: "OK", SourceDeclaredBad: "SOURCE_DECLARED_BAD", Frozen: "FROZEN", UptimeCounter: "UPTIME_COUNTER",
	Regression: "REGRESSION", UnitMismatch: "UNIT_MISMATCH", TSUnparseable: "TS_UNPARSEABLE", TSSentinel: "TS_SENTINEL",
	GWUnknown: "GW_UNKNOWN", GWDisrupted: "GW_DISRUPTED", GWUnreliable: "GW_UNRELIABLE",
	OffsetAhead: "OFFSET_AHEAD", OffsetBehind: "OFFSET_BEHIND", TZShaped: "TZ_SHAPED", TAIShaped: "TAI_SHAPED",
	GPSShaped: "GPS_SHAPED", Future: "FUTURE", TooOld: "TOO_OLD", BoundTooWide: "BOUND_TOO_WIDE",
	SourceTimeRange: "SOURCE_TIME_RANGE", EngineFault: "ENGINE_FAULT",
}

// String returns the reason as records spell it.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "UNKNOWN_REASON"
}

// QuarantineReasons lists the reasons for which a reading may be in quarantine, as
// records spell them. Those of the gateway's own clock are for pending readings that
// nothing ever decided.
func QuarantineReasons() []string { return reasonNames[SourceDeclaredBad:] }

// Flags are what an accepted reading carries besides its times. Bits are
// stored: append, never renumber.
type Flags uint16

const (
	SourceUnsync Flags = 1 << iota
	IngestUsed
	ServerTSUsed
	Corrected
	RetroCorrected
	HistoricalFlag
	FuturePossible
	OffsetPossible
	LeapWindow
	TZAssumed
	GWFreeRunning
)

var flagNames = [...]string{
	"SOURCE_UNSYNC", "INGEST_USED", "SERVER_TS_USED", "CORRECTED", "RETRO_CORRECTED", "HISTORICAL",
	"FUTURE_POSSIBLE", "OFFSET_POSSIBLE", "LEAP_WINDOW", "TZ_ASSUMED", "GW_FREE_RUNNING",
}

// Names returns the flags as records spell them, in the order of their bits.
func (f Flags) Names() []string { return bitNames(f, flagNames[:]) }

// Basis says which clock the event time came from.
type Basis uint8

const (
	BasisSource Basis = iota
	BasisServer
	BasisIngest
	BasisCorrected
)

// String returns source, server, ingest or corrected.
func (b Basis) String() string {
	return [...]string{"source", "server", "ingest", "corrected"}[min(b, BasisCorrected)]
}

// Policy is what an input does with a wrong source time. The zero value rejects.
type Policy uint8

const (
	PolicyReject Policy = iota
	PolicyUseServer
	PolicyUseIngest
	PolicyCorrectOffset
	PolicyCorrectTimezone
	PolicyCorrectUnit
	// PolicyTrusted skips every rule but the structural ones and puts no cap on the
	// watermark: for benches, simulators and replayed history.
	PolicyTrusted
)

var policyNames = [...]string{"reject", "use_server", "use_ingest", "correct_offset", "correct_timezone", "correct_unit", "trusted"}

// String returns the policy as the configuration spells it.
func (p Policy) String() string { return policyNames[min(p, PolicyTrusted)] }

// ParsePolicy is the inverse of String.
func ParsePolicy(s string) (Policy, bool) {
	for i, n := range policyNames {
		if n == s {
			return Policy(i), true
		}
	}
	return PolicyReject, false
}

// PolicyNames lists the policies as the configuration spells them.
func PolicyNames() []string { return policyNames[:] }

// Bound is an error bound in the stored form ceil(2·log2 ns): steps of √2, so
// that one byte spans a nanosecond to centuries and a stored bound is never
// smaller than the exact one. The zero Bound is "no bound known".
type Bound uint8

// MakeBound returns the smallest Bound that is at least ns; for negative ns
// there is none.
func MakeBound(ns int64) Bound {
	if ns < 0 {
		return 0
	}
	// The code below that of the largest power of two that is no more than ns; the
	// one that is looked for is at most three steps on.
	for b := Bound(max(2*bits.Len64(uint64(ns))-2, 1)); ; b++ {
		if b.NS() >= ns {
			return b
		}
	}
}

// Known reports whether there is a bound.
func (b Bound) Known() bool { return b != 0 }

// NS returns the bound in nanoseconds, rounded up, and -1 if there is none.
func (b Bound) NS() int64 {
	switch {
	case b == 0:
		return -1
	case int(b) >= len(boundNS):
		return math.MaxInt64
	}
	return boundNS[b]
}

// boundNS[b] = ceil(2^((b-1)/2)); code 1 is one nanosecond or less.
var boundNS = func() (t [127]int64) {
	for b := 1; b < len(t); b++ {
		if f := math.Ceil(math.Exp2(float64(b-1) / 2)); f < math.MaxInt64 {
			t[b] = int64(f)
		} else {
			t[b] = math.MaxInt64
		}
	}
	return
}()

// Stamp is the clock's judgement of one reading: which time decides its window,
// how far that can be trusted, and what was wrong. Bounds are kept in stored
// form from the moment of judging, so that what the engine sees live and what it
// sees from the journal are the same.
type Stamp struct {
	Disposition Disposition
	Reason      Reason
	Basis       Basis
	Policy      Policy
	Flags       Flags
	EventBound  Bound // of EventNS against true time
	IngestBound Bound // of IngestNS against true time
	TimeQuality uint8 // IEC 61850-7-2 time quality octet; 0 when the source sent none

	EventNS     int64 // the judged source time; NoTime unless accepted
	WatermarkMS int64 // the highest event time this reading can vouch for (SEMANTICS G3), or NoTime

	Clock *ClockSegment // the gateway's clock at arrival; never changed once shared
	// Source is what was known of the source's clock, nil if not measured;
	// never changed once shared.
	Source *SourceSegment
}
