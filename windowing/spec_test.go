package windowing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/reading"
	"tidemark/windowing"
)

// bench drives an engine of one feature with ten second windows and collects what
// it says, a line each.
type bench struct {
	t   *testing.T
	e   *windowing.Engine
	now int64
	out []string
}

func newBench(t *testing.T, change func(*windowing.Config, *windowing.Feature)) *bench {
	t.Helper()
	c := windowing.Config{FloorMS: reading.NoTime, LateIdentityMS: windowing.Forever, Features: []windowing.Feature{{
		ID: windowing.FeatureID{Name: "f", Version: 1, Definition: 1}, SizeMS: 10_000, AllowedLatenessMS: 5_000, IdleAfterMS: 60_000,
		Functions: []string{"count", "sum"},
	}}}
	change(&c, &c.Features[0])
	e, err := windowing.New(c)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, e: e}
	b.tick(0)
	b.out = nil
	return b
}

// seconds of event time and a number.
func at(s float64, v float64) reading.Reading {
	return accepted(reading.Series{Input: "A", Device: "d", Sensor: "s"}, int64(s*1e9), reading.FloatValue(v))
}

func from(input string, r reading.Reading) reading.Reading {
	s := r.Tag.Value()
	s.Input = input
	r.Tag = reading.MakeTag(s)
	return r
}

func (b *bench) step(batch *reading.Batch) *windowing.Output {
	if batch.GatewayMS == 0 {
		batch.GatewayMS = b.now
	}
	out := b.e.Step(batch)
	for i := range out.Emissions {
		b.out = append(b.out, b.line(&out.Emissions[i]))
	}
	for _, f := range out.Faults {
		b.out = append(b.out, "fault "+f.Feature.Name+": "+f.Reason)
	}
	return out
}

// say steps readings and an emission at once.
func (b *bench) say(readings ...reading.Reading) *windowing.Output {
	return b.step(&reading.Batch{Readings: readings, Emit: true})
}

// tick moves gateway time to the given second and emits.
func (b *bench) tick(s float64) {
	b.now = int64(s * 1000)
	b.step(&reading.Batch{GatewayMS: b.now, Emit: true})
}

func (b *bench) mark(m reading.Mark) { b.step(&reading.Batch{Marks: []reading.Mark{m}}) }

func (b *bench) line(m *windowing.Emission) string {
	window := fmt.Sprintf("%g..%g", float64(m.StartMS)/1000, float64(m.EndMS)/1000)
	switch m.Kind {
	case windowing.EmitFeature:
		var values []string
		for _, v := range m.Values {
			values = append(values, v.Name+"="+string(v.Value.AppendJSON(nil)))
		}
		return fmt.Sprintf("%s rev %d %s: %s", window, m.Revision, m.Cause, strings.Join(values, " "))
	case windowing.EmitClosed:
		return strings.TrimSpace(fmt.Sprintf("%s closed at rev %d %s", window, m.Revision, m.Reason))
	case windowing.EmitLate:
		return fmt.Sprintf("%s late: %s", window, m.Reason)
	case windowing.EmitDuplicate:
		return map[bool]string{false: "duplicate", true: "duplicate, conflict"}[m.Conflict]
	case windowing.EmitQuarantine:
		return "quarantine " + m.Reading.Stamp.Reason.String()
	case windowing.EmitWatermark:
		return fmt.Sprintf("watermark %g", float64(m.WatermarkMS)/1000)
	case windowing.EmitSilent:
		return fmt.Sprintf("silent %s for %g", m.Sensor, float64(m.QuietMS)/1000)
	case windowing.EmitResumed:
		return "resumed " + m.Sensor
	}
	return "?"
}

// want compares what was said since the last want, watermarks left out.
func (b *bench) want(lines ...string) {
	b.t.Helper()
	var got []string
	for _, l := range b.out {
		if !strings.HasPrefix(l, "watermark") {
			got = append(got, l)
		}
	}
	b.out = nil
	if diff := cmp.Diff(lines, got); diff != "" {
		b.t.Errorf("(-want +got)\n%s", diff)
	}
}

// What gateway time alone changes, and when: a correction that correct_every puts off
// (F7), idleness (I1), the idle flush (I6).
func TestNextDeadline(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.CorrectEveryMS, f.FlushAfterMS = 10_000, 30_000 })
	due := func(want int64) {
		t.Helper()
		if got := b.e.NextDeadline(); got != want {
			t.Errorf("next deadline %d, want %d", got, want)
		}
	}
	b.say(at(1, 1), at(11, 1))
	b.say(at(2, 2))
	b.say(at(3, 4))
	due(10_000)
	b.tick(10)
	due(60_001)
	b.tick(60.001)
	due(90_001)
	b.tick(90.001)
	due(reading.NoTime)
}

// C10, G4: whoever catches up is not stalled, and is again once it has caught up
// without coming nearer.
func TestWhoCatchesUpIsNotStalled(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.MaxLagMS = 30_000 })
	stalled := func(want int) {
		t.Helper()
		if got := b.e.Status()[0].Inputs.StalledCount; got != want {
			t.Fatalf("%d stalled, want %d", got, want)
		}
	}
	b.say(at(100, 1), from("B", at(1, 2)))
	stalled(1)
	b.mark(reading.Mark{Kind: reading.MarkCatchUpBegin, Input: "B", TimeMS: reading.NoTime})
	stalled(0)
	b.say(at(120, 1))
	b.mark(reading.Mark{Kind: reading.MarkCatchUpEnd, Input: "B", TimeMS: reading.NoTime})
	stalled(1)
	b.say()
	if wm := b.e.Status()[0].WatermarkMS; wm != 119_999 {
		t.Fatalf("watermark %d once B is stalled again, want 119999", wm)
	}
}

// G3: a reading vouches for no more than its stamp says; historical, initial,
// pending and quarantined ones for nothing.
func TestOnlyWhatIsVouchedForMovesTheWatermark(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) {})
	b.say(at(1, 1))
	capped := at(100, 1)
	capped.Stamp.WatermarkMS = 5_000
	historical := at(101, 1)
	historical.Delivery = reading.Historical
	pending, out := at(102, 1), at(103, 1)
	pending.Stamp.Disposition = reading.Pending
	out.Stamp.Disposition, out.Stamp.Reason = reading.Quarantine, reading.Future
	unjudged := at(104, 1)
	unjudged.Stamp = reading.Stamp{}
	got := b.say(capped, historical, pending, out, unjudged).Outcomes
	want := []windowing.Outcome{windowing.OutcomeAccepted, windowing.OutcomeAccepted, windowing.OutcomePending,
		windowing.OutcomeQuarantined, windowing.OutcomeUnjudged}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b.want("quarantine FUTURE")
}

// W4: a time whose windows or cleanup leave int64 nanoseconds is quarantined.
func TestTimesOutOfRangeAreQuarantined(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.SizeMS = 86_400_000 })
	for _, ns := range []int64{1<<63 - 1, -(1<<63 - 1), 1<<63 - 86_400_000_000_000, reading.NoTime} {
		r := at(0, 1)
		r.Source.NS, r.Stamp.EventNS, r.Stamp.WatermarkMS = ns, ns, reading.FloorMS(ns)
		b.say(r)
		b.want("quarantine SOURCE_TIME_RANGE")
	}
	b.say(at(1, 1))
	b.want()
}

// D1: `identity: none` switches identity off for an input.
func TestIdentityCanBeSwitchedOff(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { c.NoIdentity = []string{"A"} })
	b.say(at(1, 1), at(1, 1), at(11, 1))
	b.want("0..10 rev 1 watermark: count=2 sum=2")
}

// Generations: what is older than the store is late evidence, unless trusted, and
// the window that straddles its birth is partial.
func TestGenerationFloor(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { c.FloorMS = 4_000 })
	trusted := at(1, 8)
	trusted.Stamp.Policy = reading.PolicyTrusted
	b.say(at(3.999, 1), at(4, 2), trusted)
	b.want("0..10 late: before_generation")
	out := b.say(at(15, 1))
	if m := out.Emissions[1]; !m.PartialStart {
		t.Errorf("%+v is not partial", m)
	}
	b.want("0..10 rev 1 watermark: count=2 sum=10", "0..10 closed at rev 1")
	if out := b.say(at(30, 1)); out.Emissions[1].PartialStart {
		t.Error("a window after the birth is partial")
	}
}

// N6, and numbers that the stories leave out.
func TestStatistics(t *testing.T) {
	value := func(s float64, v reading.Value) reading.Reading {
		r := at(s, 0)
		r.Value = v
		return r
	}
	for _, c := range []struct {
		name      string
		functions []string
		readings  []reading.Reading
		want      string
	}{
		{"integers beyond 2^53", []string{"min", "max", "sum", "range", "delta"},
			[]reading.Reading{value(1, reading.IntValue(1<<53+1)), value(2, reading.IntValue(1<<53+3))},
			"min=9007199254740993 max=9007199254740995 sum=18014398509481988 range=2 delta=2"},
		{"nothing to weigh", []string{"time_weighted_mean", "integral"}, []reading.Reading{value(1, reading.TextValue("RUN"))},
			"time_weighted_mean=null integral=null"},
		{"states of text", []string{"state_duration_s.RUN", "state_share.STOP", "transitions", "count", "sum"},
			[]reading.Reading{value(0, reading.TextValue("RUN")), value(4, reading.TextValue("STOP")), value(6, reading.TextValue("RUN"))},
			"state_duration_s.RUN=8 state_share.STOP=0.2 transitions=2 count=3 sum=null"},
		{"states of booleans", []string{"state_duration_s.true", "transitions", "min"},
			[]reading.Reading{value(2, reading.BoolValue(true)), value(5, reading.BoolValue(false))},
			"state_duration_s.true=3 transitions=1 min=null"},
		{"rms and integral", []string{"rms", "integral"}, []reading.Reading{at(0, 3), at(5, 4)}, "rms=3.5355339059327378 integral=35"},
		{"one reading", []string{"stddev", "slope", "range"}, []reading.Reading{at(1, 2)}, "stddev=0 slope=null range=0"},
		{"a sum that overflows is null", []string{"sum", "mean"}, []reading.Reading{at(1, 1.7e308), at(2, 1.7e308)}, "sum=null mean=1.7e+308"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, func(_ *windowing.Config, f *windowing.Feature) {
				f.AllowedLatenessMS, f.Functions = 0, c.functions
			})
			b.step(&reading.Batch{Readings: c.readings})
			b.out = nil
			b.say(at(15, 0))
			b.want("0..10 rev 1 watermark: "+c.want, "0..10 closed at rev 1")
		})
	}
}

// Coverage, quality, clock: what travels with every result; Disposition 9: how many
// readings are certainly inside.
func TestCoverageAndQuality(t *testing.T) {
	for _, functions := range [][]string{{"count"}, {"p50"}} {
		b := newBench(t, func(c *windowing.Config, f *windowing.Feature) {
			f.Functions, f.GoodOnly = functions, true
			c.Expectations = []windowing.Expectation{{EveryMS: 1000}}
		})
		certain, edge := at(1, 1), at(9.9, 2)
		certain.Stamp.EventBound = reading.MakeBound(1e8)
		edge.Stamp.EventBound = reading.MakeBound(1e9)
		edge.Stamp.Flags = reading.LeapWindow
		edge.Stamp.Clock = &reading.ClockSegment{State: reading.ClockFreeRunning}
		certain.Stamp.Clock = &reading.ClockSegment{State: reading.ClockSynchronized}
		uncertain, bad, missing := at(2, 3), at(3, 3), at(4, 0)
		uncertain.Quality.Level, bad.Quality.Level = reading.Uncertain, reading.Bad
		missing.Value = reading.Value{}
		excluded := at(5, 1)
		excluded.Stamp.EventBound = reading.MakeBound(7e9)
		out := b.say(certain, edge, at(12, 1))
		got := out.Emissions[1]
		want := windowing.Coverage{Expected: 10, Observed: 2, LongestGapMS: 8900, CoveredMS: -1, Certain: 1}
		if diff := cmp.Diff(want, got.Coverage); diff != "" {
			t.Error(diff)
		}
		summary := windowing.ClockSummary{State: reading.ClockFreeRunning, MaxBound: reading.MakeBound(1e9), Flags: reading.LeapWindow}
		if diff := cmp.Diff(summary, got.Clock); diff != "" {
			t.Error(diff)
		}
		out = b.say(uncertain, bad, missing, excluded)
		quality := windowing.QualityCounts{Good: 2, Uncertain: 1, Bad: 2}
		if diff := cmp.Diff(quality, out.Emissions[0].Quality); diff != "" {
			t.Error(diff)
		}
		if s := b.e.Status()[0]; s.Windowed != 6 || s.Excluded != 1 {
			t.Errorf("windowed %d, excluded %d", s.Windowed, s.Excluded)
		}
	}
}

// Disposition 7: a time known to less than half a window is good enough, whatever
// its bound is rounded to when it is stored; twice as much is not.
func TestTooUncertain(t *testing.T) {
	b := newBench(t, func(*windowing.Config, *windowing.Feature) {}) // windows of 10 s
	for _, c := range []struct {
		boundNS            int64
		windowed, excluded uint64
	}{
		{3_000_000_000, 1, 0},
		{4_300_000_000, 2, 0},
		{4_999_999_999, 3, 0},
		{10_000_000_000, 3, 1},
	} {
		r := at(1, float64(c.boundNS))
		r.Stamp.EventBound = reading.MakeBound(c.boundNS)
		b.say(r)
		if s := b.e.Status()[0]; s.Windowed != c.windowed || s.Excluded != c.excluded {
			t.Errorf("known to %d ns: windowed %d, excluded %d, want %d and %d", c.boundNS, s.Windowed, s.Excluded, c.windowed, c.excluded)
		}
	}
}

// Silence: one record when a sensor says nothing although its input is alive, one
// when it speaks again; nothing while the whole input is silent.
func TestSilence(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) {
		f.Scope = windowing.ScopeSensor
		c.Expectations = []windowing.Expectation{{Select: windowing.Selector{Sensor: "s"}, EveryMS: 1000, AlarmAfterMS: 10_000}}
	})
	other := at(1, 1)
	other.Tag = reading.MakeTag(reading.Series{Input: "A", Sensor: "other"})
	b.say(at(1, 1), other)
	b.tick(8)
	b.say(other)
	b.tick(10)
	b.want("duplicate")
	b.tick(10.001)
	b.tick(12)
	b.want("silent s for 10.001")
	silent := func() (list []string) {
		b.e.Silent(func(input, asset, lifecycle, sensor string, quietMS int64) {
			list = append(list, fmt.Sprint(input, asset, lifecycle, sensor, " for ", quietMS))
		})
		return list
	}
	if got := silent(); !slices.Equal(got, []string{"As for 12000"}) {
		t.Errorf("silent: %q", got)
	}
	b.say(at(2, 1))
	if got := silent(); len(got) > 0 {
		t.Errorf("silent: %q", got)
	}
	b.want("resumed s")
	b.tick(40) // the input has been silent for as long
	b.want()
	b.say(other)
	b.tick(45)
	b.want("duplicate")
	b.say(at(3, 1))
	b.want()
}

// Definitions over time: a new version retires the old one, a definition that
// changed without one is disabled with a fault, tuning goes on with the state, and
// what is brought back does not count anew.
func TestDefinitionsOverTime(t *testing.T) {
	var c windowing.Config
	b := newBench(t, func(config *windowing.Config, f *windowing.Feature) { c = *config })
	put := func(change func(f *windowing.Feature)) {
		next := c
		next.Features = append([]windowing.Feature{}, c.Features...)
		change(&next.Features[0])
		b.step(&reading.Batch{Config: windowing.AppendConfig(nil, &next)})
	}
	b.say(at(1, 1))
	put(func(f *windowing.Feature) { f.AllowedLatenessMS = 8_000; f.ID.Tuning = 2 })
	b.say(at(16, 1))
	b.want("0..10 rev 1 watermark: count=1 sum=1")
	put(func(f *windowing.Feature) { f.Functions = []string{"count"}; f.ID.Definition = 2 })
	b.want("0..10 closed at rev 1 retired", "10..20 closed at rev 0 retired",
		"fault f: the definition of f version 1 has changed from 00000001 to 00000002: raise its version to 2")
	put(func(f *windowing.Feature) { f.ID.Version = 2; f.ID.Definition = 2 })
	b.say(at(17, 1))
	b.say(at(30, 1))
	b.want("10..20 rev 1 watermark: count=1 sum=1", "10..20 closed at rev 1")
	put(func(f *windowing.Feature) {})
	b.want("30..40 closed at rev 0 retired")
	b.say(at(18, 1))
	b.want("10..20 late: retired")
	b.step(&reading.Batch{Config: []byte{9}})
	if len(b.out) != 1 || !strings.HasPrefix(b.out[0], "fault : engine configuration: version 9") {
		t.Errorf("%v", b.out)
	}
}

// C8, forget_after: partitions of devices that are not seen are forgotten; the
// key's watermark stays.
func TestForgottenPartition(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) {
		f.Scope, c.ForgetAfterMS = windowing.ScopeDevice, 100_000
	})
	b.say(at(1, 1), at(20, 1))
	b.want("0..10 rev 1 watermark: count=1 sum=1", "0..10 closed at rev 1")
	b.tick(300)
	if in := b.e.Status()[0].Inputs; in.ActiveCount+in.IdleCount != 0 {
		t.Errorf("%+v", in)
	}
	b.say(at(2, 1))
	b.want("0..10 late: window_closed")
}

// Bad configurations are refused with the place.
func TestValidate(t *testing.T) {
	for want, change := range map[string]func(c *windowing.Config, f *windowing.Feature){
		"window is 0 ms":                 func(_ *windowing.Config, f *windowing.Feature) { f.SizeMS = 0 },
		"window is -5 ms":                func(_ *windowing.Config, f *windowing.Feature) { f.SizeMS = -5 },
		"offset is 10 ms":                func(_ *windowing.Config, f *windowing.Feature) { f.OffsetMS = 10 }, // W3
		"offset is -10 ms":               func(_ *windowing.Config, f *windowing.Feature) { f.OffsetMS = -10 },
		"every is 11 ms":                 func(_ *windowing.Config, f *windowing.Feature) { f.EveryMS = 11 },
		"the largest is":                 func(_ *windowing.Config, f *windowing.Feature) { f.AllowedLatenessMS = 1 << 62 },
		"must not be negative":           func(_ *windowing.Config, f *windowing.Feature) { f.IdleAfterMS = -1 },
		`unknown function "men"`:         func(_ *windowing.Config, f *windowing.Feature) { f.Functions = []string{"men"} },
		`unknown function "p0"`:          func(_ *windowing.Config, f *windowing.Feature) { f.Functions = []string{"p0"} },
		`unknown function "p100_1"`:      func(_ *windowing.Config, f *windowing.Feature) { f.Functions = []string{"p100_1"} },
		"function mean is listed twice":  func(_ *windowing.Config, f *windowing.Feature) { f.Functions = []string{"mean", "mean"} },
		`feature "f" is defined twice`:   func(c *windowing.Config, f *windowing.Feature) { c.Features = append(c.Features, *f) },
		"it has no name":                 func(_ *windowing.Config, f *windowing.Feature) { f.ID.Name = "" },
		"the generation's birth":         func(c *windowing.Config, _ *windowing.Feature) { c.FloorMS = 1 << 60 },
		"duplicate_horizon is -1":        func(c *windowing.Config, _ *windowing.Feature) { c.DuplicateHorizonMS = -1 },
		"a reading would belong to 2000": func(_ *windowing.Config, f *windowing.Feature) { f.SizeMS, f.EveryMS = 200_000, 1 },
		"expectation 0: alarm_after": func(c *windowing.Config, _ *windowing.Feature) {
			c.Expectations = []windowing.Expectation{{AlarmAfterMS: -1}}
		},
	} {
		c := windowing.Config{FloorMS: reading.NoTime, Features: []windowing.Feature{{ID: windowing.FeatureID{Name: "f"}, SizeMS: 10}}}
		change(&c, &c.Features[0])
		if _, err := windowing.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Units follow the function.
func TestFunctionUnit(t *testing.T) {
	for _, c := range [][3]string{
		{"mean", "Cel", "Cel"}, {"slope", "Cel", "Cel/s"}, {"count", "Cel", ""}, {"integral", "kW", "kW.s"}, {"variance", "m/s", "(m/s)2"},
		{"state_duration_s.RUN", "", "s"}, {"state_share.RUN", "Cel", ""}, {"p99_9", "mm/s", "mm/s"}, {"slope", "", "/s"}, {"what", "Cel", ""},
	} {
		if got := windowing.FunctionUnit(c[0], c[1]); got != c[2] {
			t.Errorf("%s of %q is %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
