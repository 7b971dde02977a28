package windowing_test

import (
	"testing"

	"pgregory.net/rapid"

	"tidemark/reading"
	"tidemark/windowing"
)

func (b *bench) take(rs ...reading.Reading) { b.step(&reading.Batch{Readings: rs, Emit: true}) }

func (b *bench) lives(ms int64) *windowing.Output {
	return b.step(&reading.Batch{Marks: []reading.Mark{{Kind: reading.MarkActive, Input: "A", TimeMS: ms}}, Emit: true})
}

// Evidence of life may wait until it takes a partition past the end or the closing
// of a window, or wakes it.
func TestEvidenceThatAdvances(t *testing.T) {
	b := newBench(t, func(_ *windowing.Config, f *windowing.Feature) { f.OutOfOrdernessMS = 2_000 })
	b.take(at(8, 1))
	for _, c := range []struct {
		ms   int64
		want bool
	}{
		{reading.NoTime, false}, {500, false}, {9_000, false}, {11_999, false},
		{12_000, true}, // the window's end and the out-of-orderness
		{90_000, true},
	} {
		if got := b.e.Advances("A", c.ms); got != c.want {
			t.Errorf("up to %d ms: %v, want %v", c.ms, got, c.want)
		}
	}
	if b.e.Advances("B", 90_000) {
		t.Error("an input that nothing is known of")
	}
	if out := b.lives(12_000); len(out.Emissions) == 0 {
		t.Error("nothing follows from what was said to advance")
	}
	if b.e.Advances("A", 16_999) || !b.e.Advances("A", 17_000) {
		t.Error("the closing is not seen")
	}
	b.tick(200_000)
	if !b.e.Advances("A", reading.NoTime) {
		t.Error("an idle partition is not woken")
	}
}

// What is said not to advance gives nothing when it is stepped.
func TestEvidenceThatDoesNotAdvanceGivesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, func(_ *windowing.Config, f *windowing.Feature) {
			f.OutOfOrdernessMS = rapid.Int64Range(0, 5_000).Draw(rt, "disorder")
			f.OffsetMS = rapid.Int64Range(-9_000, 9_000).Draw(rt, "offset")
			f.AllowedLatenessMS = rapid.Int64Range(0, 20_000).Draw(rt, "lateness")
			f.EveryMS = rapid.SampledFrom([]int64{0, 5_000, 3_000}).Draw(rt, "every")
		})
		ms := int64(0)
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			ms += rapid.Int64Range(1, 9_000).Draw(rt, "further")
			if rapid.Bool().Draw(rt, "reading") {
				b.take(at(float64(ms)/1e3, 1))
				continue
			}
			advances := b.e.Advances("A", ms)
			for _, e := range b.lives(ms).Emissions {
				if !advances && (e.Kind == windowing.EmitFeature || e.Kind == windowing.EmitClosed) {
					rt.Fatalf("up to %d ms was said to change nothing, and gives %v", ms, e.Kind)
				}
			}
		}
	})
}
