package windowing_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tidemark/reading"
	"tidemark/windowing"
)

// drawConfig draws one to three features of one scope over small windows.
func drawConfig(t *rapid.T) windowing.Config {
	c := windowing.Config{FloorMS: reading.NoTime, LateIdentityMS: windowing.Forever}
	c.Explicit = rapid.Bool().Draw(t, "explicit")
	c.DuplicateHorizonMS = rapid.SampledFrom([]int64{0, 0, 15}).Draw(t, "horizon")
	if rapid.IntRange(0, 3).Draw(t, "has floor") == 0 {
		c.FloorMS = rapid.Int64Range(-5, 30).Draw(t, "floor")
	}
	scope := windowing.Scope(rapid.IntRange(0, 2).Draw(t, "scope"))
	for i := range rapid.IntRange(1, 3).Draw(t, "features") {
		size := rapid.SampledFrom([]int64{1, 7, 10, 30}).Draw(t, "size")
		f := windowing.Feature{
			ID: windowing.FeatureID{Name: fmt.Sprintf("f%d", i), Version: 1}, Scope: scope,
			SizeMS: size, EveryMS: rapid.Int64Range(max(1, size/4), size).Draw(t, "every"),
			OffsetMS:          rapid.Int64Range(1-size, size-1).Draw(t, "offset"),
			OutOfOrdernessMS:  rapid.SampledFrom([]int64{0, 3, 12}).Draw(t, "disorder"),
			AllowedLatenessMS: rapid.SampledFrom([]int64{0, 1, 20, 60}).Draw(t, "lateness"),
			IdleAfterMS:       rapid.SampledFrom([]int64{0, 5, 15}).Draw(t, "idle"),
			FlushAfterMS:      rapid.SampledFrom([]int64{0, 0, 4}).Draw(t, "flush"),
			CorrectEveryMS:    rapid.SampledFrom([]int64{0, 0, 6}).Draw(t, "correct"),
			MaxLagMS:          rapid.SampledFrom([]int64{0, 0, 25}).Draw(t, "lag"),
			Functions:         []string{"count", "sum", "min", "max", "mean"},
		}
		if rapid.IntRange(0, 3).Draw(t, "narrow") == 0 {
			f.Select.Sensor = "s1"
		}
		if rapid.IntRange(0, 5).Draw(t, "group") == 0 {
			f.Group = "all"
		}
		c.Features = append(c.Features, f)
	}
	return c
}

// tracer draws the operations of a trace: a front of event time that moves on,
// readings around it, repetitions, marks, emissions.
type tracer struct {
	config windowing.Config
	front  int64
	now    int64
	n      int
	sent   []reading.Reading
	pool   []reading.Series
}

func newTracer(t *rapid.T, c windowing.Config) *tracer {
	x := &tracer{config: c}
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
		return x.sent[rapid.IntRange(0, len(x.sent)-1).Draw(t, "sent")]
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
	}
	r.Quality.Level = rapid.SampledFrom([]reading.Level{0, 0, 0, reading.Uncertain, reading.Bad}).Draw(t, "quality")
	switch rapid.IntRange(0, 15).Draw(t, "kind") {
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
	}
	if r.Stamp.Disposition == reading.Accept {
		x.sent = append(x.sent, r)
	}
	return r
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
	switch x.config.Features[0].Scope {
	case windowing.ScopeDevice:
		m.Device = "d"
	case windowing.ScopeSensor:
		m.Asset, m.Sensor = s.Asset, s.Sensor
	}
	if m.Kind == reading.MarkWatermark {
		m.TimeMS = x.front + rapid.Int64Range(-15, 10).Draw(t, "watermark")
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
	return b
}

func drawTrace(t *rapid.T, c windowing.Config) []*reading.Batch {
	x := newTracer(t, c)
	trace := []*reading.Batch{{GatewayMS: 0, Emit: true}}
	for range rapid.IntRange(1, 60).Draw(t, "operations") {
		trace = append(trace, x.batch(t))
	}
	return trace
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
		for i, b := range drawTrace(t, c) {
			out := e.Step(b)
			var got []string
			for n := range out.Emissions {
				got = append(got, spell(&c, &out.Emissions[n]))
			}
			want := w.step(b)
			if !slices.Equal(got, want) {
				t.Fatalf("operation %d: (-want +got)\n%s", i, cmp.Diff(want, got))
			}
		}
		for i, s := range e.Status().Features {
			counts := [3]int{int(s.Windowed), int(s.Late), int(s.Excluded)}
			if counts != w.features[i].counts {
				t.Fatalf("feature %d: windowed, late, excluded %v, want %v", i, counts, w.features[i].counts)
			}
		}
	})
}
