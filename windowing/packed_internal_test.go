package windowing

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A packed list holds what was merged into it, in order and once, and finds it.
func TestPackedAgainstSortedList(t *testing.T) {
	entry := rapid.Custom(func(t *rapid.T) uint64 { // often one that is there already
		return rapid.SampledFrom([]uint64{0, 1, 0x7f, 0xfe, 0xff}).Draw(t, "high")<<lowBits | rapid.Uint64Range(0, 20).Draw(t, "low")<<rapid.SampledFrom([]int{0, 8, 50}).Draw(t, "shift")
	})
	rapid.Check(t, func(t *rapid.T) {
		var p packed
		var want []uint64
		for _, list := range rapid.SliceOfN(rapid.SliceOf(rapid.OneOf(entry, rapid.Uint64())), 1, 6).Draw(t, "lists") {
			slices.Sort(list)
			list = slices.Compact(list)
			p.merge(list)
			want = slices.Compact(slices.Sorted(slices.Values(append(want, list...))))
			if got := p.appendTo(nil); !slices.Equal(got, want) || p.len() != len(want) {
				t.Fatalf("%x of length %d after %x, want %x", got, p.len(), list, want)
			}
		}
		b := entry.Draw(t, "sought")
		first, there := slices.BinarySearch(want, b)
		at, end := p.search(b, p.len())
		if at != first || there != (at < end && p.lowAt(at) == b&lowMask) {
			t.Fatalf("%x is found at %d before %d of %x", b, at, end, want)
		}
	})
}
