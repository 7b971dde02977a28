package windowing

import "tidemark/reading"

// EmissionKind is what the engine says. Codes are stored: append, never
// renumber.
type EmissionKind uint8

const (
	// EmitFeature is a result of a window: provisional at revision 1, corrected
	// after.
	EmitFeature EmissionKind = iota + 1
	// EmitClosed says that a window takes no more readings.
	EmitClosed
	// EmitLate is a reading whose window is closed, one emission per window.
	EmitLate
	// EmitDuplicate is a reading that was there already. Not sent upstream.
	EmitDuplicate
	// EmitQuarantine is a reading that the clock rules, or W4, keep out.
	EmitQuarantine
	// EmitWatermark is the new combined watermark of a feature of scope input.
	// Not sent upstream.
	EmitWatermark
	// EmitSilent says once that a sensor has said nothing for longer than its
	// alarm_after although its input is alive.
	EmitSilent
	// EmitResumed says that a silent sensor speaks again.
	EmitResumed
)

// String returns feature, closed, late, duplicate, quarantine, watermark, silent or
// resumed.
func (k EmissionKind) String() string {
	return [...]string{"", "feature", "closed", "late", "duplicate", "quarantine", "watermark", "silent", "resumed"}[min(k, EmitResumed)]
}

// Cause is why a result came out.
type Cause uint8

const (
	CauseWatermark Cause = iota + 1
	CauseLateReading
	CauseCarryIn
	CauseIdleFlush
	CauseClockStep
	CauseBackfill
	CauseStateLimit
)

// String returns the cause as records spell it.
func (c Cause) String() string {
	return [...]string{"", "watermark", "late_reading", "carry_in", "idle_flush", "clock_step", "backfill", "state_limit"}[min(c, CauseStateLimit)]
}

// Reason is why a reading is late evidence or a window was closed early.
type Reason uint8

const (
	ReasonNone Reason = iota
	ReasonWindowClosed
	ReasonBeforeGeneration // older than the store's birth
	ReasonStateLimit
	ReasonRetired // the definition is no longer in force
)

// String returns the reason as records spell it.
func (r Reason) String() string {
	return [...]string{"", "window_closed", "before_generation", "state_limit", "retired"}[min(r, ReasonRetired)]
}

// FeatureID names a feature and the definition in force.
type FeatureID struct {
	Name       string
	Version    int
	Definition uint32 // first 8 hex digits of the definition's SHA-256
	Tuning     uint32 // likewise of out-of-orderness, lateness and idleness
}

// Emission is one thing that Step says. Which fields hold depends on Kind; an
// Emission belongs to the Output that carries it. Its binary form is canonical:
// equal emissions have equal bytes, which is what the journal's digest rests on.
type Emission struct {
	Kind    EmissionKind
	Feature FeatureID // all but EmitDuplicate, EmitQuarantine, EmitSilent and EmitResumed

	// The key, of EmitFeature, EmitClosed and EmitLate. EmitSilent and EmitResumed
	// name the sensor, and in StartMS the event time of its last reading, NoTime
	// if it had none.
	Asset, Lifecycle, Sensor string // Sensor is the group's name for a group
	StartMS, EndMS           int64
	Revision                 uint32 // EmitFeature, EmitClosed; 0 closes a window that gave no result

	// Since is the sequence number of the batch that brought the window's first
	// result, of EmitFeature and EmitClosed; 0 if there was none. It is not part of
	// the stored form.
	Since uint64

	// Of EmitFeature, and of an EmitClosed that carries the last result.
	Cause        Cause
	Values       []NamedValue // in the order of the definition's functions
	Unit         string       // of the sensor
	Coverage     Coverage
	Quality      QualityCounts
	Clock        ClockSummary
	Inputs       InputSummary
	PartialStart bool // the window straddles the store's birth
	// Final, of EmitClosed: it carries the last result (Config.Finals). A window
	// that is retired while a correction of it is due carries none.
	Final bool

	QuietMS int64 // EmitSilent, EmitResumed: gateway time since the sensor's last sign of life

	WatermarkMS    int64 // combined watermark at the emission; NoTime before the first
	MaterializedNS int64 // wall time of the commit; 0 in replay

	// Of EmitLate, EmitDuplicate and EmitQuarantine.
	Reason   Reason // EmitLate, and an EmitClosed before its time; a quarantine's reason stands in the reading's stamp
	Conflict bool   // EmitDuplicate: same id, other content (D2)
	Reading  *reading.Reading
}

// Status is how a result stands: provisional, corrected, or final.
func (m *Emission) Status() string {
	switch {
	case m.Final:
		return "final"
	case m.Revision <= 1:
		return "provisional"
	}
	return "corrected"
}

// NamedValue is one statistic; a missing value is null, never 0.
type NamedValue struct {
	Name  string
	Value reading.Value
}

// Coverage says how much of a window was seen.
type Coverage struct {
	Expected int64 // readings by expect_every; -1 if not configured
	Observed int64
	// LongestGapMS is the longest stretch without a reading, window edges
	// included. It is exact for definitions that keep samples and for up to 32
	// readings, else counted in steps of 1/1024 of the window.
	LongestGapMS int64
	CoveredMS    int64 // time covered by held values; -1 if not known
	Certain      int64 // readings whose whole error interval lies inside
}

// QualityCounts counts a window's readings by quality. Bad ones are in no
// statistic.
type QualityCounts struct{ Good, Uncertain, Bad int64 }

// ClockSummary is the worst that a window's readings say about their times.
type ClockSummary struct {
	State    reading.ClockState
	MaxBound reading.Bound
	Flags    reading.Flags
}

// InputSummary names the partitions that the combined watermark was taken over:
// input, input/device or input/asset/sensor, after the feature's scope. Where
// there are many, the counts are complete and the names are the first few,
// those furthest behind first.
type InputSummary struct {
	Active, Idle, Stalled                []string
	ActiveCount, IdleCount, StalledCount int
}
