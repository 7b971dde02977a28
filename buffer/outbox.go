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
	Data []byte
}

// StoredRecord is a Record with its number in the outbox, from 1 without gaps in
// the order of Commit.Records, and the wall time of its commit (Commit.AtMS, or
// the last one known).
type StoredRecord struct {
	Seq  uint64
	Kind byte
	AtMS int64
	Data []byte
}

// Outbox is one uplink's view of the records that go upstream: a read position,
// which is only in memory, and the mark of what was delivered, which every
// commit persists. A record is removed once every uplink has delivered it.
//
// After a restart the read position is at the first record that was not known to
// be delivered: some may be sent again, none is left out.
type Outbox struct {
	s    *Store
	name string

	next uint64 // the read position; of the reading goroutine

	mu        sync.Mutex
	delivered uint64 // everything up to here is
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

// Next appends the records after the read position to dst, at most maxRecords
// and, but for the first, no more than maxBytes of data, and moves the read
// position behind them. It appends nothing if there is none. What it appends is
// the caller's to keep. A damaged record is a *DamageError.
func (o *Outbox) Next(dst []StoredRecord, maxRecords, maxBytes int) ([]StoredRecord, error) {
	o.next = max(o.next, o.mark()+1)
	if maxRecords <= 0 || o.next >= o.s.outboxNext() {
		return dst, o.s.usable()
	}
	size := 0
	start := len(dst)
	err := o.s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return o.s.damage("state", err)
		}
		o.next = max(o.next, st.Outbox.First)
		return o.s.eachRecord(tx, bucketOutbox, tagOutbox, "outbox", o.next, st.Outbox.Next, func(r StoredRecord) bool {
			size += len(r.Data)
			if len(dst) > start && size > maxBytes {
				return false
			}
			dst = append(dst, r)
			return len(dst)-start < maxRecords
		})
	})
	if err != nil {
		return dst[:start], err
	}
	if len(dst) > start {
		o.next = dst[len(dst)-1].Seq + 1
	}
	return dst, nil
}

// Rewind moves the read position back to the first record that is not
// delivered, as after a connection was lost.
func (o *Outbox) Rewind() { o.next = o.mark() + 1 }

// Wait returns nil as soon as there is a record after the read position, and
// otherwise the error of ctx or of a store that can no longer be read.
func (o *Outbox) Wait(ctx context.Context) error {
	next := max(o.next, o.mark()+1)
	for {
		more := o.s.changed()
		if err := o.s.usable(); err != nil {
			return err
		}
		if next < o.s.outboxNext() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-more:
		}
	}
}

// Delivered says that every record up to and including seq has arrived. The mark
// never goes back, and is on disk with the next Commit or FlushCursors.
func (o *Outbox) Delivered(seq uint64) {
	seq = min(seq, o.s.outboxNext()-1)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.delivered = max(o.delivered, seq)
}

// Backlog is what an uplink still has before it.
type Backlog struct {
	Records   int64  // not delivered
	OldestSeq uint64 // the first of them; of no meaning if there is none
	OldestMS  int64  // wall time of its commit, 0 if there is none or it is not known
}

// Backlog tells what is not delivered yet.
func (o *Outbox) Backlog() (Backlog, error) {
	var b Backlog
	err := o.s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return o.s.damage("state", err)
		}
		first := max(o.mark()+1, st.Outbox.First)
		b = Backlog{Records: int64(st.Outbox.Next - min(first, st.Outbox.Next)), OldestSeq: first}
		return o.s.eachRecord(tx, bucketOutbox, tagOutbox, "outbox", first, st.Outbox.Next, func(r StoredRecord) bool {
			b.OldestMS = r.AtMS
			return false
		})
	})
	return b, err
}

func (o *Outbox) mark() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.delivered
}

// raise moves the mark past records that were dropped.
func (o *Outbox) raise(seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.delivered = max(o.delivered, seq)
}

func (w *writing) putRecord(r *Record) error {
	w.block = appendRecord(w.block[:0], r.Kind, w.st.LastMS, r.Data)
	n, err := w.put(bucketOutbox, tagOutbox, seqPrefix(w.st.Outbox.Next), w.block)
	w.st.Outbox.Next++
	w.st.Outbox.Bytes += n
	return err
}

// Delivered records are removed in batches: each removal rewrites a leaf and the
// branches above it, however little goes.
const (
	deleteAtLeast = 512
	deleteAtMost  = 8192
)

// noteCursors takes over what the uplinks have delivered.
func (w *writing) noteCursors() {
	for name, o := range w.s.outboxes {
		w.st.Cursors[name] = max(w.st.Cursors[name], o.mark())
	}
}

// removeDelivered removes what every uplink has delivered, if that is worth it
// or all of it is wanted. With no uplink nothing is kept.
func (w *writing) removeDelivered(all bool) error {
	to := w.st.Outbox.Next
	for _, seq := range w.st.Cursors {
		to = min(to, seq+1)
	}
	if to <= w.st.Outbox.First || to-w.st.Outbox.First < deleteAtLeast && !all {
		return nil
	}
	to = min(to, w.st.Outbox.First+deleteAtMost)
	return w.dropRecords(bucketOutbox, &w.st.Outbox, to)
}
