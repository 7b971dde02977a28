package windowing

import "slices"

// gaps finds the longest stretch without a reading in bounded space and whatever
// the order of arrival: up to 32 times exactly, beyond that which of 1,024 equal
// parts of the window have a reading. Windows of more than 2^32 ms count in
// parts from the first reading on.
type gaps struct {
	n    uint64
	bits [gapParts / 64]uint64
}

const (
	gapParts = 1024
	gapTimes = gapParts / 32
)

// exact reports whether the times themselves are kept.
func (g *gaps) exact(size int64) bool { return g.n <= gapTimes && size < 1<<32 }

// add takes a reading at offset ms in a window of size ms.
func (g *gaps) add(offset, size int64) {
	g.n++
	switch {
	case g.exact(size):
		g.setTime(int(g.n-1), uint32(offset))
		return
	case g.n == gapTimes+1 && size < 1<<32:
		g.spread(size)
	}
	g.mark(offset, size)
}

func (g *gaps) time(i int) uint32 { return uint32(g.bits[i/2] >> (32 * (i & 1))) }

func (g *gaps) setTime(i int, t uint32) {
	shift := 32 * (i & 1)
	g.bits[i/2] = g.bits[i/2]&^(uint64(1<<32-1)<<shift) | uint64(t)<<shift
}

// spread turns the times into parts.
func (g *gaps) spread(size int64) {
	var times [gapTimes]uint32
	for i := range times {
		times[i] = g.time(i)
	}
	clear(g.bits[:])
	for _, t := range times {
		g.mark(int64(t), size)
	}
}

func (g *gaps) mark(offset, size int64) {
	part := uint64(offset) / partMS(size)
	g.bits[part/64] |= 1 << (part % 64)
}

func partMS(size int64) uint64 { return (uint64(size) + gapParts - 1) / gapParts }

// longest returns the longest stretch in ms, the window's edges included.
func (g *gaps) longest(size int64) int64 {
	if g.n == 0 {
		return size
	}
	if g.exact(size) {
		return g.longestExact(size)
	}
	width := int64(partMS(size))
	last, best := int64(-1), int64(0)
	for part := range int64(gapParts) {
		if g.bits[part/64]&(1<<(part%64)) != 0 {
			best = max(best, part-last-1)
			last = part
		}
	}
	return max(best*width, size-(last+1)*width)
}

func (g *gaps) longestExact(size int64) int64 {
	var buf [gapTimes]uint32
	times := buf[:g.n]
	for i := range times {
		times[i] = g.time(i)
	}
	slices.Sort(times)
	last, best := int64(0), int64(0)
	for _, t := range times {
		best = max(best, int64(t)-last)
		last = int64(t)
	}
	return max(best, size-last)
}
