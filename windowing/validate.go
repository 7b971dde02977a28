package windowing

import (
	"fmt"
	"math"
	"strings"

	"tidemark/reading"
)

const (
	minTimeMS = math.MinInt64/1_000_000 + 1 // int64 nanoseconds, in milliseconds (W4)
	maxTimeMS = math.MaxInt64 / 1_000_000
	// maxSpanMS bounds every duration, so that a few of them and a time never
	// leave int64: about 36 years.
	maxSpanMS = maxTimeMS / 8
)

// Validate reports the first fault of the configuration: windows of zero or
// negative size, |offset| ≥ size (W3), negative or absurd durations, unknown
// functions, duplicate names.
func (c *Config) Validate() error {
	for _, d := range [...]span{
		{"duplicate_horizon", c.DuplicateHorizonMS, 0},
		{"late identity", c.LateIdentityMS, Forever},
		{"forget_after", c.ForgetAfterMS, 0},
		{"max open windows", int64(c.MaxOpenWindows), 0},
	} {
		if err := d.check(); err != nil {
			return err
		}
	}
	if c.FloorMS != reading.NoTime && (c.FloorMS < minTimeMS || c.FloorMS > maxTimeMS) {
		return fmt.Errorf("the generation's birth %d ms is out of range", c.FloorMS)
	}
	for i, x := range c.Expectations {
		for _, d := range [...]span{{"expect_every", x.EveryMS, 0}, {"alarm_after", x.AlarmAfterMS, 0}} {
			if err := d.check(); err != nil {
				return fmt.Errorf("expectation %d: %w", i, err)
			}
		}
	}
	seen := make(map[string]bool)
	for i := range c.Features {
		f := &c.Features[i]
		if err := f.validate(); err != nil {
			return fmt.Errorf("feature %q: %w", f.ID.Name, err)
		}
		if seen[f.ID.Name] {
			return fmt.Errorf("feature %q is defined twice: give the second another name", f.ID.Name)
		}
		seen[f.ID.Name] = true
	}
	return nil
}

// span is a duration and the lowest it may be.
type span struct {
	name string
	ms   int64
	low  int64
}

func (s span) check() error {
	switch {
	case s.ms < s.low:
		return fmt.Errorf("%s is %d ms: it must not be negative", s.name, s.ms)
	case s.ms > maxSpanMS:
		return fmt.Errorf("%s is %d ms: the largest is %d ms", s.name, s.ms, int64(maxSpanMS))
	}
	return nil
}

func (f *Feature) validate() error {
	if f.ID.Name == "" {
		return fmt.Errorf("it has no name")
	}
	if f.SizeMS <= 0 {
		return fmt.Errorf("window is %d ms: it must be at least 1 ms", f.SizeMS)
	}
	if f.EveryMS < 0 || f.EveryMS > f.SizeMS {
		return fmt.Errorf("every is %d ms: it must be above 0 and not above the window of %d ms", f.EveryMS, f.SizeMS)
	}
	if f.EveryMS > 0 && f.SizeMS/f.EveryMS > maxOverlap {
		return fmt.Errorf("every is %d ms: a reading would belong to %d windows, %d is the most", f.EveryMS, f.SizeMS/f.EveryMS, maxOverlap)
	}
	if f.OffsetMS <= -f.SizeMS || f.OffsetMS >= f.SizeMS {
		return fmt.Errorf("offset is %d ms: its amount must be below the window of %d ms", f.OffsetMS, f.SizeMS)
	}
	for _, d := range [...]span{
		{"window", f.SizeMS, 1}, {"out_of_orderness", f.OutOfOrdernessMS, 0}, {"allowed_lateness", f.AllowedLatenessMS, 0},
		{"idle_after", f.IdleAfterMS, 0}, {"flush_after", f.FlushAfterMS, 0}, {"correct_every", f.CorrectEveryMS, 0},
		{"max_watermark_lag", f.MaxLagMS, 0}, {"hold: max", f.MaxHoldMS, 0},
	} {
		if err := d.check(); err != nil {
			return err
		}
	}
	for i, name := range f.Functions {
		if _, err := parseFunction(name); err != nil {
			return err
		}
		for _, other := range f.Functions[:i] {
			if other == name {
				return fmt.Errorf("function %s is listed twice", name)
			}
		}
	}
	return nil
}

// maxOverlap is the most windows that one reading may belong to.
const maxOverlap = 10_000

// selects reports whether the selector takes readings of the series, types aside.
func (s *Selector) selects(x reading.Series) bool {
	return glob(s.Input, x.Input) && glob(s.Asset, x.Asset) && glob(s.Sensor, x.Sensor) && s.listed(x.Sensor)
}

func (s *Selector) listed(sensor string) bool {
	for _, p := range s.Sensors {
		if glob(p, sensor) {
			return true
		}
	}
	return len(s.Sensors) == 0
}

// Takes reports whether the selector's type admits a value of this kind.
func (t ValueType) Takes(k reading.Kind) bool {
	switch t {
	case NumberValue:
		return k != reading.Bool && k != reading.Text
	case BoolValue:
		return k == reading.Bool || k == reading.Missing
	case TextValue:
		return k == reading.Text || k == reading.Missing
	}
	return true
}

// glob matches * and ? over whole strings; the empty pattern matches everything.
func glob(pattern, s string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	if !strings.ContainsAny(pattern, "*?") {
		return pattern == s
	}
	p, star, from := 0, -1, 0
	for i := 0; i < len(s); {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p, i = p+1, i+1
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
