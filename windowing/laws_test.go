package windowing_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tidemark/reading"
	"tidemark/windowing"
)

var everyFunction = []string{
	"count", "sum", "mean", "min", "max", "range", "first", "last", "delta", "stddev", "variance", "rms", "slope",
	"p50", "p99_9", "time_weighted_mean", "integral", "state_duration_s.1", "state_share.RUN", "state_share.true", "transitions",
}

// drawRichConfig draws what the twin does not know: all functions, hold,
// emit_empty, silence, limits.
func drawRichConfig(t *rapid.T) windowing.Config {
	c := drawConfig(t)
	c.LateIdentityMS = rapid.SampledFrom([]int64{windowing.Forever, 0, 16}).Draw(t, "late identity")
	c.Finals = rapid.Bool().Draw(t, "finals")
	c.MaxOpenWindows = rapid.SampledFrom([]int{0, 0, 4}).Draw(t, "windows")
	c.ForgetAfterMS = rapid.SampledFrom([]int64{0, 30}).Draw(t, "forget")
	if rapid.Bool().Draw(t, "expected") {
		c.Expectations = []windowing.Expectation{{Select: windowing.Selector{Sensor: "s1"}, EveryMS: 2, AlarmAfterMS: 8}}
	}
	for i := range c.Features {
		f := &c.Features[i]
		f.MaxHoldMS = rapid.SampledFrom([]int64{0, 5, 40}).Draw(t, "hold")
		f.EmitEmpty = rapid.IntRange(0, 4).Draw(t, "empty") == 0
		f.GoodOnly = rapid.Bool().Draw(t, "good only")
		f.Select.Type = windowing.ValueType(rapid.SampledFrom([]uint8{0, 0, 1, 3}).Draw(t, "type"))
		if rapid.Bool().Draw(t, "all functions") {
			f.Functions = everyFunction
		} else {
			f.Functions = []string{rapid.SampledFrom(everyFunction).Draw(t, "function")}
		}
	}
	return c
}

func drawValue(t *rapid.T) reading.Value {
	return rapid.SampledFrom([]reading.Value{
		{}, reading.BoolValue(true), reading.BoolValue(false), reading.IntValue(1), reading.IntValue(-7), reading.IntValue(1 << 60),
		reading.UintValue(1<<63 + 1), reading.FloatValue(0.1), reading.FloatValue(1), reading.FloatValue(-1e300), reading.TextValue("RUN"), reading.TextValue("STOP"),
	}).Draw(t, "any value")
}

// enrich varies what the simple tracer leaves alike.
func enrich(t *rapid.T, b *reading.Batch) {
	for i := range b.Readings {
		r := &b.Readings[i]
		if rapid.IntRange(0, 2).Draw(t, "rich") > 0 {
			continue
		}
		r.Value = drawValue(t)
		r.Unit = rapid.SampledFrom([]string{"", "Cel", "K"}).Draw(t, "unit")
		s := r.Tag.Value()
		s.Lifecycle = rapid.SampledFrom([]string{"", "SN1", "SN2"}).Draw(t, "lifecycle")
		r.Tag = reading.MakeTag(s)
		if r.Stamp.Disposition == reading.Accept && rapid.IntRange(0, 3).Draw(t, "initial") == 0 {
			r.Delivery, r.Stamp.WatermarkMS = reading.Initial, reading.NoTime
		}
	}
}

// encode is the step's output as the journal's digest sees it.
func encode(out *windowing.Output) []byte {
	var b []byte
	for i := range out.Emissions {
		b = windowing.AppendEmission(b, &out.Emissions[i])
	}
	for _, o := range out.Outcomes {
		b = append(b, byte(o))
	}
	return b
}

// Law 2: taking a snapshot, restoring it and going on cannot be told from never
// having stopped.
func TestRestoredEngineGoesOnAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRichConfig(t)
		straight, err := windowing.New(c)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := windowing.New(c)
		blocks := drawTrace(t, c)
		for _, b := range blocks {
			enrich(t, b)
		}
		for i, b := range blocks {
			if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
				if other, err = windowing.Restore(other.AppendSnapshot(nil)); err != nil {
					t.Fatalf("operation %d: %v", i, err)
				}
			}
			if a, b := straight.NextDeadline(), other.NextDeadline(); a != b {
				t.Fatalf("operation %d: deadline %d after a restart, %d without", i, b, a)
			}
			want, got := straight.Step(b), other.Step(b)
			if !bytes.Equal(encode(want), encode(got)) {
				t.Fatalf("operation %d: (-straight +restored)\n%s\n%s\n%s", i, cmp.Diff(lines(want), lines(got)), cmp.Diff(want.Emissions, got.Emissions, emitted), recorded(c, blocks[:i+1]))
			}
			checkEmissions(t, want)
		}
		if diff := cmp.Diff(straight.Status(), other.Status()); diff != "" {
			t.Fatalf("status (-without +after restarts):\n%s", diff)
		}
	})
}

// emitted compares emissions field by field.
var emitted = cmp.Options{
	cmp.Comparer(func(a, b reading.Value) bool { return a == b }),
	cmp.Comparer(func(a, b reading.Tag) bool { return a == b }),
}

func lines(out *windowing.Output) []string {
	var all []string
	for i := range out.Emissions {
		all = append(all, spell(&out.Emissions[i]))
	}
	return append(all, fmt.Sprint(out.Outcomes))
}

// checkEmissions holds for whatever is emitted: the codec gives back the same
// bytes.
func checkEmissions(t *rapid.T, out *windowing.Output) {
	for i := range out.Emissions {
		b := windowing.AppendEmission(nil, &out.Emissions[i])
		m, rest, err := new(windowing.Names).DecodeEmission(append(b, 'x'))
		if err != nil || len(rest) != 1 {
			t.Fatalf("emission %+v: %v, %d bytes left", out.Emissions[i], err, len(rest))
		}
		if again := windowing.AppendEmission(nil, &m); !bytes.Equal(b, again) {
			t.Fatalf("emission %+v reads as %+v", out.Emissions[i], m)
		}
	}
}

// final is the last revision of every window: what a consumer is left with.
func final(e *windowing.Engine, trace []*reading.Batch) map[string]string {
	last := make(map[string]string)
	for _, b := range trace {
		out := e.Step(b)
		for i := range out.Emissions {
			m := out.Emissions[i]
			if m.Kind != windowing.EmitFeature {
				continue
			}
			key := fmt.Sprint(m.Feature.Name, "/", m.Asset, "/", m.Sensor, "/", m.Lifecycle, "/", m.StartMS)
			if m.Coverage.Observed == 0 && m.Coverage.CoveredMS <= 0 && m.Quality == (windowing.QualityCounts{}) {
				delete(last, key) // a hold that turned out to have ended before
				continue
			}
			m.Revision, m.Cause, m.WatermarkMS, m.Inputs = 0, 0, 0, windowing.InputSummary{}
			last[key] = fmt.Sprintf("%x", windowing.AppendEmission(nil, &m))
		}
	}
	return last
}

// Law 3: within the lateness budget the order of arrival cannot be told from the
// last revisions, to the last bit.
func TestOrderOfArrivalDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRichConfig(t)
		c.MaxOpenWindows, c.FloorMS, c.ForgetAfterMS = 0, reading.NoTime, 0
		c.Explicit = true
		expectOfAnyInput(&c)
		for i := range c.Features {
			c.Features[i].AllowedLatenessMS, c.Features[i].Scope = 10_000, windowing.ScopeInput
			c.Features[i].EmitEmpty = false
			c.Features[i].ID.Name = fmt.Sprint("f", i)
		}
		x := newTracer(t, c)
		var readings []reading.Reading
		for range rapid.IntRange(2, 25).Draw(t, "readings") {
			b := &reading.Batch{Readings: []reading.Reading{x.reading(t)}}
			enrich(t, b)
			r := &b.Readings[0] // no repetitions: of those the first to come stands
			r.ID, r.Seq, r.HasSeq = "", uint64(len(readings)), true
			if rapid.Bool().Draw(t, "with id") {
				r.ID = fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"), "-", len(readings))
			}
			readings = append(readings, b.Readings...)
		}
		want := run(t, c, readings, 1)
		for i := range 3 {
			mixed := make([]reading.Reading, len(readings))
			for to, from := range rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), uint64(i))).Perm(len(readings)) {
				mixed[to] = readings[from]
			}
			got := run(t, c, mixed, rapid.Int64Range(1, 4).Draw(t, "every"))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("order shows: %s", diff)
			}
		}
	})
}

// expectOfAnyInput keeps what is expected of a sensor from depending on the inputs
// that have brought it so far.
func expectOfAnyInput(c *windowing.Config) {
	for i := range c.Expectations {
		c.Expectations[i].Select.Input = ""
	}
}

// run steps the readings, the watermark moving on meanwhile, then closes all.
func run(t *rapid.T, c windowing.Config, readings []reading.Reading, every int64) map[string]string {
	e, err := windowing.New(c)
	if err != nil {
		t.Fatal(err)
	}
	trace := []*reading.Batch{{GatewayMS: 0, Emit: true}}
	mark := func(ms int64) []reading.Mark {
		var marks []reading.Mark
		for _, in := range []string{"A", "B"} {
			marks = append(marks, reading.Mark{Kind: reading.MarkWatermark, Input: in, TimeMS: ms})
		}
		return marks
	}
	for i := range readings {
		b := &reading.Batch{GatewayMS: int64(i), Readings: readings[i : i+1]}
		if int64(i)%every == 0 {
			b.Marks = mark(int64(i) * 2)
		}
		trace = append(trace, b)
	}
	trace = append(trace, &reading.Batch{GatewayMS: 1000, Marks: mark(300), Emit: true}, &reading.Batch{GatewayMS: 2000, Marks: mark(20_000), Emit: true})
	return final(e, trace)
}

// N5 and H1 against the plainest method: asking at every millisecond what value is
// held.
func TestTimeWeightedMeanAgainstSampling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hold := rapid.Int64Range(1, 60).Draw(t, "hold")
		c := windowing.Config{FloorMS: reading.NoTime, Explicit: true, Features: []windowing.Feature{{
			ID: windowing.FeatureID{Name: "f"}, SizeMS: 20, AllowedLatenessMS: 10_000, MaxHoldMS: hold,
			Functions: []string{"time_weighted_mean", "integral", "last"},
		}}}
		e, err := windowing.New(c)
		if err != nil {
			t.Fatal(err)
		}
		at := make(map[int64]reading.Reading)
		trace := []*reading.Batch{}
		for i := range rapid.IntRange(1, 12).Draw(t, "readings") {
			ms := rapid.Int64Range(0, 99).Draw(t, "ms")
			if _, twice := at[ms]; twice {
				continue
			}
			r := accepted(reading.Series{Input: "A", Sensor: "s"}, ms*1e6, reading.IntValue(rapid.Int64Range(-9, 9).Draw(t, "value")))
			if rapid.IntRange(0, 4).Draw(t, "bad") == 0 {
				r.Quality.Level = reading.Bad
			}
			at[ms] = r
			trace = append(trace, &reading.Batch{Readings: []reading.Reading{r},
				Marks: []reading.Mark{{Kind: reading.MarkWatermark, At: 1, Input: "A", TimeMS: int64(i * 8)}}})
		}
		trace = append(trace, &reading.Batch{Marks: []reading.Mark{{Kind: reading.MarkWatermark, Input: "A", TimeMS: 400}}})
		got := make(map[int64][3]string)
		for _, b := range trace {
			out := e.Step(b)
			for _, m := range out.Emissions {
				if m.Kind == windowing.EmitFeature {
					got[m.StartMS] = [3]string{
						string(m.Values[0].Value.AppendJSON(nil)), fmt.Sprint(m.Coverage.CoveredMS), string(m.Values[1].Value.AppendJSON(nil)),
					}
				}
			}
		}
		for start := int64(0); start < 160; start += 20 {
			sum, covered := int64(0), int64(0)
			for ms := start; ms < start+20; ms++ {
				for back := ms; back > ms-hold; back-- {
					if r, ok := at[back]; ok {
						if v, _ := r.Value.Int(); r.Quality.Level == reading.Good {
							sum, covered = sum+v, covered+1
						}
						break
					}
				}
			}
			want := [3]string{"null", fmt.Sprint(covered), "null"}
			if covered > 0 {
				want[0] = string(reading.AppendJSONFloat(nil, float64(sum)/float64(covered)))
				want[2] = string(reading.AppendJSONFloat(nil, float64(sum)/1000))
			}
			if g, ok := got[start]; ok && g != want || !ok && covered > 0 {
				t.Fatalf("window %d: %v, want %v", start, g, want)
			}
		}
	})
}

// What a closing carries is the last result, to the last bit, and both know the
// batch of the window's first one: across restarts too.
func TestFinalIsTheLastResult(t *testing.T) {
	type window struct {
		feature, asset, lifecycle, sensor string
		start                             int64
	}
	finals := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawRichConfig(t)
		expectOfAnyInput(&c)
		c.Finals = true
		e, err := windowing.New(c)
		if err != nil {
			t.Fatal(err)
		}
		last, first := map[window]windowing.Emission{}, map[window]uint64{}
		for i, b := range drawTrace(t, c) {
			enrich(t, b)
			b.Seq, b.Config = uint64(i+1), nil // the last result told of the configuration then
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				if e, err = windowing.Restore(e.AppendSnapshot(nil)); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range e.Step(b).Emissions {
				k := window{m.Feature.Name, m.Asset, m.Lifecycle, m.Sensor, m.StartMS}
				switch m.Kind {
				case windowing.EmitFeature:
					if m.Revision == 1 {
						first[k] = b.Seq
					}
					m.Values = slices.Clone(m.Values)
					last[k] = m
				case windowing.EmitClosed:
					if m.Final != (m.Revision > 0) {
						t.Fatalf("closing of revision %d carries a result: %t", m.Revision, m.Final)
					}
					if !m.Final {
						continue
					}
					finals++
					was := last[k]
					if m.Revision != was.Revision || m.Unit != was.Unit || m.Quality != was.Quality || m.Coverage != was.Coverage ||
						m.Clock != was.Clock || m.PartialStart != was.PartialStart || !slices.Equal(m.Values, was.Values) {
						t.Fatalf("the last result is\n%+v\nand the closing says\n%+v", was, m)
					}
				default:
					continue
				}
				if m.Since != first[k] {
					t.Fatalf("the first result came with batch %d, not %d", first[k], m.Since)
				}
			}
		}
	})
	if finals == 0 {
		t.Error("no window was closed")
	}
}
