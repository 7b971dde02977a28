package windowing

import (
	"testing"

	"pgregory.net/rapid"
)

// The table against a map, sizes beyond a run included.
func TestIDTableAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table idTable
		want := make(map[uint64]uint64)
		seed := rapid.Uint64().Draw(t, "seed")
		spread := uint64(1) << rapid.IntRange(4, 56).Draw(t, "spread")
		for i := range rapid.IntRange(0, 3000).Draw(t, "n") {
			id := identity{bits: mix(seed, uint64(i)) % spread << 8}.nonzero()
			id.bits |= uint64(i) & 0xff
			found, conflict := table.find(id)
			had, ok := want[id.bits>>8]
			if found != ok || conflict != (ok && had != id.bits) {
				t.Fatalf("find %x = %v %v; there is %x %v", id.bits, found, conflict, had, ok)
			}
			if !found {
				want[id.bits>>8] = id.bits
				table.insert(id.bits)
			}
		}
		if table.len() != len(want) || len(table.ascending()) != len(want) {
			t.Fatalf("%d identities, want %d", table.len(), len(want))
		}
	})
}
