package windowing_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tidemark/reading"
	"tidemark/windowing"
	"tidemark/windowing/trace"
)

// drawConfig draws one to three features of one scope over small windows.
func drawConfig(t *rapid.T) windowing.Config {
	c := windowing.Config{FloorMS: reading.NoTime, LateIdentityMS: windowing.Forever}
	c.Explicit = rapid.Bool().Draw(t, "explicit")
	c.DuplicateHorizonMS = rapid.SampledFrom([]int64{0, 0, 15}).Draw(t, "horizon")
	c.FloorMS = drawFloor(t)
	c.Expectations = drawExpectations(t)
	scope := windowing.Scope(rapid.IntRange(0, 2).Draw(t, "scope"))
	for i := range rapid.IntRange(1, 3).Draw(t, "features") {
		c.Features = append(c.Features, drawFeature(t, fmt.Sprintf("f%d", i), scope))
	}
	return c
}

func drawFloor(t *rapid.T) int64 {
	if rapid.IntRange(0, 3).Draw(t, "has floor") == 0 {
		return rapid.Int64Range(-5, 30).Draw(t, "floor")
	}
	return reading.NoTime
}

func drawExpectations(t *rapid.T) []windowing.Expectation {
	if rapid.IntRange(0, 2).Draw(t, "expected") > 0 {
		return nil
	}
	return []windowing.Expectation{
		{Select: windowing.Selector{Input: rapid.SampledFrom([]string{"", "A"}).Draw(t, "of input"), Sensor: "s1"},
			EveryMS: rapid.Int64Range(0, 4).Draw(t, "every"), AlarmAfterMS: rapid.SampledFrom([]int64{0, 4, 8, 25}).Draw(t, "alarm")},
		{EveryMS: 3, AlarmAfterMS: 11},
	}
}

func drawFeature(t *rapid.T, name string, scope windowing.Scope) windowing.Feature {
	size := rapid.SampledFrom([]int64{1, 7, 10, 30}).Draw(t, "size")
	f := windowing.Feature{
		ID: windowing.FeatureID{Name: name, Version: 1}, Scope: scope,
		SizeMS: size, EveryMS: rapid.Int64Range(max(1, size/4), size).Draw(t, "every"),
		OffsetMS:  rapid.Int64Range(1-size, size-1).Draw(t, "offset"),
		GoodOnly:  rapid.IntRange(0, 5).Draw(t, "good only") == 0,
		Functions: []string{"count", "sum", "min", "max", "mean"},
	}
	drawTuning(t, &f)
	if rapid.IntRange(0, 3).Draw(t, "narrow") == 0 {
		f.Select.Sensor = "s1"
	}
	if rapid.IntRange(0, 4).Draw(t, "one input") == 0 {
		f.Select.Input = "A"
	}
	if rapid.IntRange(0, 4).Draw(t, "group") == 0 {
		f.Group, f.GroupPerAsset = "all", rapid.Bool().Draw(t, "per asset")
	}
	return f
}

func drawTuning(t *rapid.T, f *windowing.Feature) {
	f.ID.Tuning = rapid.Uint32Range(0, 9).Draw(t, "tuning")
	f.OutOfOrdernessMS = rapid.SampledFrom([]int64{0, 3, 12}).Draw(t, "disorder")
	f.AllowedLatenessMS = rapid.SampledFrom([]int64{0, 1, 20, 60}).Draw(t, "lateness")
	f.IdleAfterMS = rapid.SampledFrom([]int64{0, 5, 15}).Draw(t, "idle")
	f.FlushAfterMS = rapid.SampledFrom([]int64{0, 0, 4}).Draw(t, "flush")
	f.CorrectEveryMS = rapid.SampledFrom([]int64{0, 0, 6, 30}).Draw(t, "correct")
	f.MaxLagMS = rapid.SampledFrom([]int64{0, 0, 5, 25}).Draw(t, "lag")
}

// tracer draws the operations of a trace: a front of event time that moves on,
// readings around it, repetitions, marks, emissions, other configurations.
type tracer struct {
	config windowing.Config
	ever   []windowing.Feature // that were in force
	front  int64
	now    int64
	n      int
	sent   []reading.Reading
	pool   []reading.Series
	clock  *reading.ClockSegment
}

func newTracer(t *rapid.T, c windowing.Config) *tracer {
	x := &tracer{config: c, ever: slices.Clone(c.Features)}
	for range rapid.IntRange(1, 4).Draw(t, "series") {
		x.pool = append(x.pool, reading.Series{
			Input: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "input"), Device: rapid.SampledFrom([]string{"", "d"}).Draw(t, "device"),
			Sensor: rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "sensor"), Asset: rapid.SampledFrom([]string{"", "p"}).Draw(t, "asset"),
		})
	}
	return x
}

func (x *tracer) series(t *rapid.T) reading.Series { return rapid.SampledFrom(x.pool).Draw(t, "which") }

func (x *tracer) reading(t *rapid.T) reading.Reading {
	if len(x.sent) > 0 && rapid.IntRange(0, 6).Draw(t, "again") == 0 {
		r := x.sent[rapid.IntRange(0, len(x.sent)-1).Draw(t, "sent")]
		if r.ID != "" && rapid.IntRange(0, 3).Draw(t, "changed") == 0 {
			r.Value = reading.FloatValue(77) // a conflict
		}
		return r
	}
	x.n++
	x.front += rapid.SampledFrom([]int64{0, 0, 1, 3, 9}).Draw(t, "step")
	ms := x.front + rapid.SampledFrom([]int64{0, 0, 0, 2, -1, -4, -9, -15, -22, -40}).Draw(t, "delay")
	r := accepted(x.series(t), ms*1e6+rapid.SampledFrom([]int64{0, 999_999}).Draw(t, "ns"),
		reading.FloatValue(rapid.SampledFrom([]float64{1, 2, -3, 0.1, 1e17, -1e-9}).Draw(t, "value")))
	switch rapid.IntRange(0, 3).Draw(t, "identity") {
	case 0:
		r.Seq, r.HasSeq = uint64(x.n), true
	case 1:
	default:
		r.ID = fmt.Sprint("e", x.n)
		if len(x.sent) > 0 && x.tellsParts() && rapid.IntRange(0, 5).Draw(t, "old id") == 0 {
			r.ID = x.sent[rapid.IntRange(0, len(x.sent)-1).Draw(t, "sent")].ID
		}
	}
	r.Quality.Level = rapid.SampledFrom([]reading.Level{0, 0, 0, reading.Uncertain, reading.Bad}).Draw(t, "quality")
	r.Stamp.Clock = x.clock
	switch rapid.IntRange(0, 17).Draw(t, "kind") {
	case 0:
		r.Stamp = reading.Stamp{Disposition: reading.Quarantine, EventNS: reading.NoTime, WatermarkMS: reading.NoTime}
	case 1:
		r.Stamp = reading.Stamp{Disposition: reading.Pending, EventNS: reading.NoTime, WatermarkMS: reading.NoTime}
	case 2:
		r.Delivery, r.Stamp.WatermarkMS = reading.Historical, reading.NoTime
	case 3:
		r.Stamp.WatermarkMS -= 5 // G3
	case 4:
		r.Stamp.EventBound = reading.MakeBound(rapid.Int64Range(0, 20e6).Draw(t, "bound"))
	case 5:
		r.Delivery, r.Stamp.WatermarkMS, r.Stamp.Flags = reading.Rejudged, reading.NoTime, reading.RetroCorrected
	case 6:
		r.Stamp.Flags, r.Unit = reading.FuturePossible, "Cel"
	}
	if r.Stamp.Disposition == reading.Accept {
		x.sent = append(x.sent, r)
	}
	return r
}

// tellsParts reports whether the engine knows of each identity when it is to be
// forgotten: whether sixteen parts of a group are enough for that.
func (x *tracer) tellsParts() bool {
	if len(x.ever) != 1 {
		return false
	}
	f := &x.ever[0]
	kept := f.SizeMS + f.AllowedLatenessMS + x.config.DuplicateHorizonMS
	return max(f.SizeMS, kept/2) <= 16*f.EveryMS
}

func accepted(s reading.Series, ns int64, v reading.Value) reading.Reading {
	return reading.Reading{
		Tag: reading.MakeTag(s), Value: v, Source: reading.SourceTime{NS: ns, Zoned: true}, ServerNS: reading.NoTime,
		Stamp: reading.Stamp{Disposition: reading.Accept, EventNS: ns, WatermarkMS: reading.FloorMS(ns)},
	}
}

func (x *tracer) mark(t *rapid.T, at int) reading.Mark {
	kinds := []reading.MarkKind{reading.MarkExists, reading.MarkRemove, reading.MarkIdle, reading.MarkActive}
	if x.config.Explicit {
		kinds = append(kinds, reading.MarkWatermark, reading.MarkWatermark, reading.MarkWatermark, reading.MarkWatermark)
	} else {
		kinds = append(kinds, reading.MarkCatchUpBegin, reading.MarkCatchUpEnd)
	}
	s := x.series(t)
	m := reading.Mark{Kind: rapid.SampledFrom(kinds).Draw(t, "mark"), At: at, Input: s.Input, TimeMS: reading.NoTime}
	switch rapid.IntRange(0, 7).Draw(t, "named") {
	case 0: // by what may be less or more than a partition
		m.Device = "d"
	case 1:
		m.Asset = s.Asset
	case 2:
	default:
		switch x.config.Features[0].Scope {
		case windowing.ScopeDevice:
			m.Device = "d"
		case windowing.ScopeSensor:
			m.Asset, m.Sensor = s.Asset, s.Sensor
		}
	}
	switch m.Kind {
	case reading.MarkWatermark:
		m.TimeMS = x.front + rapid.Int64Range(-15, 10).Draw(t, "watermark")
	case reading.MarkActive:
		if rapid.Bool().Draw(t, "evidence") {
			m.TimeMS = x.front + rapid.Int64Range(-15, 3).Draw(t, "evidence of")
		}
	}
	return m
}

func (x *tracer) batch(t *rapid.T) *reading.Batch {
	b := &reading.Batch{GatewayMS: reading.NoTime}
	kind := rapid.IntRange(0, 9).Draw(t, "op")
	switch {
	case kind < 5:
		b.Readings = append(b.Readings, x.reading(t))
	case kind < 7:
		for range rapid.IntRange(0, 6).Draw(t, "readings") {
			b.Readings = append(b.Readings, x.reading(t))
		}
		if rapid.Bool().Draw(t, "marked") {
			b.Marks = append(b.Marks, x.mark(t, rapid.IntRange(0, len(b.Readings)).Draw(t, "at")))
		}
		b.Emit = rapid.Bool().Draw(t, "emit")
	case kind < 8 && (x.config.Explicit || rapid.IntRange(0, 2).Draw(t, "mark too") == 0):
		b.Marks = append(b.Marks, x.mark(t, 0))
	default:
		b.Emit = true
	}
	if b.Emit || kind == 5 {
		x.now += rapid.SampledFrom([]int64{0, 1, 4, 7, 20}).Draw(t, "gateway")
		b.GatewayMS = x.now
	}
	if rapid.IntRange(0, 9).Draw(t, "clock changes") == 0 {
		x.clock = &reading.ClockSegment{State: reading.ClockState(rapid.IntRange(0, 4).Draw(t, "state"))}
	}
	b.Clock = x.clock
	return b
}

// reconfigure draws another configuration.
func (x *tracer) reconfigure(t *rapid.T) []byte {
	c := x.config
	c.Features = slices.Clone(c.Features)
	some := rapid.IntRange(0, len(c.Features)-1).Draw(t, "feature")
	switch rapid.IntRange(0, 10).Draw(t, "change") {
	case 0, 1, 2, 3:
		drawTuning(t, &c.Features[some])
	case 4:
		c.Expectations = drawExpectations(t)
	case 5:
		c.FloorMS = drawFloor(t)
	case 6:
		if len(c.Features) > 1 {
			c.Features = slices.Delete(c.Features, some, some+1)
		}
	case 7:
		back := rapid.SampledFrom(x.ever).Draw(t, "back")
		if !slices.ContainsFunc(c.Features, func(f windowing.Feature) bool { return f.ID.Name == back.ID.Name }) {
			c.Features = slices.Insert(c.Features, some, back)
		}
	case 8:
		f := drawFeature(t, c.Features[some].ID.Name, c.Features[some].Scope)
		f.ID.Version = rapid.IntRange(1, 2).Draw(t, "version") // not raised: a fault
		c.Features[some] = f
	case 9:
		c.Features[some].Scope = windowing.Scope(rapid.IntRange(0, 2).Draw(t, "scope"))
	case 10:
		c.Features = append(c.Features, drawFeature(t, fmt.Sprint("g", len(x.ever)), c.Features[0].Scope))
	}
	x.ever = append(x.ever, c.Features...)
	x.config = c
	return windowing.AppendConfig(nil, &c)
}

func drawTrace(t *rapid.T, c windowing.Config) []*reading.Batch {
	x := newTracer(t, c)
	blocks := []*reading.Batch{{GatewayMS: 0, Emit: true}}
	changes := rapid.IntRange(0, 2).Draw(t, "changes") == 0
	for range rapid.IntRange(1, 60).Draw(t, "operations") {
		var config []byte
		if changes && rapid.IntRange(0, 7).Draw(t, "configures") == 0 {
			config = x.reconfigure(t)
		}
		b := x.batch(t)
		b.Config = config
		blocks = append(blocks, b)
	}
	return blocks
}

// recorded writes what `tidemark replay --as-recorded` takes.
func recorded(c windowing.Config, blocks []*reading.Batch) string {
	var w trace.Writer
	text, err := w.AppendBatch(nil, &reading.Batch{GatewayMS: reading.NoTime, Config: windowing.AppendConfig(nil, &c)})
	for _, b := range blocks {
		if err == nil {
			text, err = w.AppendBatch(text, b)
		}
	}
	return fmt.Sprintf("%s%v", text, err)
}

// The engine against the naive twin, line by line. `-rapid.checks=10000` is what
// continuous integration runs.
func TestAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		e, err := windowing.New(c)
		if err != nil {
			t.Fatal(err)
		}
		w := newTwin(c)
		blocks := drawTrace(t, c)
		for i, b := range blocks {
			out := e.Step(b)
			var got []string
			for n := range out.Emissions {
				got = append(got, spell(&out.Emissions[n]))
			}
			want := w.step(b, out.Outcomes)
			var faults []string
			for _, f := range out.Faults {
				faults = append(faults, f.Feature.Name)
			}
			if !slices.Equal(faults, w.faults) {
				t.Fatalf("operation %d: features %v are refused, want %v", i, faults, w.faults)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("operation %d: (-want +got)\n%s\n%s", i, cmp.Diff(want, got), recorded(c, blocks[:i+1]))
			}
		}
		features := e.Status()
		if len(features) != len(w.features)+w.disabled {
			t.Fatalf("%d features, want %d and %d that are disabled", len(features), len(w.features), w.disabled)
		}
		for i, f := range w.features {
			s := features[i]
			if counts := [3]int{int(s.Windowed), int(s.Late), int(s.Excluded)}; counts != f.counts {
				t.Fatalf("feature %d: windowed, late, excluded %v, want %v", i, counts, f.counts)
			}
		}
	})
}
