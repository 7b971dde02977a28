package clock

import (
	"math"

	"tidemark/reading"
)

// The bound of the gateway's clock: E(t) = E0 + ρ·(t − t0) on CLOCK_BOOTTIME,
// where E0 = max(|l|, |u|) for a selection that puts (true − gateway) into
// [l, u]. Sources: RFC 5905 (root distance, PHI), the chronyc manual (bound =
// |system time| + root dispersion + root delay/2), ClockBound 2 (growth,
// states). All arithmetic is int64 nanoseconds; every rounding goes up and what
// would overflow saturates.

const (
	// syncBelow is the largest bound of a synchronized clock, unknownAbove that of
	// any clock that may still be believed.
	syncBelow    = int64(1e9)
	unknownAbove = 60 * int64(1e9)
	// lostAfter missed polls end the state synchronized.
	lostAfter = 8

	// Growth of the bound in parts per billion: of a clock whose frequency a
	// daemon disciplines, of one that runs free, and where the kernel's maxerror,
	// which itself grows by that much, is all that is known.
	rhoDisciplined = 50_000
	rhoFree        = 200_000
	rhoKernel      = 500_000
	// phi is the frequency tolerance that RFC 5905 grants a server, 15 ppm.
	phi = 15_000

	noBound = int64(-1)
)

// growth returns ⌈elapsed·ρ⌉ for elapsed ≥ 0, saturating.
func growth(elapsedNS, rhoPPB int64) int64 {
	if elapsedNS <= 0 || rhoPPB <= 0 {
		return 0
	}
	s, ns := elapsedNS/1e9, elapsedNS%1e9
	if s > math.MaxInt64/4/rhoPPB {
		return math.MaxInt64 / 4
	}
	return s*rhoPPB + (ns*rhoPPB+1e9-1)/1e9
}

// grow returns e0 + growth, saturating; no bound stays none.
func grow(e0, elapsedNS, rhoPPB int64) int64 {
	if e0 < 0 {
		return noBound
	}
	return add(e0, growth(elapsedNS, rhoPPB))
}

// add returns a + b for non-negative a and b, saturating.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func abs(x int64) int64 {
	switch {
	case x == math.MinInt64:
		return math.MaxInt64
	case x < 0:
		return -x
	}
	return x
}

// reach returns max(|lo|, |hi|), the bound that an interval for (true − gateway)
// gives.
func reach(lo, hi int64) int64 { return max(abs(lo), abs(hi)) }

// grade returns the state of a clock that has a bound: unknown above 60 s,
// free-running above 1 s, after 8 missed polls or when the daemon lost its
// source, else synchronized.
func grade(boundNS int64, missed int, lost bool) reading.ClockState {
	switch {
	case boundNS < 0 || boundNS > unknownAbove:
		return reading.ClockUnknown
	case boundNS > syncBelow || missed >= lostAfter || lost:
		return reading.ClockFreeRunning
	}
	return reading.ClockSynchronized
}

// traceability is what a clock's bound goes back to.
type traceability uint8

const (
	traceNone traceability = iota
	traceLocal
	traceUTC
)

// String returns NONE, LOCAL or UTC.
func (t traceability) String() string { return [...]string{"NONE", "LOCAL", "UTC"}[min(t, traceUTC)] }

// hostView is what the host's own time daemon says, as an error bound.
type hostView struct {
	method  reading.ClockMethod
	trace   traceability
	boundNS int64 // -1 if none
	lost    bool  // the daemon has lost its source
}

// noView is that of a host without a daemon to ask.
var noView = hostView{boundNS: noBound}

// chronyReading is chronyd's tracking report. A float second of 53 bits is
// exact far below a nanosecond in the range that can be believed.
type chronyReading struct {
	RefID            uint32
	Stratum          uint16
	Synchronised     bool // the leap status is not "Not synchronised"
	LeapPending      bool
	SystemTimeNS     int64 // offset still to be slewed away
	RootDelayNS      int64
	RootDispersionNS int64
}

// chronyLocal is the reference id of chronyd's `local` directive. Its delay and
// dispersion are zero and mean nothing.
const chronyLocal = 0x7F7F0101

// localStratum is where a local reference is (SEMANTICS K1): chronyd's `local` and
// ntpd's local clock say 10, whoever follows them more.
const localStratum = 10

// view returns the bound of the chronyc manual: |system time| + root dispersion
// + root delay/2.
func (r chronyReading) view() hostView {
	if r.RefID == chronyLocal || r.Stratum >= localStratum {
		return hostView{method: reading.MethodChrony, trace: traceLocal, boundNS: noBound}
	}
	e := add(add(abs(r.SystemTimeNS), max(r.RootDispersionNS, 0)), half(max(r.RootDelayNS, 0)))
	return hostView{method: reading.MethodChrony, trace: traceUTC, boundNS: e, lost: !r.Synchronised}
}

// half returns ⌈x/2⌉ for x ≥ 0.
func half(x int64) int64 { return x/2 + x%2 }

// kernelReading is what adjtimex says. STA_UNSYNC is no part of it: chrony
// clears that bit only with rtcsync.
type kernelReading struct {
	MaxErrorUS      int64
	PendingOffsetNS int64
	Disciplined     bool // STA_UNSYNC is clear: somebody steers the frequency
	LeapPending     bool
}

// kernelUnsync is the maxerror that the kernel sets when nobody vouches for its
// clock (NTP_PHASE_LIMIT, 16 s).
const kernelUnsync = 16_000_000

// view returns maxerror + |pending offset|. Zero is where systemd-timesyncd
// starts maxerror, and no bound.
func (r kernelReading) view() hostView {
	if r.MaxErrorUS <= 0 || r.MaxErrorUS >= kernelUnsync {
		return hostView{method: reading.MethodKernel, boundNS: noBound}
	}
	e := add(r.MaxErrorUS*1e3, abs(r.PendingOffsetNS))
	return hostView{method: reading.MethodKernel, trace: traceUTC, boundNS: e}
}

// contradicts reports whether an interval for (true − gateway) lies outside the
// bound that was held (SEMANTICS K6).
func contradicts(lo, hi, boundNS int64) bool { return lo > boundNS || hi < -boundNS }
