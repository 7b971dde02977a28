package reading_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"tidemark/reading"
)

// MakeBound finds the smallest code that is at least the exact bound.
func TestMakeBoundIsTheSmallestThatHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64),
			rapid.Custom(func(t *rapid.T) int64 {
				return 1<<rapid.IntRange(0, 62).Draw(t, "bit") + rapid.Int64Range(-1, 1).Draw(t, "off")
			}),
		).Draw(t, "ns")
		ns = max(ns, 0)
		b := reading.MakeBound(ns)
		if !b.Known() || b.NS() < ns || b > 1 && (b-1).NS() >= ns {
			t.Errorf("MakeBound(%d) = %d, which is %d ns", ns, b, b.NS())
		}
	})
	if reading.MakeBound(-1).Known() {
		t.Error("no bound is a bound")
	}
}
