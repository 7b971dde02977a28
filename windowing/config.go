package windowing

import "tidemark/reading"

// Forever is a duration of Config without end.
const Forever int64 = -1

// Config is everything the engine is told. Its canonical binary form
// ([AppendConfig]) travels in reading.Batch.Config, so that the journal knows
// which configuration was in force at each block. Durations are milliseconds;
// unless the field says otherwise they are of event time, and 0 means off.
type Config struct {
	Features []Feature
	// Expectations say how often a sensor should speak; the first that selects a
	// sensor holds for it.
	Expectations []Expectation
	// NoIdentity lists the inputs whose readings are never duplicates
	// (`identity: none`).
	NoIdentity []string

	// FloorMS is the birth of the generation: readings of an earlier event time
	// are late evidence (before_generation) unless their policy is trusted.
	// reading.NoTime means that there is none.
	FloorMS int64
	// DuplicateHorizonMS is how far the watermark passes a window's closing
	// before the identity of its readings is forgotten (D3).
	DuplicateHorizonMS int64
	// LateIdentityMS is gateway time for which the identity of late evidence is
	// remembered: the retention of that evidence, or Forever (D3).
	LateIdentityMS int64
	// MaxOpenWindows bounds the open windows of all features; beyond it the oldest
	// fire and close with cause state_limit. 0 means no bound.
	MaxOpenWindows int
	// ForgetAfterMS is gateway time after which partitions of scope device and
	// sensor that say nothing are forgotten. 0 means never.
	ForgetAfterMS int64
	// Finals has EmitClosed carry the window's last result, for those who want one
	// record per window.
	Finals bool
	// Explicit lets only marks move watermarks and status (I5).
	Explicit bool
}

// Feature is one definition: which readings, which windows, which statistics.
type Feature struct {
	ID     FeatureID
	Select Selector
	// Group, if not empty, makes one key of all selected sensors and is that key's
	// sensor name. The key's asset and lifecycle are empty unless GroupPerAsset.
	Group         string
	GroupPerAsset bool

	SizeMS   int64 // of a window
	EveryMS  int64 // distance of window starts; 0 or SizeMS for tumbling windows (W5)
	OffsetMS int64 // |offset| < SizeMS (W3)

	OutOfOrdernessMS  int64 // B of SEMANTICS
	AllowedLatenessMS int64 // L of SEMANTICS
	Scope             Scope
	IdleAfterMS       int64 // gateway time; 0 means never (I2)
	FlushAfterMS      int64 // gateway time; 0 means no idle flush (I6)
	CorrectEveryMS    int64 // gateway time between corrections of one window; 0 means no spacing (F7)
	MaxLagMS          int64 // C10; 0 means nobody is ever stalled

	MaxHoldMS int64 // `hold`; 0 means that nothing is carried into a window (H1)
	EmitEmpty bool  // known keys give results for windows without readings too (F5)
	GoodOnly  bool  // uncertain readings are counted and excluded
	Functions []string
}

// Selector chooses readings by glob: * stands for any run of characters, ? for
// one. An empty pattern selects everything.
type Selector struct {
	Input, Asset, Sensor string
	// Sensors, if not empty, is a list of which one must match, besides Sensor.
	Sensors []string
	Type    ValueType
}

// ValueType restricts a selector to values of one type. Missing values belong to
// every type.
type ValueType uint8

const (
	AnyValue ValueType = iota
	NumberValue
	BoolValue
	TextValue
)

// Scope says what a partition of a feature is (C0).
type Scope uint8

const (
	ScopeInput  Scope = iota // every input; one combined watermark for the feature
	ScopeDevice              // every (input, device); each key has its own
	ScopeSensor              // every (input, asset, sensor); each key has its own
)

// String returns input, device or sensor.
func (s Scope) String() string { return [...]string{"input", "device", "sensor"}[min(s, ScopeSensor)] }

// ParseScope is the inverse of String.
func ParseScope(s string) (Scope, bool) {
	for c := ScopeInput; c <= ScopeSensor; c++ {
		if c.String() == s {
			return c, true
		}
	}
	return ScopeInput, false
}

// Expectation returns what is expected of a series; the zero Expectation is
// nothing.
func (c *Config) Expectation(s reading.Series) Expectation {
	for _, x := range c.Expectations {
		if x.Select.selects(s) {
			return x
		}
	}
	return Expectation{}
}

// Expectation is how often the selected sensors speak. The selector's Type is
// not looked at.
type Expectation struct {
	Select       Selector
	EveryMS      int64 // expect_every: for coverage
	AlarmAfterMS int64 // gateway time of silence that is worth a record; 0 means none
}
