package windowing

import "tidemark/reading"

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

// Fault is a feature that is disabled, and why. A fault without a feature is of
// the configuration as a whole, which then changed nothing.
type Fault struct {
	Feature FeatureID
	Reason  string
}

// Engine is the state machine. It is not safe for concurrent use. Make one with
// [New] or [Restore].
type Engine struct {
	config   Config
	encoded  []byte // of config
	features []*feature
	disabled []Fault
	known    []definition // every definition that was ever in force

	now   int64 // gateway time, NoTime before the first
	open  int   // windows
	out   Output
	batch uint64             // sequence number of the batch
	wall  int64              // of the batch
	clock reading.ClockState // likewise

	routes     reading.ByTag[*route]
	sensors    map[keyName]*sensor
	sensorList []*sensor
	inputs     map[string]*input
	inputList  []*input
	names      map[keyName]*named
	ranked     []*named
	unranked   []*named

	touched  []*window           // to be corrected at the end of the batch (F7)
	spaced   deadlines[*window]  // corrections that correct_every puts off
	alarms   deadlines[*sensor]  // silences to be
	tidyAt   int64               // gateway time of the next look at what can be forgotten
	advanced []*combiner         // whose watermark has just moved
	results  []dueEvent          // first results that fell due, scratch
	closings []dueEvent          // likewise
	chain    deadlines[dueEvent] // windows that came into being during a jump
	values   []NamedValue        // of the output's emissions
	scratch  []reading.Value
}

// New returns an engine without state. The configuration is validated.
func New(c Config) (*Engine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	e := empty()
	e.configure(&c)
	return e, nil
}

func empty() *Engine {
	return &Engine{
		now: reading.NoTime, tidyAt: reading.NoTime,
		sensors: make(map[keyName]*sensor),
		inputs:  make(map[string]*input), names: make(map[keyName]*named),
	}
}

// Step takes one batch and returns what follows from it: first its configuration,
// then readings and marks in their order, then the corrections, then if asked the
// periodic emission.
func (e *Engine) Step(b *reading.Batch) *Output {
	e.begin(b)
	if b.Config != nil {
		e.reconfigure(b.Config)
	}
	marks := b.Marks
	for i := range b.Readings {
		for len(marks) > 0 && marks[0].At <= i {
			e.mark(&marks[0])
			marks = marks[1:]
		}
		e.out.Outcomes = append(e.out.Outcomes, e.take(&b.Readings[i], e.routes.Get(b.Readings[i].Tag)))
	}
	for i := range marks {
		e.mark(&marks[i])
	}
	e.correct()
	if b.Emit {
		e.periodic()
	}
	e.limit()
	return &e.out
}

func (e *Engine) begin(b *reading.Batch) {
	clear(e.out.Emissions) // lets go of readings
	e.out.Emissions = e.out.Emissions[:0]
	e.out.Outcomes = e.out.Outcomes[:0]
	e.out.Faults = nil
	e.values = e.values[:0]
	e.batch, e.wall, e.clock = b.Seq, b.WallNS, reading.ClockUnknown
	if b.Clock != nil {
		e.clock = b.Clock.State
	}
	e.now = max(e.now, min(b.GatewayMS, maxTimeMS))
}

func (e *Engine) emit(m Emission) { e.out.Emissions = append(e.out.Emissions, m) }

// gatewayMS is gateway time for what needs some time.
func (e *Engine) gatewayMS() int64 { return max(e.now, 0) }

// periodic is the emission at the end of a batch or tick (G2).
func (e *Engine) periodic() {
	for _, f := range e.features {
		f.emit(e.now, e.config.Explicit)
		f.urgent = append(f.urgent, f.stale...)
		clear(f.stale)
		f.stale = f.stale[:0]
	}
	e.retake()
	e.flush()
	e.silences()
	e.tidy()
}

// NextDeadline returns the gateway time at which time alone changes something, so
// that an empty batch with Emit is worth its while then; NoTime if never.
func (e *Engine) NextDeadline() int64 {
	next := min(e.nextSpaced(), e.nextSilence())
	if !e.config.Explicit {
		for _, f := range e.features {
			next = min(next, f.nextIdle())
		}
	}
	for _, f := range e.features {
		next = min(next, f.nextFlush())
	}
	if next == never {
		return reading.NoTime
	}
	return next
}
