package windowing

import (
	"bytes"
	"cmp"
	"slices"

	"tidemark/reading"
)

// sequence keeps a key's readings in the order of (time, id, value), for the
// functions that cannot do without: 14 bytes each, and two more columns only
// where readings differ in kind or carry ids that the order needs. All windows of
// the key read from the one sequence; before the oldest open one it keeps the
// reading that is carried in.
type sequence struct {
	kept keptList
	meta []meta // nil while all are like
	like meta
	// ends[i] is where the id of reading i ends in ids; nil while there is none.
	ends []uint32
	ids  []byte
}

// meta is what is kept of a reading besides its time and value.
type meta uint8

const (
	metaKind  meta = 7      // reading.Kind
	metaBreak meta = 1 << 3 // the value ends a hold and is in no statistic
	metaCarry meta = 1 << 4 // sets a carry-in and belongs to no window (H3, H4)
	metaEnd   meta = 1 << 5 // no reading: what was held ends here, in whichever window
	metaTop        = metaKind | metaBreak | metaCarry | metaEnd
)

func (m meta) kind() reading.Kind { return reading.Kind(m & metaKind) }

func (q *sequence) len() int { return q.kept.len() }

func (q *sequence) metaAt(i int) meta {
	if q.meta == nil {
		return q.like
	}
	return q.meta[i]
}

func (q *sequence) id(i int) []byte {
	if q.ends == nil {
		return nil
	}
	from := uint32(0)
	if i > 0 {
		from = q.ends[i-1]
	}
	return q.ids[from:q.ends[i]]
}

// compare orders what is to be kept against reading i.
func (q *sequence) compare(i int, ns int64, num uint64, m meta, id string) int {
	if c := cmp.Compare(ns, q.kept.ns(i)); c != 0 {
		return c
	}
	if q.ends != nil || id != "" {
		if c := bytes.Compare([]byte(id), q.id(i)); c != 0 {
			return c
		}
	}
	if c := compareValues(m.kind(), num, q.metaAt(i).kind(), q.kept.num(i)); c != 0 {
		return c
	}
	return cmp.Compare(m, q.metaAt(i))
}

// insert keeps a reading and returns its place.
func (q *sequence) insert(ns int64, num uint64, m meta, id string) int {
	at := q.len()
	for at > 0 && q.compare(at-1, ns, num, m, id) < 0 {
		at--
	}
	q.setMeta(at, m)
	if id != "" && q.ends == nil {
		q.ends = make([]uint32, q.len())
	}
	if q.ends != nil {
		q.insertID(at, id)
	}
	q.kept.insert(at, ns, num)
	return at
}

func (q *sequence) setMeta(at int, m meta) {
	switch {
	case q.meta == nil && q.len() == 0:
		q.like = m
		return
	case q.meta == nil && q.like == m:
		return
	case q.meta == nil:
		q.meta = slices.Repeat([]meta{q.like}, q.len())
	}
	q.meta = insert(q.meta, at, m)
}

func (q *sequence) insertID(at int, id string) {
	from := uint32(0)
	if at > 0 {
		from = q.ends[at-1]
	}
	q.ids = slices.Insert(q.ids, int(from), []byte(id)...)
	q.ends = insert(q.ends, at, from)
	for i := at; i < len(q.ends); i++ {
		q.ends[i] += uint32(len(id))
	}
}

// dropFront forgets the first n readings.
func (q *sequence) dropFront(n int) {
	if n <= 0 {
		return
	}
	if q.ends != nil {
		gone := q.ends[n-1]
		q.ids = slices.Delete(q.ids, 0, int(gone))
		q.ends = slices.Delete(q.ends, 0, n)
		for i := range q.ends {
			q.ends[i] -= gone
		}
	}
	if q.meta != nil {
		q.meta = slices.Delete(q.meta, 0, n)
	}
	q.kept.dropFront(n)
	if q.len() == 0 {
		*q = sequence{kept: q.kept}
	}
}

// from returns the place of the first reading at or after ns.
func (q *sequence) from(ns int64) int { return q.kept.from(ns) }
