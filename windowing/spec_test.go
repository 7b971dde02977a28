package windowing_test

import (
	"fmt"
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

// F7: correct_every spaces the corrections of one window by gateway time, and one
// still due at closing comes before the closing.
func TestCorrectionsAreSpaced(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.CorrectEveryMS = 10_000 })
	b.say(at(1, 1), at(11, 1))
	b.want("0..10 rev 1 watermark: count=1 sum=1")
	b.say(at(2, 2))
	b.want("0..10 rev 2 late_reading: count=2 sum=3")
	b.say(at(3, 4))
	b.say(at(4, 8))
	b.want()
	if d := b.e.NextDeadline(); d != 10_000 {
		t.Errorf("next deadline %d, want 10000", d)
	}
	b.tick(10)
	b.want("0..10 rev 3 late_reading: count=4 sum=15")
	b.say(at(5, 16))
	b.say(at(15, 1))
	b.want("0..10 rev 4 late_reading: count=5 sum=31", "0..10 closed at rev 4")
}

// C10: a partition too far behind the highest active one is excluded until it is
// nearer; one without a watermark is not stalled.
func TestStalledPartitionIsExcluded(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.MaxLagMS = 30_000 })
	b.mark(reading.Mark{Kind: reading.MarkExists, Input: "B", TimeMS: reading.NoTime})
	b.say(at(100, 1))
	b.want()
	b.say(from("B", at(1, 2)))
	b.want("0..10 rev 1 watermark: count=1 sum=2", "0..10 closed at rev 1")
	s := b.e.Status().Features[0]
	if len(s.Inputs.Stalled) != 1 || s.Inputs.Stalled[0] != "B" || s.WatermarkMS != 99_999 {
		t.Errorf("status %+v", s)
	}
	b.say(at(130, 1), from("B", at(110, 4)))
	b.want("100..110 rev 1 watermark: count=1 sum=1")
}

// C10, G4: whoever catches up is not stalled, and is again once it has caught up
// without coming nearer.
func TestWhoCatchesUpIsNotStalled(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.MaxLagMS = 30_000 })
	stalled := func(want int) {
		t.Helper()
		if got := b.e.Status().Features[0].Inputs.StalledCount; got != want {
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
	if wm := b.e.Status().Features[0].WatermarkMS; wm != 119_999 {
		t.Fatalf("watermark %d once B is stalled again, want 119999", wm)
	}
}

// G4: while a partition catches up its watermark stands and it counts as active,
// however long it is silent.
func TestCatchUpHoldsTheWatermark(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) {})
	b.say(at(1, 1))
	b.mark(reading.Mark{Kind: reading.MarkCatchUpBegin, Input: "A", TimeMS: reading.NoTime})
	b.say(at(100, 1))
	b.tick(1000)
	b.say(at(2, 2))
	b.want()
	b.mark(reading.Mark{Kind: reading.MarkCatchUpEnd, Input: "A", TimeMS: reading.NoTime})
	b.tick(1001)
	b.want("0..10 rev 1 watermark: count=2 sum=3", "0..10 closed at rev 1")
}

// I6: when every partition has been idle for flush_after, windows with something
// new give one result, and the watermark stays.
func TestIdleFlush(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.FlushAfterMS = 30_000 })
	b.say(at(1, 1))
	if d := b.e.NextDeadline(); d != 60_001 {
		t.Errorf("idle at %d, want 60001", d)
	}
	b.tick(60.001)
	if d := b.e.NextDeadline(); d != 90_001 {
		t.Errorf("flush at %d, want 90001", d)
	}
	b.tick(90)
	b.want()
	b.tick(90.001)
	b.want("0..10 rev 1 idle_flush: count=1 sum=1")
	if d := b.e.NextDeadline(); d != reading.NoTime {
		t.Errorf("at rest there is a deadline %d", d)
	}
	b.tick(200)
	b.want()
	b.say(at(11, 2))
	b.want("0..10 rev 2 watermark: count=1 sum=1")
}

// I1, I7: a will idles its device's partition at once and not the input's; a
// reading brings it back.
func TestWillIdlesTheDeviceOnly(t *testing.T) {
	for _, scope := range []windowing.Scope{windowing.ScopeInput, windowing.ScopeDevice} {
		b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.Scope, f.Group = scope, "both" })
		quiet := at(1, 1)
		quiet.Tag = reading.MakeTag(reading.Series{Input: "A", Device: "gone", Sensor: "s2"})
		b.say(quiet)
		if scope == windowing.ScopeInput {
			b.mark(reading.Mark{Kind: reading.MarkIdle, Input: "A", Device: "gone", TimeMS: reading.NoTime})
			if in := b.e.Status().Features[0].Inputs; in.IdleCount != 0 {
				t.Errorf("a device's will idled its input: %+v", in)
			}
			continue
		}
		b.say(at(20, 2))
		b.want()
		b.mark(reading.Mark{Kind: reading.MarkIdle, Input: "A", Device: "gone", TimeMS: reading.NoTime})
		b.want("0..10 rev 1 watermark: count=1 sum=1", "0..10 closed at rev 1")
	}
}

// I4: a keep-alive is evidence of life, and where it names a time a candidate less
// the out-of-orderness.
func TestKeepAliveMovesTheWatermark(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.OutOfOrdernessMS = 1_000 })
	b.say(at(1, 1))
	b.mark(reading.Mark{Kind: reading.MarkActive, Input: "A", TimeMS: 11_000})
	b.want()
	b.tick(50)
	b.want("0..10 rev 1 watermark: count=1 sum=1")
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

// W5: a reading belongs to every window that holds it, and is late per window.
func TestHoppingWindows(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.EveryMS = 5_000 })
	b.say(at(7, 1), at(17, 2))
	b.want("0..10 rev 1 watermark: count=1 sum=1", "0..10 closed at rev 1", "5..15 rev 1 watermark: count=1 sum=1")
	b.say(at(8, 4))
	b.want("0..10 late: window_closed", "5..15 rev 2 late_reading: count=2 sum=5")
}

// D2: the same id with other content is a duplicate and a conflict; the first
// stands. D3: identity is forgotten at cleanup plus horizon.
func TestIdentity(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { c.DuplicateHorizonMS = 3_000 })
	r := at(1, 1)
	r.ID = "e1"
	other := at(1, 2)
	other.ID = "e1"
	elsewhere := from("B", r) // whichever device brought it
	b.say(r, r, other, elsewhere)
	b.want("duplicate", "duplicate, conflict", "duplicate")
	b.mark(reading.Mark{Kind: reading.MarkRemove, Input: "B", TimeMS: reading.NoTime})
	b.say(at(17.999, 1))
	b.say(r)
	b.want("0..10 rev 1 watermark: count=1 sum=1", "0..10 closed at rev 1", "duplicate")
	b.say(at(18, 1))
	b.say(r)
	b.say(r)
	b.want("0..10 late: window_closed", "duplicate")
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

// The hard cap fires and closes the oldest windows; what comes for them is late.
func TestStateLimit(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { c.MaxOpenWindows = 2 })
	b.mark(reading.Mark{Kind: reading.MarkExists, Input: "B", TimeMS: reading.NoTime})
	b.say(at(1, 1), at(11, 2), at(21, 4))
	b.want("0..10 rev 1 state_limit: count=1 sum=1", "0..10 closed at rev 1 state_limit")
	b.say(at(2, 1))
	b.want("0..10 late: state_limit")
}

// N5, the example of SEMANTICS: carry-in 5, then 20 at 60 s and 8 at 120 s; with a
// long and with a short max_hold. The carry-in is of the instant before the window.
func TestTimeWeightedMean(t *testing.T) {
	for hold, want := range map[int64]string{300_000: "9.800000 over 300000", 60_000: "11.000000 over 179999"} {
		b := newBench(t, func(c *windowing.Config, f *windowing.Feature) {
			f.SizeMS, f.MaxHoldMS = 300_000, hold
			f.Functions = []string{"time_weighted_mean"}
		})
		initial := at(-1e-9, 5)
		initial.Delivery, initial.Stamp.WatermarkMS = reading.Initial, reading.NoTime
		b.say(initial, at(60, 20), at(120, 8))
		m := b.say(at(600, 0)).Emissions[1]
		if got := fmt.Sprintf("%.6f over %d", m.Values[0].Value.Float(), m.Coverage.CoveredMS); got != want {
			t.Errorf("max_hold %d: %s, want %s", hold, got, want)
		}
	}
}

// H2: windows of a known key fire without readings while its value is held; bad
// quality ends the hold. H3: an initial reading sets the carry-in only.
func TestHeldWindowsFire(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) {
		f.MaxHoldMS, f.AllowedLatenessMS = 25_000, 0
		f.Functions = []string{"count", "last", "time_weighted_mean"}
	})
	initial := at(1, 5)
	initial.Delivery, initial.Stamp.WatermarkMS = reading.Initial, reading.NoTime
	b.say(initial)
	keepAlive := func(s int64) {
		b.mark(reading.Mark{Kind: reading.MarkActive, Input: "A", TimeMS: s * 1000})
		b.tick(float64(b.now)/1000 + 1)
	}
	keepAlive(20)
	b.want("10..20 rev 1 watermark: count=0 last=5 time_weighted_mean=5", "10..20 closed at rev 1")
	keepAlive(60)
	b.want("20..30 rev 1 watermark: count=0 last=5 time_weighted_mean=5", "20..30 closed at rev 1")
	bad := at(72, 9)
	bad.Quality.Level = reading.Bad
	b.say(at(71, 7), bad)
	keepAlive(100)
	b.want("70..80 rev 1 watermark: count=1 last=7 time_weighted_mean=7", "70..80 closed at rev 1")
}

// H4: a correction of an earlier window corrects the later ones that hold its last
// value, and a reading late for its own window too.
func TestCarryInIsCorrected(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) {
		f.MaxHoldMS, f.AllowedLatenessMS = 60_000, 15_000
		f.Functions = []string{"count", "time_weighted_mean"}
	})
	b.say(at(0, 1), at(21, 2))
	b.want("0..10 rev 1 watermark: count=1 time_weighted_mean=1", "10..20 rev 1 watermark: count=0 time_weighted_mean=1")
	b.say(at(5, 3))
	b.want("0..10 rev 2 late_reading: count=2 time_weighted_mean=2", "10..20 rev 2 carry_in: count=0 time_weighted_mean=3")
	b.say(at(26, 2))
	b.want("0..10 closed at rev 2")
	b.say(at(6, 4))
	b.want("0..10 late: window_closed", "10..20 rev 3 carry_in: count=0 time_weighted_mean=4")
}

// H2: a new lifecycle ends the hold of the old one.
func TestNewLifecycleEndsTheHold(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) {
		f.MaxHoldMS = 60_000
		f.Functions = []string{"time_weighted_mean"}
	})
	old, young := at(1, 1), at(5, 2)
	old.Tag = reading.MakeTag(reading.Series{Input: "A", Sensor: "s", Lifecycle: "SN1"})
	young.Tag = reading.MakeTag(reading.Series{Input: "A", Sensor: "s", Lifecycle: "SN2"})
	out := b.say(young, old, from("A", at(16, 3)))
	covered := map[string]int64{}
	for _, m := range out.Emissions {
		if m.Kind == windowing.EmitFeature {
			covered[m.Lifecycle] = m.Coverage.CoveredMS
		}
	}
	if diff := cmp.Diff(map[string]int64{"SN1": 4000, "SN2": 5000}, covered); diff != "" {
		t.Error(diff)
	}
}

// N2 to N4 and N6: numbers.
func TestStatistics(t *testing.T) {
	value := func(s float64, v reading.Value) reading.Reading {
		r := at(s, 0)
		r.Value = v
		return r
	}
	big := reading.IntValue(1<<53 + 1)
	for _, c := range []struct {
		name      string
		functions []string
		readings  []reading.Reading
		want      string
	}{
		{"a large common offset", []string{"mean", "variance", "stddev", "slope"},
			[]reading.Reading{at(1, 1e9-1e-3), at(2, 1e9), at(3, 1e9+1e-3)},
			"mean=1000000000 variance=6.667289748444697e-07 stddev=0.0008165347358468405 slope=0.001000046730041504"},
		{"integers beyond 2^53", []string{"min", "max", "first", "last", "sum", "range", "delta"},
			[]reading.Reading{value(1, big), value(2, reading.IntValue(1<<53+3))},
			"min=9007199254740993 max=9007199254740995 first=9007199254740993 last=9007199254740995 sum=18014398509481988 range=2 delta=2"},
		{"nearest rank", []string{"p50", "p95", "p99_9", "p1"},
			[]reading.Reading{at(1, 15), at(2, 20), at(3, 35), at(4, 40), at(5, 50)}, "p50=35 p95=50 p99_9=50 p1=15"},
		{"states of text", []string{"state_duration_s.RUN", "state_share.STOP", "transitions", "count", "sum"},
			[]reading.Reading{value(0, reading.TextValue("RUN")), value(4, reading.TextValue("STOP")), value(6, reading.TextValue("RUN"))},
			"state_duration_s.RUN=8 state_share.STOP=0.2 transitions=2 count=3 sum=null"},
		{"states of booleans", []string{"state_duration_s.true", "transitions", "min"},
			[]reading.Reading{value(2, reading.BoolValue(true)), value(5, reading.BoolValue(false))},
			"state_duration_s.true=3 transitions=1 min=null"},
		{"rms and integral", []string{"rms", "integral"}, []reading.Reading{at(0, 3), at(5, 4)}, "rms=3.5355339059327378 integral=35"},
		{"one reading", []string{"stddev", "slope", "range"}, []reading.Reading{at(1, 2)}, "stddev=0 slope=null range=0"},
		{"ties go by id, then value", []string{"first", "last"},
			[]reading.Reading{named("b", at(1, 1)), named("a", at(1, 9)), at(1, 5), named("b", at(1, 3))}, "first=5 last=1"},
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

func named(id string, r reading.Reading) reading.Reading {
	r.ID = id
	return r
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
		excluded.Stamp.EventBound = reading.MakeBound(5e9)
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
		if s := b.e.Status().Features[0]; s.Windowed != 6 || s.Excluded != 1 {
			t.Errorf("windowed %d, excluded %d", s.Windowed, s.Excluded)
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
	b.say(at(2, 1))
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
	if in := b.e.Status().Features[0].Inputs; in.ActiveCount+in.IdleCount != 0 {
		t.Errorf("%+v", in)
	}
	b.say(at(2, 1))
	b.want("0..10 late: window_closed")
}

// F5: emit_empty gives results for known keys without readings.
func TestEmitEmpty(t *testing.T) {
	b := newBench(t, func(c *windowing.Config, f *windowing.Feature) { f.EmitEmpty, f.AllowedLatenessMS = true, 0 })
	b.say(at(1, 1), at(31, 1))
	b.want("0..10 rev 1 watermark: count=1 sum=1", "0..10 closed at rev 1", "10..20 rev 1 watermark: count=0 sum=null",
		"10..20 closed at rev 1", "20..30 rev 1 watermark: count=0 sum=null", "20..30 closed at rev 1")
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
