package windowing

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The kept times and values against sorted lists, where the upper two bytes differ and where not.
func TestKeptAgainstSortedList(t *testing.T) {
	instant := rapid.Custom(func(t *rapid.T) int64 {
		at := rapid.SampledFrom([]int64{0, 1 << 48, -1 << 48, 5 << 48, math.MinInt64 + 9, math.MaxInt64 - 9}).Draw(t, "around")
		return at + rapid.Int64Range(-9, 9).Draw(t, "off")
	})
	rapid.Check(t, func(t *rapid.T) {
		var x keptList
		var want []int64
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				ns := instant.Draw(t, "ns")
				at, _ := slices.BinarySearch(want, ns)
				if got := x.from(ns); got != at {
					t.Fatalf("%d is at %d of %d, not at %d", ns, at, want, got)
				}
				want = slices.Insert(want, at, ns)
				x.insert(at, ns, uint64(ns)*3)
			},
			"drop": func(t *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(t, "n")
				want = want[n:]
				x.dropFront(n)
			},
			"": func(t *rapid.T) {
				if x.len() != len(want) {
					t.Fatalf("%d times, want %d", x.len(), want)
				}
				for i, ns := range want {
					if x.ns(i) != ns || x.num(i) != uint64(ns)*3 {
						t.Fatalf("%d of %d at %d, want %d", x.num(i), x.ns(i), i, ns)
					}
				}
				if x.top != nil && (len(want) == 0 || want[0]>>48 == want[len(want)-1]>>48) {
					t.Fatalf("%d are kept at eight bytes", want)
				}
			},
		})
	})
}
