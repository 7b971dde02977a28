package history

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"tidemark/reading"
)

// Quarantined readings stand in the journal, like pending ones, and nowhere else.
// The index of each block sums up what it keeps out, so that a look into the
// quarantine reads the heads of the blocks and not the readings.

// Kept sums up what a block keeps out of one sender for one reason.
type Kept struct {
	KeptKey
	Count            uint64
	OldestMS, LastMS int64 // arrival, by the wall clock of then
}

// KeptKey is whose readings are kept out, and why.
type KeptKey struct {
	Input, Sender string // reading.Series.Sender
	Reason        reading.Reason
}

// KeptKeyOf returns the key of a reading that is kept out.
func KeptKeyOf(r *reading.Reading) KeptKey {
	s := r.Tag.Value()
	return KeptKey{s.Input, s.Sender(), r.Stamp.Reason}
}

// KeptOf sums up the quarantined readings of a block, in order.
func KeptOf(rs []reading.Reading) []Kept {
	var sums []Kept
	var at map[KeptKey]int
	for i := range rs {
		r := &rs[i]
		if r.Stamp.Disposition != reading.Quarantine {
			continue
		}
		if at == nil {
			at = map[KeptKey]int{}
		}
		key, ms := KeptKeyOf(r), reading.FloorMS(r.IngestNS)
		n, known := at[key]
		if !known {
			n = len(sums)
			at[key] = n
			sums = append(sums, Kept{KeptKey: key, OldestMS: ms, LastMS: ms})
		}
		k := &sums[n]
		k.Count++
		k.OldestMS, k.LastMS = min(k.OldestMS, ms), max(k.LastMS, ms)
	}
	slices.SortFunc(sums, func(a, b Kept) int { return a.compare(b.KeptKey) })
	return sums
}

func (k KeptKey) compare(o KeptKey) int {
	return cmp.Or(cmp.Compare(k.Input, o.Input), cmp.Compare(k.Sender, o.Sender), cmp.Compare(k.Reason, o.Reason))
}

// What an index says of what its block keeps out is, after the uv length of it,
//
//	uv groups, each: reason u8, uv count, zz oldest ms, uv last − oldest,
//	                 uv length and input, uv length and sender
//
// No groups at all stand for too many to list: the block has to be read.
const keptMost = 600 // bytes; the store takes 1024 with a filter in them

// appendKept appends what sums come to, without its length.
func appendKept(b []byte, sums []Kept) []byte {
	start := len(b)
	b = binary.AppendUvarint(b, uint64(len(sums)))
	for i := range sums {
		k := &sums[i]
		b = append(b, byte(k.Reason))
		b = binary.AppendUvarint(b, k.Count)
		b = binary.AppendVarint(b, k.OldestMS)
		b = binary.AppendUvarint(b, uint64(k.LastMS-k.OldestMS))
		for _, s := range [...]string{k.Input, k.Sender} {
			b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
		}
		if len(b)-start > keptMost {
			return append(b[:start], 0)
		}
	}
	return b
}

var errKept = errors.New("the summary of what a journal block keeps out is cut short or of another form")

// KeptIn returns what the block with that index keeps out. With inside there is too
// much for the index, and KeptOf the block's readings tells.
func KeptIn(index []byte) (sums []Kept, inside bool, err error) {
	section, _, err := keptSection(index)
	if err != nil || section == nil {
		return nil, false, err
	}
	c := keptCursor{b: section}
	n := c.uvarint()
	for ; n > 0 && c.err == nil; n-- {
		k := Kept{KeptKey: KeptKey{Reason: reading.Reason(c.byte())}, Count: c.uvarint(), OldestMS: c.varint()}
		k.LastMS = k.OldestMS + int64(c.uvarint())
		k.Input, k.Sender = c.text(), c.text()
		sums = append(sums, k)
	}
	return sums, len(sums) == 0, c.err
}

// keptSection takes an index apart: what it says of what is kept out, nil if
// nothing is, and the filter.
func keptSection(index []byte) (section, filter []byte, err error) {
	switch {
	case len(index) == 0: // of a block that has none
		return nil, nil, nil
	case len(index) < 2 || index[0] != indexVersion:
		return nil, nil, errKept
	case index[1]&indexKept == 0:
		return nil, index[2:], nil
	}
	n, size := binary.Uvarint(index[2:])
	if rest := index[2:]; size > 0 && n > 0 && n <= uint64(len(rest)-size) {
		return rest[size : size+int(n)], rest[size+int(n):], nil
	}
	return nil, nil, errKept
}

// keptCursor reads an index; after an error everything is zero.
type keptCursor struct {
	b   []byte
	err error
}

func (c *keptCursor) skip(n int) {
	if n <= 0 || n > len(c.b) {
		c.b, c.err = nil, errKept
		return
	}
	c.b = c.b[n:]
}

func (c *keptCursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	c.skip(n)
	return v
}

func (c *keptCursor) varint() int64 {
	v, n := binary.Varint(c.b)
	c.skip(n)
	return v
}

func (c *keptCursor) byte() (v byte) {
	if len(c.b) > 0 {
		v = c.b[0]
	}
	c.skip(1)
	return v
}

func (c *keptCursor) text() string {
	n := c.uvarint()
	if n > uint64(len(c.b)) {
		c.err = errKept
		return ""
	}
	s := string(c.b[:n])
	c.b = c.b[n:]
	return s
}
