package clock

// stepEvent is what a change of (realtime − boottime) was.
type stepEvent uint8

const (
	stepNone        stepEvent = iota
	stepSuspend               // no step, but the machine slept
	stepLeap                  // the wall clock inserted the announced leap second
	stepExplained             // somebody took away the offset that was already measured
	stepUnexplained           // nothing vouches for the wall clock any more
)

// String returns the event as `tidemark judge` spells it.
func (e stepEvent) String() string {
	return [...]string{"NONE", "SUSPEND", "LEAP", "STEP_EXPLAINED", "STEP_UNEXPLAINED"}[min(e, stepUnexplained)]
}

// newEpoch reports whether the event starts an epoch of the wall clock.
func (e stepEvent) newEpoch() bool { return e >= stepLeap }

const (
	// stepAbove is the change of (realtime − boottime) that is a step
	// (SEMANTICS K5).
	stepAbove = int64(1e6)
	// missedEvery is how much sleep counts as one missed poll.
	missedEvery = 64 * int64(1e9)
)

// change is what was seen between two looks at the clocks.
type change struct {
	dNS       int64 // Δ(realtime − boottime)
	suspendNS int64 // sleep in between: Δ(boottime − monotonic)
	// KnownNS is the correction that the last selection asked for, if hasKnown,
	// and toleranceNS how far off it may be.
	knownNS     int64
	hasKnown    bool
	toleranceNS int64
	leapPending bool
}

// event classifies the change (SEMANTICS K5), in the order of the rule.
func (c change) event() stepEvent {
	switch {
	case abs(c.dNS) <= stepAbove && c.suspendNS > 0:
		return stepSuspend
	case abs(c.dNS) <= stepAbove:
		return stepNone
	case c.leapPending && abs(c.dNS+1e9) <= stepAbove:
		return stepLeap
	case c.hasKnown && abs(c.dNS-c.knownNS) <= c.toleranceNS:
		return stepExplained
	}
	return stepUnexplained
}
