package reading

import (
	"encoding/binary"
	"fmt"
)

// cursor reads a block from the front. The first fault stands in err and moves
// the cursor to the end, so that what follows reads as zero and callers may
// check once per section.
type cursor struct {
	src  []byte
	at   int
	what string // the section being read, for errors
	err  error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s, byte %d of the body: %s", c.what, c.at, fmt.Sprintf(format, args...))
	}
	c.at = len(c.src)
}

func (c *cursor) left() int { return len(c.src) - c.at }

func (c *cursor) byte() byte {
	if c.at == len(c.src) {
		c.fail("ends early")
		return 0
	}
	c.at++
	return c.src[c.at-1]
}

func (c *cursor) uvarint() uint64 {
	if c.at < len(c.src) && c.src[c.at] < 0x80 {
		c.at++
		return uint64(c.src[c.at-1])
	}
	v, n := binary.Uvarint(c.src[c.at:])
	switch {
	case n == 0:
		c.fail("ends early")
	case n < 0:
		c.fail("a number of more than 64 bits")
	default:
		c.at += n
		return v
	}
	return 0
}

func (c *cursor) varint() int64 { return unzigzag(c.uvarint()) }

// bytes returns the next n bytes, in place.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(c.left()) {
		c.fail("%d bytes claimed, %d are left", n, c.left())
		return nil
	}
	c.at += int(n)
	return c.src[c.at-int(n) : c.at]
}

// count reads the length of a list whose entries take at least size bytes each.
func (c *cursor) count(size int) int {
	n := c.uvarint()
	if n > uint64(c.left()/size) {
		c.fail("%d entries claimed, %d bytes are left", n, c.left())
		return 0
	}
	return int(n)
}

// ref checks a reference into a table of n entries.
func (c *cursor) ref(v uint64, n int) int {
	if v >= uint64(n) {
		c.fail("reference to entry %d of %d", v, n)
		return 0
	}
	return int(v)
}

// small reads a number that fits into n bits.
func (c *cursor) small(bits int) uint64 {
	v := c.uvarint()
	if v>>bits != 0 {
		c.fail("%d does not fit into %d bits", v, bits)
		return 0
	}
	return v
}

// front reads a front-coded string after prev.
func (c *cursor) front(prev string) string {
	keep := c.uvarint()
	if keep > uint64(min(len(prev), maxShared)) {
		c.fail("shares %d bytes with a string of %d", keep, len(prev))
		return ""
	}
	tail := c.bytes(c.uvarint())
	if len(tail) == 0 && int(keep) == len(prev) {
		return prev
	}
	buf := make([]byte, 0, 64)
	return string(append(append(buf, prev[:keep]...), tail...))
}

// maxShared bounds what a front-coded string takes from the one before it, so
// that a small damaged block cannot unfold into a large one.
const maxShared = 255

// appendFront appends s as what it shares with prev and the rest.
func appendFront(b []byte, prev, s string) []byte {
	n := min(len(prev), len(s), maxShared)
	keep := 0
	for keep < n && prev[keep] == s[keep] {
		keep++
	}
	b = binary.AppendUvarint(b, uint64(keep))
	b = binary.AppendUvarint(b, uint64(len(s)-keep))
	return append(b, s[keep:]...)
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func appendZigzag(b []byte, v int64) []byte { return binary.AppendUvarint(b, zigzag(v)) }
