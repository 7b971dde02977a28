package windowing

import (
	"encoding/binary"
	"slices"
	"sort"
)

// keptList is times, ascending, and values, mostly of fourteen bytes a pair: the
// upper two of a time are stored only where they differ, which they do from one
// stretch of three days to the next.
type keptList struct {
	rows []keptRow
	top  []uint16 // nil while all are like
	like uint16
}

// keptRow is the value and the lower six bytes of the time, little-endian.
type keptRow [14]byte

func (l *keptList) len() int { return len(l.rows) }

func (l *keptList) ns(i int) int64 {
	top := l.like
	if l.top != nil {
		top = l.top[i]
	}
	r := &l.rows[i]
	return int64(uint64(top)<<48 | uint64(binary.LittleEndian.Uint16(r[12:]))<<32 | uint64(binary.LittleEndian.Uint32(r[8:])))
}

func (l *keptList) num(i int) uint64 { return binary.LittleEndian.Uint64(l.rows[i][:]) }

func (l *keptList) setNum(i int, num uint64) { binary.LittleEndian.PutUint64(l.rows[i][:], num) }

// insert puts a pair in place i.
func (l *keptList) insert(i int, ns int64, num uint64) {
	top := uint16(uint64(ns) >> 48)
	if len(l.rows) == 0 {
		l.like = top
	}
	if l.top == nil && l.like != top {
		l.top = slices.Repeat([]uint16{l.like}, len(l.rows))
	}
	if l.top != nil {
		l.top = insert(l.top, i, top)
	}
	var r keptRow
	binary.LittleEndian.PutUint64(r[:], num)
	binary.LittleEndian.PutUint32(r[8:], uint32(uint64(ns)))
	binary.LittleEndian.PutUint16(r[12:], uint16(uint64(ns)>>32))
	l.rows = insert(l.rows, i, r)
}

// dropFront forgets the first n.
func (l *keptList) dropFront(n int) {
	if l.top != nil {
		l.top = slices.Delete(l.top, 0, n)
		if last := len(l.top) - 1; last < 0 {
			l.top = nil
		} else if l.top[0] == l.top[last] {
			l.like, l.top = l.top[0], nil
		}
	}
	l.rows = slices.Delete(l.rows, 0, n)
}

// from returns the place of the first time that is at least ns.
func (l *keptList) from(ns int64) int {
	return sort.Search(len(l.rows), func(i int) bool { return l.ns(i) >= ns })
}

// insert is slices.Insert for lists that are many and long: they grow by a
// sixteenth, and fill what the allocator gives. Most are added to at the end.
func insert[T any](list []T, i int, x T) []T {
	if n := len(list); n == cap(list) {
		list = append(slices.Grow([]T(nil), n+max(n/16, 16)), list...)
	}
	list = append(list, x)
	if last := len(list) - 1; i < last {
		copy(list[i+1:], list[i:last])
		list[i] = x
	}
	return list
}
