package windowing

// Output is what one Step says. It and everything it points to are valid until
// the next Step of the same Engine.
type Output struct {
	// Emissions in their order: what a changed configuration retires; late,
	// duplicate and quarantine as the readings came; corrections; watermarks; what
	// fell due; idle flushes; silences; what the state limit closed.
	Emissions []Emission
	// Outcomes[i] belongs to the batch's reading i.
	Outcomes []Outcome
	// Faults are definitions that are refused and disabled; collection goes on.
	Faults []Fault
}

// Outcome is what became of a reading as a whole, for the sums of law 5 per
// input.
type Outcome uint8

const (
	OutcomeUnjudged    Outcome = iota // never windowed: it has no verdict
	OutcomeAccepted                   // windowed, late, excluded, or selected by no feature
	OutcomeDuplicate                  // D2; the emission says whether it was a conflict
	OutcomeQuarantined                // by the clock rules or W4
	OutcomePending                    // waits for a trusted clock
	OutcomeInitial                    // sets a carry-in only (H3)
)

// Fault is a feature that is disabled, and why.
type Fault struct {
	Feature FeatureID
	Reason  string
}
