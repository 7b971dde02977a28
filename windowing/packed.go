package windowing

import (
	"encoding/binary"
	"slices"
)

// packed is a sorted list of identities of seven bytes each: the highest byte is
// told by the place. The zero packed is empty, and so is none.
type packed struct {
	low    []byte      // little-endian, and one byte more, so that each can be read as eight
	starts [257]uint32 // those with the highest byte h are from starts[h] to starts[h+1]
}

const (
	lowBytes = 7
	lowBits  = 8 * lowBytes
	lowMask  = 1<<lowBits - 1
)

func (p *packed) len() int {
	if p == nil {
		return 0
	}
	return int(p.starts[256])
}

// lowAt returns entry i but for its highest byte.
func (p *packed) lowAt(i int) uint64 {
	return binary.LittleEndian.Uint64(p.low[lowBytes*i:]) & lowMask
}

func (p *packed) setLow(i int, b uint64) {
	low := p.low[lowBytes*i:][:lowBytes]
	binary.LittleEndian.PutUint32(low, uint32(b))
	binary.LittleEndian.PutUint16(low[4:], uint16(b>>32))
	low[6] = byte(b >> 48)
}

// search returns the place of the first entry that is at least b, and where those
// with b's highest byte end. Entries from limit on are not looked at.
func (p *packed) search(b uint64, limit int) (at, end int) {
	if p == nil {
		return 0, 0
	}
	h := b >> lowBits
	b &= lowMask
	lo, up := int(p.starts[h]), min(int(p.starts[h+1]), limit)
	end = up
	for lo < up {
		if mid := int(uint(lo+up) / 2); p.lowAt(mid) < b {
			lo = mid + 1
		} else {
			up = mid
		}
	}
	return lo, end
}

// merge puts an ascending list into p, but for what is there already. What lies
// between two new entries is moved as a whole.
func (p *packed) merge(list []uint64) {
	n := p.len()
	total := n + len(list)
	p.extend(total)
	var added [256]uint32  // by highest byte
	rest, free := n, total // entries not yet moved are before rest; what is done is from free on
	for _, b := range slices.Backward(list) {
		at, end := p.search(b, rest)
		known := at < end && p.lowAt(at) == b&lowMask
		free -= rest - at
		copy(p.low[lowBytes*free:], p.low[lowBytes*at:lowBytes*rest])
		rest = at
		if !known {
			free--
			p.setLow(free, b)
			added[b>>lowBits]++
		}
	}
	copy(p.low[lowBytes*rest:], p.low[lowBytes*free:lowBytes*total]) // closes the gap of those there already
	p.low = p.low[:lowBytes*(total-free+rest)+1]
	sum := uint32(0)
	for h, k := range added {
		sum += k
		p.starts[h+1] += sum
	}
}

// extend makes room for n entries.
func (p *packed) extend(n int) {
	size := lowBytes*n + 1
	if cap(p.low) < size {
		p.low = append(slices.Grow([]byte(nil), size+size/16), p.low...)
	}
	p.low = p.low[:size]
}

// appendTo appends all entries, ascending.
func (p *packed) appendTo(all []uint64) []uint64 {
	if p == nil {
		return all
	}
	for h := range 256 {
		for i := p.starts[h]; i < p.starts[h+1]; i++ {
			all = append(all, uint64(h)<<lowBits|p.lowAt(int(i)))
		}
	}
	return all
}
