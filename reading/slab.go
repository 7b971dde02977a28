package reading

import "sync"

// SlabLen is the capacity of a slab: about as many readings as a reader hands over
// in one piece.
const SlabLen = 1536

// slabs are what a fast source's readings are built in over and over again: at half
// a million a second they would be 100 MB of garbage a second.
var slabs = sync.Pool{New: func() any { return new([SlabLen]Reading) }}

// TakeSlab returns room for SlabLen readings, with none in it. It is garbage like
// any other slice, unless RecycleSlab gets it back.
func TakeSlab() []Reading { return slabs.Get().(*[SlabLen]Reading)[:0] }

// RecycleSlab takes back what TakeSlab gave, with the readings in it; nobody may
// hold on to them. Any other slice it leaves alone.
func RecycleSlab(rs []Reading) {
	if cap(rs) != SlabLen {
		return
	}
	clear(rs)
	slabs.Put((*[SlabLen]Reading)(rs[:SlabLen]))
}
