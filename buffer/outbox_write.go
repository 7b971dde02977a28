package buffer

import (
	"encoding/binary"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// This file is the outbox as a transaction writes it.

// The content of an outbox record is that of a piece of evidence with the block in
// which its chain began before its data:
//
//	kind u8 ‖ at i64 ‖ since u64 ‖ data
const sinceLen = 8

func (w *writing) putRecord(r *Record) error {
	w.block = appendRecord(w.block[:0], r.Kind, w.st.LastMS, nil)
	w.block = binary.BigEndian.AppendUint64(w.block, r.Since)
	w.block = append(w.block, r.Data...)
	n, err := w.put(bucketOutbox, tagOutbox, seqPrefix(w.st.Outbox.Next), w.block)
	w.st.Outbox.Next++
	w.st.Outbox.Bytes += n
	return err
}

// decodeSince reads what putRecord put before the data.
func decodeSince(data []byte) (since uint64, rest []byte, err error) {
	if len(data) < sinceLen {
		return 0, nil, errRecordHead
	}
	return binary.BigEndian.Uint64(data), data[sinceLen:], nil
}

// eachOutbox is eachRecord for the outbox.
func (s *Store) eachOutbox(tx *bolt.Tx, from, to uint64, fn func(StoredRecord) bool) error {
	var short error
	err := s.eachRecord(tx, bucketOutbox, tagOutbox, "outbox", from, to, func(r StoredRecord) bool {
		if r.Since, r.Data, short = decodeSince(r.Data); short != nil {
			return false
		}
		return fn(r)
	})
	if short != nil {
		return s.damage("an outbox record", short)
	}
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
		o.mu.Lock()
		w.st.Cursors[name] = max(w.st.Cursors[name], o.mark)
		w.st.setAhead(name, o.ahead)
		o.mu.Unlock()
		o.raw.note(w.st, name)
	}
}

// setAhead notes which records behind the mark an uplink has.
func (s *state) setAhead(name string, ahead []Ahead) {
	if ahead = passed(ahead, s.Cursors[name]); len(ahead) == 0 {
		delete(s.Ahead, name)
		return
	}
	s.Ahead = maps.Clone(s.Ahead)
	if s.Ahead == nil {
		s.Ahead = map[string][]Ahead{}
	}
	s.Ahead[name] = slices.Clone(ahead)
}

// dirty reports whether the uplink has delivered what the file does not know of.
func (o *Outbox) dirty(st *state) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	seq, known := st.Cursors[o.name]
	return !known || o.mark > seq || !slices.Equal(o.ahead, st.Ahead[o.name]) || o.raw.dirty(st, o.name)
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

// dropOutbox drops the oldest records; it is a loss for each uplink that had not
// delivered them.
func (w *writing) dropOutbox(want int64) error {
	b := &w.st.Outbox
	to := upTo(*b, want)
	for _, name := range w.s.o.Uplinks {
		seq := w.st.Cursors[name]
		if seq+1 >= to {
			continue
		}
		first := max(seq+1, b.First)
		if n := to - first - w.wentAhead(name, first, to); n > 0 {
			w.st.lose(Loss{Kind: LossOutbox, Uplink: name, First: first, Next: to, Records: int64(n)})
		}
		w.st.Cursors[name] = to - 1
		w.st.setAhead(name, w.st.Ahead[name])
	}
	return w.dropRecords(bucketOutbox, b, to)
}

// wentAhead counts the records [from, to) that the uplink has already. What
// cannot be read counts as lost.
func (w *writing) wentAhead(name string, from, to uint64) (n uint64) {
	for _, a := range w.st.Ahead[name] {
		// A damaged record ends the count, which only says more was lost.
		_ = w.s.eachOutbox(w.tx, max(from, a.After+1), min(to, a.To+1), func(r StoredRecord) bool {
			if a.took(r.Seq, r.Since) {
				n++
			}
			return true
		})
	}
	return n
}
