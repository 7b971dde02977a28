package gateway

import (
	"tidemark/reading"
	"tidemark/windowing"
)

// InputCounts are the sums of law 5 for one input: whatever was received is in
// exactly one of the others.
type InputCounts struct {
	Received    uint64 `json:"received"`
	Accepted    uint64 `json:"accepted"`
	Duplicate   uint64 `json:"duplicate"`
	Malformed   uint64 `json:"malformed"`
	Unmatched   uint64 `json:"unmatched"`
	Quarantined uint64 `json:"quarantined"` // into quarantine at the first verdict
	Pending     uint64 `json:"pending"`     // into pending at the first verdict

	// What left pending, by its second verdict.
	PendingAccepted    uint64 `json:"pending_accepted"`
	PendingDuplicate   uint64 `json:"pending_duplicate"`
	PendingQuarantined uint64 `json:"pending_quarantined"`

	// What left quarantine because it was released. What was quarantined again has
	// not left it.
	ReleasedAccepted    uint64 `json:"released_accepted"`
	ReleasedDuplicate   uint64 `json:"released_duplicate"`
	ReleasedQuarantined uint64 `json:"released_quarantined"`

	Conflicts uint64 `json:"conflicts"` // duplicates by id with other content
	// Untimed came without a source time where one is expected, and are windowed
	// by their arrival.
	Untimed uint64 `json:"untimed"`
	// Gaps are stretches that the source skipped, each with a record of its own.
	Gaps uint64 `json:"gaps,omitempty"`
}

// Conserved reports whether nothing is missing: taken is what arrived, counted at
// arrival, and waiting how much of it is in the batch that is not committed yet.
func (c *InputCounts) Conserved(taken, waiting uint64) bool {
	outcomes := c.Accepted + c.Duplicate + c.Malformed + c.Unmatched + c.Quarantined + c.Pending
	return c.Received == outcomes && taken == c.Received+waiting && c.PendingNow() >= 0 && c.QuarantinedNow() >= 0
}

// QuarantinedNow is how many readings are in quarantine by the books; those whose
// blocks retention has taken away can no longer be released.
func (c *InputCounts) QuarantinedNow() int64 {
	return int64(c.Quarantined+c.PendingQuarantined) - int64(c.ReleasedAccepted+c.ReleasedDuplicate)
}

// PendingNow is how many readings wait for the gateway's clock.
func (c *InputCounts) PendingNow() int64 {
	return int64(c.Pending) - int64(c.PendingAccepted+c.PendingDuplicate+c.PendingQuarantined)
}

// counters holds the sums of all inputs and the reasons behind them.
type counters struct {
	Inputs     map[string]*InputCounts      `json:"inputs"`
	Quarantine map[string]map[string]uint64 `json:"quarantine"` // input → reason → count
	Rejects    map[string]map[string]uint64 `json:"rejects"`
	Emitted    map[string]uint64            `json:"emitted"` // records by type
	Lost       map[string]uint64            `json:"lost"`    // what the store had to drop, by kind
}

func newCounters() *counters {
	return &counters{
		Inputs:     map[string]*InputCounts{},
		Quarantine: map[string]map[string]uint64{},
		Rejects:    map[string]map[string]uint64{},
		Emitted:    map[string]uint64{},
		Lost:       map[string]uint64{},
	}
}

func (c *counters) input(name string) *InputCounts {
	ic := c.Inputs[name]
	if ic == nil {
		ic = &InputCounts{}
		c.Inputs[name] = ic
	}
	return ic
}

// verdict counts one reading by the clock's verdict and what the engine made of
// it.
func (c *InputCounts) verdict(r *reading.Reading, o windowing.Outcome) {
	if r.Delivery.Has(reading.Released) {
		c.released(o)
		return
	}
	again := r.Delivery.Has(reading.Rejudged)
	if !again {
		c.Received++
	}
	switch o {
	case windowing.OutcomeAccepted, windowing.OutcomeInitial:
		*pick(again, &c.PendingAccepted, &c.Accepted)++
	case windowing.OutcomeDuplicate:
		*pick(again, &c.PendingDuplicate, &c.Duplicate)++
	case windowing.OutcomeQuarantined:
		*pick(again, &c.PendingQuarantined, &c.Quarantined)++
	case windowing.OutcomePending:
		if !again {
			c.Pending++
		}
	}
}

// released counts a reading that was let out of quarantine.
func (c *InputCounts) released(o windowing.Outcome) {
	switch o {
	case windowing.OutcomeAccepted, windowing.OutcomeInitial:
		c.ReleasedAccepted++
	case windowing.OutcomeDuplicate:
		c.ReleasedDuplicate++
	default:
		c.ReleasedQuarantined++
	}
}

// emitted counts what the engine said.
func (c *counters) emitted(e *windowing.Emission) {
	switch e.Kind {
	case windowing.EmitFeature, windowing.EmitClosed, windowing.EmitLate, windowing.EmitQuarantine:
		c.Emitted[e.Kind.String()]++
	}
	switch {
	case e.Kind == windowing.EmitDuplicate && e.Conflict:
		c.input(e.Reading.Tag.Value().Input).Conflicts++
	case e.Kind == windowing.EmitQuarantine:
		tally(c.Quarantine, e.Reading.Tag.Value().Input, e.Reading.Stamp.Reason.String())
	}
}

// reject counts what was received and is no reading.
func (c *counters) reject(input string, j *reading.Reject) {
	ic := c.input(input)
	ic.Received++
	if j.Kind == reading.Unmatched {
		ic.Unmatched++
	} else {
		ic.Malformed++
	}
	tally(c.Rejects, input, j.Reason)
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

func tally(m map[string]map[string]uint64, input, reason string) {
	if m[input] == nil {
		m[input] = map[string]uint64{}
	}
	m[input][reason]++
}
