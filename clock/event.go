package clock

// EventKind is the kind of an Event as records spell it.
type EventKind string

const (
	EventClock           EventKind = "clock"
	EventEpochCorrection EventKind = "epoch_correction"
)

// Event is something about the gateway's clock that belongs into its records.
// Times are Unix nanoseconds of the epoch that they name.
type Event struct {
	Kind    EventKind `json:"kind"`
	AtNS    int64     `json:"at_ns"` // wall clock
	Epoch   uint32    `json:"epoch"` // in force after the event
	Segment uint64    `json:"segment"`
	BoundNS int64     `json:"bound_ns"` // -1 if none

	// A change of state, or a step of the wall clock by StepNS.
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Why    string `json:"why,omitempty"`
	Step   string `json:"step,omitempty"`
	StepNS int64  `json:"step_ns,omitempty"`

	// An epoch correction: CorrectionNS, known to CorrectionBoundNS, is to be added
	// to wall times of CorrectedEpoch. What was recorded stays as it is.
	CorrectedEpoch    uint32 `json:"corrected_epoch,omitempty"`
	CorrectionNS      int64  `json:"correction_ns,omitempty"`
	CorrectionBoundNS int64  `json:"correction_bound_ns,omitempty"`

	// Readings that arrived from SuspectFromNS to SuspectToNS may have had a larger
	// error than their bound says: new evidence contradicted it.
	SuspectFromNS int64 `json:"suspect_from_ns,omitempty"`
	SuspectToNS   int64 `json:"suspect_to_ns,omitempty"`
}

// tell completes e and hands it on.
func (c *Clock) tell(e Event) {
	if c.onEvent == nil {
		return
	}
	e.AtNS, e.Epoch = c.seen.wallNS, c.epochs.now.Epoch
	e.Segment, e.BoundNS = c.segment, c.m.bound(c.seen.bootNS)
	if !c.running {
		c.early = append(c.early, e)
		return
	}
	c.onEvent(e)
}

// tellEarly tells what happened before Run.
func (c *Clock) tellEarly() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = true
	for _, e := range c.early {
		c.onEvent(e)
	}
	c.early = nil
}

// suspectLocked says that the bounds since sinceBootNS were contradicted (K6).
func (c *Clock) suspectLocked(sinceBootNS int64) {
	from := sinceBootNS + c.epochs.now.WallMinusBootNS
	c.log.Warn().Int64("suspect_since_ns", from).Msg("new evidence contradicts the bound that was held; readings since the last good selection are suspect")
	c.tell(Event{Kind: EventClock, Why: "contradicted", SuspectFromNS: from, SuspectToNS: c.seen.wallNS})
}

// settleEpochsLocked records how wall times of earlier epochs of this boot map to
// the present one, once the present one is trusted (K5): readings taken between
// boot and the first synchronization can be certified by that.
func (c *Clock) settleEpochsLocked() {
	if !c.m.State.Trusted() {
		return
	}
	bound := add(c.m.bound(c.seen.bootNS), stepAbove)
	c.epochs.unsettled(func(number uint32, correctionNS int64) {
		c.tell(Event{Kind: EventEpochCorrection, CorrectedEpoch: number, CorrectionNS: correctionNS, CorrectionBoundNS: bound})
	})
}
