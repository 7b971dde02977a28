package buffer

import (
	"context"
	"fmt"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// Record is something that goes upstream.
type Record struct {
	Kind byte // the caller's
	// Since is the block whose commit brought the first record of the chain that
	// this one belongs to, such as the revisions of one window: a chain is delivered
	// in the order of its making. 0 is a record that belongs to none; one whose
	// chain is not known says 1, and keeps its place behind everything that waits.
	Since uint64
	Data  []byte
}

// StoredRecord is a Record with its number in the outbox, from 1 without gaps in
// the order of Commit.Records, and the wall time of its commit (Commit.AtMS, or
// the last one known).
type StoredRecord struct {
	Seq   uint64
	Since uint64
	Kind  byte
	AtMS  int64
	Data  []byte
}

// Outbox is one uplink's view of the records that go upstream: read positions,
// which are only in memory, and the marks of what was delivered, which every
// commit persists. A record is removed once every uplink has delivered it.
//
// After a restart the read positions are at the first record that was not known
// to be delivered: some may be sent again, none is left out.
type Outbox struct {
	s    *Store
	name string
	raw  *rawCursor // nil if the uplink takes no readings

	// Of the reading goroutine.
	next    [2]uint64 // read positions, by lane
	after   uint64    // the last record that waited at Begin
	ordered bool      // what came after it waits until all that waited was read

	mu     sync.Mutex
	mark   uint64   // everything up to here is delivered
	ahead  []Ahead  // of what is behind the mark
	apart  bool     // the lanes are: what the live one delivers went ahead
	block  uint64   // the last block at Begin
	merged uint64   // both lanes have been read up to here, and are one from here on; 0 if they are not
	left   []uint64 // records that Live left for Backlog, behind the last run
	later  []uint64 // records that Backlog gave and that may lie in a run or behind it, not delivered
}

// Outbox returns the uplink's view. It is the same one each time. The uplink
// must be one of Options.Uplinks.
func (s *Store) Outbox(uplink string) *Outbox {
	o := s.outboxes[uplink]
	if o == nil {
		panic(fmt.Sprintf("buffer: uplink %q is not in Options.Uplinks", uplink))
	}
	return o
}

// Next appends the lane's next records to dst, at most maxRecords and, but for
// the first, no more than maxBytes of data, and moves the read position behind
// them. It appends nothing if there is none. upTo is the position reached: with
// these records the lane is delivered up to there. What it appends is the
// caller's to keep, and to be sent before Next is called for the same lane again. A
// damaged record is a *DamageError.
func (o *Outbox) Next(lane Lane, dst []StoredRecord, maxRecords, maxBytes int) (recs []StoredRecord, upTo uint64, err error) {
	o.next[lane] = max(o.next[lane], o.delivered()+1)
	start := len(dst)
	for maxRecords > 0 && len(dst) == start {
		to := o.end(lane)
		if o.next[lane] >= to {
			if lane == Backlog {
				o.merge()
			}
			break
		}
		if dst, err = o.scan(lane, dst, to, maxRecords, maxBytes); err != nil {
			return dst[:start], 0, err
		}
	}
	return dst, o.next[lane] - 1, o.s.usable()
}

// scanRecords bounds what one read transaction looks at.
const scanRecords = 1024

// scan appends the lane's records before to, as many as one transaction gives.
func (o *Outbox) scan(lane Lane, dst []StoredRecord, to uint64, maxRecords, maxBytes int) ([]StoredRecord, error) {
	takes := o.filter(lane)
	size, start := 0, len(dst)
	var left []uint64
	err := o.s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return o.s.damage("state", err)
		}
		from := max(o.next[lane], st.Outbox.First)
		o.next[lane] = from
		return o.s.eachOutbox(tx, from, min(to, st.Outbox.Next, from+scanRecords), func(r StoredRecord) bool {
			if takes(&r) {
				size += len(r.Data)
				if len(dst) > start && size > maxBytes {
					return false
				}
				dst = append(dst, r)
			} else if lane == Live {
				left = append(left, r.Seq)
			}
			o.next[lane] = r.Seq + 1
			return len(dst)-start < maxRecords
		})
	})
	if err == nil {
		o.leave(left, lane, dst[start:])
	}
	return dst, err
}

// Wait returns nil as soon as there may be something for Next(Live) or NextBlock,
// and otherwise the error of ctx or of a store that can no longer be read.
func (o *Outbox) Wait(ctx context.Context) error {
	next := max(o.next[Live], o.delivered()+1)
	held := o.held()
	for {
		more := o.s.changed()
		if err := o.s.usable(); err != nil {
			return err
		}
		if !held && next < o.s.outboxNext() || o.raw.waits(o.s.snapshot()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-more:
		}
	}
}

// Waiting is what an uplink still has before it.
type Waiting struct {
	Records   int64  // not delivered
	OldestSeq uint64 // the first of them; of no meaning if there is none
	OldestMS  int64  // wall time of its commit, 0 if there is none or it is not known
}

// Waiting tells what is not delivered yet.
func (o *Outbox) Waiting() (Waiting, error) {
	var b Waiting
	err := o.s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return o.s.damage("state", err)
		}
		first := max(o.delivered()+1, st.Outbox.First)
		b = Waiting{Records: o.waiting(st), OldestSeq: first}
		return o.s.eachOutbox(tx, first, st.Outbox.Next, func(r StoredRecord) bool {
			b.OldestMS = r.AtMS
			return false
		})
	})
	return b, err
}

func (o *Outbox) waiting(st *state) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := max(o.mark+1, st.Outbox.First)
	n := int64(st.Outbox.Next - min(first, st.Outbox.Next))
	for _, a := range o.ahead {
		n -= int64(a.To - min(max(a.After, first-1), a.To) - a.Left)
	}
	return n
}

func (o *Outbox) delivered() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mark
}

// raise moves the mark past records that were dropped.
func (o *Outbox) raise(seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mark = max(o.mark, seq)
	o.settle()
}
