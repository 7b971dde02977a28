package history

import (
	"encoding/binary"

	"tidemark/reading"
)

// A block's index says which sensors it may hold, so that a search reads only the
// blocks that matter:
//
//	version u8 ‖ what u8 ‖ what is kept out (kept.go) ‖ filter
//
// The filter is a Bloom filter of ten bits for each sensor (asset and name), four
// of which are set: two or three in a hundred sensors that are not there seem to be.
// With many sensors nearly every block holds all of them, and a filter would cost more
// flash than it saves reading: then there is none.
const (
	indexVersion  = 1
	indexConfig   = 1 << 0 // the block brings a configuration
	indexFiltered = 1 << 1 // there is a filter
	indexKept     = 1 << 2 // readings are kept out

	indexMost = 256 // sensors in a filter
	indexBits = 10  // for each
	indexSet  = 4   // of them
)

// Indexer makes indexes. The zero Indexer is ready; it is for one goroutine.
type Indexer struct {
	tags map[reading.Tag]struct{}
}

// Append appends the index of b's block.
func (x *Indexer) Append(dst []byte, b *reading.Batch) []byte {
	what := byte(0)
	if b.Config != nil {
		what = indexConfig
	}
	filtered := x.collect(b.Readings)
	if filtered {
		what |= indexFiltered
	}
	sums := KeptOf(b.Readings)
	if len(sums) > 0 {
		what |= indexKept
	}
	dst = append(dst, indexVersion, what)
	if len(sums) > 0 {
		section := appendKept(nil, sums)
		dst = append(binary.AppendUvarint(dst, uint64(len(section))), section...)
	}
	if !filtered {
		return dst
	}
	at := len(dst)
	dst = append(dst, make([]byte, (len(x.tags)*indexBits+7)/8)...)
	for tag := range x.tags { // the order cannot show
		s := tag.Value()
		place(dst[at:], s.Asset, s.Sensor, func(b *byte, bit byte) bool { *b |= bit; return true })
	}
	return dst
}

// collect gathers the series of the readings, and gives up where there are many.
func (x *Indexer) collect(rs []reading.Reading) bool {
	if x.tags == nil {
		x.tags = make(map[reading.Tag]struct{}, indexMost)
	}
	clear(x.tags)
	for i := range rs {
		if i > 0 && rs[i].Tag == rs[i-1].Tag {
			continue
		}
		if x.tags[rs[i].Tag] = struct{}{}; len(x.tags) > indexMost {
			return false
		}
	}
	return true
}

// mayHold reports whether a block with that index may hold readings of the sensor.
func mayHold(index []byte, asset, sensor string) bool {
	if len(index) < 2 || index[0] != indexVersion || index[1]&indexFiltered == 0 {
		return true
	}
	_, filter, _ := keptSection(index)
	return len(filter) > 0 && place(filter, asset, sensor, func(b *byte, bit byte) bool { return *b&bit != 0 })
}

// configures reports whether a block with that index brings a configuration.
func configures(index []byte) bool {
	return len(index) >= 2 && index[0] == indexVersion && index[1]&indexConfig != 0
}

// place visits the bits of a sensor until visit returns false, which it returns.
func place(filter []byte, asset, sensor string, visit func(b *byte, bit byte) bool) bool {
	h := hash(asset, sensor)
	step := h>>32 | 1
	n := uint64(len(filter)) * 8
	for range indexSet {
		at := h % n
		if !visit(&filter[at/8], 1<<(at%8)) {
			return false
		}
		h += step
	}
	return true
}

// hash is FNV-1a; it stands on disk and does not change.
func hash(asset, sensor string) uint64 {
	h := uint64(14695981039346656037)
	for _, s := range [...]string{asset, "\x00", sensor} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	return h
}
