package trace_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"tidemark/reading"
	"tidemark/windowing"
	"tidemark/windowing/trace"
)

// journal draws blocks as a gateway writes them: readings of every kind with
// verdicts, marks, clocks that change, configurations.
type journal struct {
	seq, clocks, sources uint64
	nowMS                int64
	clock                *reading.ClockSegment
	old                  []*reading.ClockSegment
	source               *reading.SourceSegment
}

var text = rapid.OneOf(rapid.SampledFrom([]string{"", "A", "B", "press-07", "é\u2028\"\\\n"}),
	rapid.Map(rapid.String(), func(s string) string { return strings.ToValidUTF8(s, "") }))

func drawTime(t *rapid.T, name string) int64 {
	return rapid.OneOf(
		rapid.Map(rapid.Int64Range(-50, 200), func(ms int64) int64 { return ms * 1e6 }),
		rapid.Int64Range(-1e9, 1e9),
		rapid.SampledFrom([]int64{reading.NoTime, 0, -1, math.MaxInt64, math.MinInt64 + 1}),
		rapid.Int64()).Draw(t, name)
}

func drawSeries(t *rapid.T) reading.Series {
	return reading.Series{
		Input: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "input"), Device: text.Draw(t, "device"), Asset: text.Draw(t, "asset"),
		Lifecycle: text.Draw(t, "lifecycle"), Sensor: rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "sensor"),
	}
}

func drawValue(t *rapid.T) reading.Value {
	return rapid.OneOf(
		rapid.Just(reading.Value{}), rapid.Map(rapid.Bool(), reading.BoolValue), rapid.Map(rapid.Int64(), reading.IntValue),
		rapid.Map(rapid.Uint64(), reading.UintValue), rapid.Map(rapid.Float64(), reading.FloatValue),
		rapid.Map(rapid.Int64(), func(i int64) reading.Value { return reading.FloatValue(float64(i)) }),
		rapid.Map(text, reading.TextValue)).Draw(t, "value")
}

func drawSourceTime(t *rapid.T) reading.SourceTime {
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		return reading.SourceTime{NS: rapid.Int64Range(-50, 200).Draw(t, "ms") * 1e6, Zoned: true, Unit: reading.UnitMillis}
	case 1:
		s := reading.SourceTime{NS: drawTime(t, "source"), Zoned: true}
		if s.NS != reading.NoTime {
			s.Raw = strings.Trim(string(reading.AppendJSONTime(nil, s.NS)), `"`)
		}
		return s
	case 2:
		return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeFault(rapid.IntRange(1, 3).Draw(t, "fault")),
			Raw: text.Draw(t, "raw"), Zoned: rapid.Bool().Draw(t, "zoned")}
	}
	return reading.SourceTime{NS: drawTime(t, "source"), Raw: text.Draw(t, "raw"), Zoned: rapid.Bool().Draw(t, "zoned"),
		Unit: reading.TimeUnit(rapid.IntRange(0, 4).Draw(t, "unit"))}
}

func (j *journal) newClock(t *rapid.T) {
	j.clocks++
	j.clock = &reading.ClockSegment{
		ID: j.clocks, Epoch: rapid.Uint32().Draw(t, "epoch"), Boot: rapid.Uint64().Draw(t, "boot"),
		State:  reading.ClockState(rapid.IntRange(0, 4).Draw(t, "state")),
		Method: reading.ClockMethod(rapid.IntRange(0, 5).Draw(t, "method")), Traceable: rapid.Bool().Draw(t, "traceable"),
		E0NS: rapid.Int64Min(-1).Draw(t, "e0"), RhoPPB: rapid.Int64().Draw(t, "rho"), StartBootNS: rapid.Int64().Draw(t, "start"),
		StartGatewayMS: rapid.Int64().Draw(t, "gateway"), Servers: rapid.Uint8().Draw(t, "servers"), WallMinusBootNS: rapid.Int64().Draw(t, "wall"),
	}
	j.old = append(j.old, j.clock)
}

func (j *journal) stamp(t *rapid.T, r *reading.Reading) reading.Stamp {
	s := reading.Stamp{
		Disposition: reading.Disposition(rapid.SampledFrom([]int{1, 1, 1, 1, 2, 3, 4, 0}).Draw(t, "disposition")),
		EventNS:     r.Source.NS, Clock: j.clock,
	}
	if len(j.old) > 0 && rapid.IntRange(0, 4).Draw(t, "earlier") == 0 {
		s.Clock = rapid.SampledFrom(j.old).Draw(t, "clock")
	}
	if rapid.IntRange(0, 4).Draw(t, "measured") == 0 {
		j.sources++
		j.source = &reading.SourceSegment{ID: j.sources, LoNS: rapid.Int64().Draw(t, "lo"), HiNS: rapid.Int64().Draw(t, "hi"),
			Verdict: reading.SourceVerdict(rapid.IntRange(0, 7).Draw(t, "verdict")), ZoneMin: rapid.Int16().Draw(t, "zone")}
	}
	s.Source = j.source
	if rapid.Bool().Draw(t, "plain") {
		s.WatermarkMS = reading.FloorMS(s.EventNS)
		return s
	}
	s.Reason = reading.Reason(rapid.IntRange(0, int(reading.EngineFault)).Draw(t, "reason"))
	s.Basis = reading.Basis(rapid.IntRange(0, 3).Draw(t, "basis"))
	s.Policy = reading.Policy(rapid.IntRange(0, 6).Draw(t, "policy"))
	s.Flags = reading.Flags(rapid.Uint16Range(0, 1<<11-1).Draw(t, "flags"))
	s.EventBound = reading.MakeBound(rapid.Int64Min(-1).Draw(t, "event bound"))
	s.IngestBound = reading.MakeBound(rapid.Int64Min(-1).Draw(t, "ingest bound"))
	s.TimeQuality = rapid.Uint8().Draw(t, "time quality")
	s.EventNS = drawTime(t, "event")
	s.WatermarkMS = rapid.OneOf(rapid.Just(reading.NoTime), rapid.Int64Range(-50, 200), rapid.Int64()).Draw(t, "watermark")
	return s
}

func (j *journal) reading(t *rapid.T) reading.Reading {
	r := reading.Reading{
		Tag: reading.MakeTag(drawSeries(t)), Value: drawValue(t), Unit: text.Draw(t, "unit"), ID: text.Draw(t, "id"),
		Source: drawSourceTime(t), ServerNS: drawTime(t, "server"), IngestNS: drawTime(t, "ingest"),
		Delivery: reading.Delivery(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 4, 8, 16, 31}).Draw(t, "delivery")),
		Quality:  reading.Quality{Level: reading.Level(rapid.IntRange(0, 2).Draw(t, "level")), Status: rapid.Uint32().Draw(t, "status")},
	}
	if r.HasSeq = rapid.Bool().Draw(t, "has seq"); r.HasSeq {
		r.Seq = rapid.Uint64().Draw(t, "seq")
	}
	r.Stamp = j.stamp(t, &r)
	return r
}

func (j *journal) mark(t *rapid.T, at int) reading.Mark {
	s := drawSeries(t)
	m := reading.Mark{Kind: reading.MarkKind(rapid.IntRange(1, 7).Draw(t, "mark")), At: at, Input: s.Input, TimeMS: reading.NoTime}
	switch rapid.IntRange(0, 2).Draw(t, "named") {
	case 1:
		m.Device = s.Device
	case 2:
		m.Asset, m.Sensor = s.Asset, s.Sensor
	}
	switch {
	case m.Kind == reading.MarkWatermark:
		m.TimeMS = rapid.Int64Range(-50, 200).Draw(t, "time")
	case (m.Kind == reading.MarkActive || m.Kind == reading.MarkIdle) && rapid.Bool().Draw(t, "timed"):
		m.TimeMS = rapid.Int64Range(-50, 200).Draw(t, "time")
	}
	return m
}

func (j *journal) block(t *rapid.T) *reading.Batch {
	j.seq++
	if rapid.IntRange(0, 3).Draw(t, "clock changes") == 0 {
		j.newClock(t)
	}
	b := &reading.Batch{Seq: j.seq, GatewayMS: reading.NoTime, Clock: j.clock, Emit: rapid.Bool().Draw(t, "emit")}
	if rapid.IntRange(0, 3).Draw(t, "timed") > 0 {
		j.nowMS += rapid.Int64Range(0, 30).Draw(t, "passed")
		b.GatewayMS = j.nowMS
	}
	if rapid.Bool().Draw(t, "wall") {
		b.WallNS = rapid.Int64Min(1).Draw(t, "wall")
	}
	if j.seq == 1 || rapid.IntRange(0, 5).Draw(t, "configures") == 0 {
		c := drawConfig(t)
		b.Config = windowing.AppendConfig(nil, &c)
	}
	for range rapid.IntRange(0, 4).Draw(t, "readings") {
		if rapid.IntRange(0, 4).Draw(t, "marked") == 0 {
			b.Marks = append(b.Marks, j.mark(t, len(b.Readings)))
		}
		b.Readings = append(b.Readings, j.reading(t))
	}
	return b
}

func drawConfig(t *rapid.T) windowing.Config {
	c := windowing.Config{
		FloorMS:            rapid.SampledFrom([]int64{reading.NoTime, 0, 20, -5}).Draw(t, "floor"),
		DuplicateHorizonMS: rapid.Int64Range(0, 20).Draw(t, "horizon"), LateIdentityMS: rapid.Int64Range(-1, 50).Draw(t, "late identity"),
		MaxOpenWindows: rapid.IntRange(0, 5).Draw(t, "windows"), ForgetAfterMS: rapid.Int64Range(0, 50).Draw(t, "forget"),
		Explicit: rapid.Bool().Draw(t, "explicit"), Finals: rapid.Bool().Draw(t, "finals"),
	}
	if rapid.Bool().Draw(t, "no identity") {
		c.NoIdentity = []string{"B"}
	}
	if rapid.Bool().Draw(t, "expects") {
		c.Expectations = []windowing.Expectation{{Select: windowing.Selector{Input: "A", Sensor: "s*"}, EveryMS: 5, AlarmAfterMS: 9}}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "features") {
		size := rapid.SampledFrom([]int64{1, 10, 30}).Draw(t, "size")
		c.Features = append(c.Features, windowing.Feature{
			ID: windowing.FeatureID{Name: fmt.Sprint("f", i, text.Draw(t, "name")), Version: rapid.IntRange(0, 3).Draw(t, "version"),
				Definition: rapid.Uint32().Draw(t, "definition"), Tuning: rapid.Uint32().Draw(t, "tuning")},
			Select: windowing.Selector{Input: text.Draw(t, "input"), Asset: text.Draw(t, "asset"), Sensor: rapid.SampledFrom([]string{"", "s?"}).Draw(t, "sensor"),
				Sensors: rapid.SampledFrom([][]string{nil, {"s1", "s2"}}).Draw(t, "sensors"), Type: windowing.ValueType(rapid.IntRange(0, 3).Draw(t, "type"))},
			Group: text.Draw(t, "group"), GroupPerAsset: rapid.Bool().Draw(t, "per asset"), SizeMS: size,
			EveryMS: rapid.Int64Range(0, size).Draw(t, "every"), OffsetMS: rapid.Int64Range(1-size, size-1).Draw(t, "offset"),
			OutOfOrdernessMS: rapid.Int64Range(0, 9).Draw(t, "disorder"), AllowedLatenessMS: rapid.Int64Range(0, 40).Draw(t, "lateness"),
			Scope: windowing.Scope(rapid.IntRange(0, 2).Draw(t, "scope")), IdleAfterMS: rapid.Int64Range(0, 20).Draw(t, "idle"),
			FlushAfterMS: rapid.Int64Range(0, 20).Draw(t, "flush"), CorrectEveryMS: rapid.Int64Range(0, 20).Draw(t, "correct"),
			MaxLagMS: rapid.Int64Range(0, 30).Draw(t, "lag"), MaxHoldMS: rapid.Int64Range(0, 30).Draw(t, "hold"),
			EmitEmpty: rapid.Bool().Draw(t, "empty"), GoodOnly: rapid.Bool().Draw(t, "good only"),
			Functions: []string{"count", "mean", "last", "time_weighted_mean", "state_share.true"},
		})
	}
	return c
}

var exactly = cmp.Options{
	cmp.Comparer(func(a, b reading.Value) bool { return a == b }),
	cmp.Comparer(func(a, b reading.Tag) bool { return a == b }),
	cmpopts.EquateEmpty(),
}

// Journal blocks come back from a trace as they were, and an engine says the same
// of them, byte for byte.
func TestBlocksReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var j journal
		var w trace.Writer
		var blocks []*reading.Batch
		var text []byte
		for range rapid.IntRange(1, 8).Draw(t, "blocks") {
			b := j.block(t)
			var err error
			if text, err = w.AppendBatch(text, b); err != nil {
				t.Fatal(err)
			}
			blocks = append(blocks, b)
		}
		live, again := newEngine(t), newEngine(t)
		r := trace.NewReader(bytes.NewReader(text), false)
		for {
			op, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%v of\n%s", err, text)
			}
			for i := range op.Steps {
				if diff := cmp.Diff(blocks[0], &op.Steps[i], exactly); diff != "" {
					t.Fatalf("line %d (-block +read):\n%s", op.Line, diff)
				}
				want, got := emissions(live.Step(blocks[0])), emissions(again.Step(&op.Steps[i]))
				if !bytes.Equal(want, got) {
					t.Fatalf("line %d: the engine says something else", op.Line)
				}
				blocks = blocks[1:]
			}
		}
		if len(blocks) > 0 {
			t.Fatalf("%d blocks are missing", len(blocks))
		}
	})
}

func newEngine(t *rapid.T) *windowing.Engine {
	e, err := windowing.New(windowing.Config{FloorMS: reading.NoTime})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func emissions(out *windowing.Output) (b []byte) {
	for i := range out.Emissions {
		b = windowing.AppendEmission(b, &out.Emissions[i])
	}
	return b
}
