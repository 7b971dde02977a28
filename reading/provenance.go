package reading

// ClockState is how far the gateway's own clock can be trusted (SEMANTICS part 2,
// State and bound). The zero value is unknown, and trusts nothing.
type ClockState uint8

const (
	ClockUnknown ClockState = iota
	ClockSynchronized
	ClockFreeRunning
	ClockDisrupted
	ClockUnreliable
)

// String returns the state as records spell it: unknown, synchronized,
// free_running, disrupted, unreliable.
func (s ClockState) String() string {
	return [...]string{"unknown", "synchronized", "free_running", "disrupted", "unreliable"}[min(s, ClockUnreliable)]
}

// ParseClockState is the inverse of String; a name that is none is unknown.
func ParseClockState(name string) ClockState {
	for s := ClockUnknown; s <= ClockUnreliable; s++ {
		if s.String() == name {
			return s
		}
	}
	return ClockUnknown
}

// Trusted reports whether source times may be judged against this clock.
func (s ClockState) Trusted() bool { return s == ClockSynchronized || s == ClockFreeRunning }

// ClockMethod is where the evidence about the gateway's clock came from.
type ClockMethod uint8

const (
	MethodNone   ClockMethod = iota
	MethodNTP                // our own queries
	MethodChrony             // chronyd's tracking report
	MethodKernel             // adjtimex
	MethodHeld               // restored or carried on without new evidence
	MethodLocal              // clock.trust: local
)

// String returns none, ntp, chrony, kernel, held or local.
func (m ClockMethod) String() string {
	return [...]string{"none", "ntp", "chrony", "kernel", "held", "local"}[min(m, MethodLocal)]
}

// ClockSegment is a stretch of time over which the gateway's clock was in one
// state with one law of error: E(t) = E0NS + RhoPPB·(t−StartBootNS)/1e9, on
// CLOCK_BOOTTIME. Every reading names the segment it arrived in.
type ClockSegment struct {
	ID             uint64 // grows by one; unique within a generation
	Epoch          uint32 // counts steps of the wall clock since the store's birth
	Boot           uint64 // hash of the kernel's boot id
	State          ClockState
	Method         ClockMethod
	Traceable      bool  // to UTC; false for a local reference
	E0NS           int64 // bound at the start; -1 if none
	RhoPPB         int64 // growth of the bound, parts per billion
	StartBootNS    int64 // CLOCK_BOOTTIME at the start
	StartGatewayMS int64 // gateway time at the start
	Servers        uint8 // NTP servers agreeing
	// WallMinusBootNS is the wall clock minus CLOCK_BOOTTIME in this epoch: less
	// it, an ingest time of this segment is a point on CLOCK_BOOTTIME, where the
	// bound and later corrections are reckoned.
	WallMinusBootNS int64
}

// SourceVerdict is what is known of a source's clock.
type SourceVerdict uint8

const (
	SourceOK SourceVerdict = iota
	SourceOffsetPossible
	SourceOffsetAhead
	SourceOffsetBehind
	SourceTZShaped
	SourceTAIShaped
	SourceGPSShaped
	SourceStep
)

var verdictNames = [...]string{"OK", "OFFSET_POSSIBLE", "OFFSET_AHEAD", "OFFSET_BEHIND", "TZ_SHAPED", "TAI_SHAPED", "GPS_SHAPED", "STEP"}

// String returns the verdict as `tidemark judge` spells it.
func (v SourceVerdict) String() string { return verdictNames[min(v, SourceStep)] }

// ParseSourceVerdict is the inverse of String.
func ParseSourceVerdict(s string) (SourceVerdict, bool) {
	for i, n := range verdictNames {
		if n == s {
			return SourceVerdict(i), true
		}
	}
	return SourceOK, false
}

// SourceSegment is a stretch of time over which a source's clock was known to
// lie within [LoNS, HiNS] of the gateway's (source − gateway).
type SourceSegment struct {
	ID         uint64
	LoNS, HiNS int64
	Verdict    SourceVerdict
	ZoneMin    int16 // with SourceTZShaped: the zone's offset in minutes
}
