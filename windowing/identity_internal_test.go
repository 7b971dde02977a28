package windowing

import (
	"testing"

	"pgregory.net/rapid"

	"tidemark/reading"
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

// OPC UA's overflow bit is of the queue, not of the value.
func TestIdentityWithoutOverflow(t *testing.T) {
	of := func(level reading.Level, status uint32) identity {
		id, ok := identify(&reading.Reading{Value: reading.IntValue(1), Quality: reading.Quality{Level: level, Status: status}, Source: reading.SourceTime{NS: 1e9}}, 1)
		if !ok {
			t.Fatal("a reading with a source time has an identity")
		}
		return id
	}
	for _, same := range [][2]uint32{{0, 0x480}, {0, 0x400}, {0x100, 0x580}, {0x80000000, 0x80000480}} {
		if of(reading.Good, same[0]) != of(reading.Good, same[1]) {
			t.Errorf("%#x and %#x are told apart", same[0], same[1])
		}
	}
	for _, other := range [][2]uint32{{0, 0x80}, {0, 192}, {0, 0x100}, {0, 0x40900000}, {192, 216}} {
		if of(reading.Good, other[0]) == of(reading.Good, other[1]) {
			t.Errorf("%#x and %#x are taken for one", other[0], other[1])
		}
	}
	if of(reading.Good, 0) == of(reading.Uncertain, 0) {
		t.Error("good and uncertain are taken for one")
	}
}
