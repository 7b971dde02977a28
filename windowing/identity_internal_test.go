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
		n := 0
		seed := rapid.Uint64().Draw(t, "seed")
		spread := uint64(1) << rapid.IntRange(4, 52).Draw(t, "spread")
		for i := range rapid.IntRange(0, 3000).Draw(t, "n") {
			id := identity{bits: mix(seed, uint64(i)) % spread << keyShift}.nonzero()
			id.bits |= uint64(i) & 0xff
			found, had := table.find(id), want[id.bits>>keyShift]
			if found != had || had != 0 && id.conflicts(found) != (had&0xff != id.bits&0xff) {
				t.Fatalf("find %x = %x; there is %x", id.bits, found, had)
			}
			if found == 0 || i%5 == 0 { // forgotten, and come again in a later part
				part := min(found&partMask>>partShift+1, 15)
				if found != 0 && part == found&partMask>>partShift {
					continue
				}
				id = id.at(part)
				want[id.bits>>keyShift] = id.bits
				table.insert(id.bits)
				n++
			}
		}
		if table.len() != n || len(table.ascending(nil)) != n {
			t.Fatalf("%d identities, want %d", table.len(), n)
		}
	})
}
