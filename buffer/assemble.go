package buffer

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
)

// This file makes a store of the chunks that a salvager has gathered: it finds what
// is whole, counts what is missing, and writes a state that agrees with both.

// recall reads the state that was gathered. Without one there is no telling which
// checkpoint and which named values are the newest, and they are dropped.
func (s *salvager) recall() error {
	data, err := getBlob(s.tx.Bucket(bucketState), tagState, stateKey)
	if err == nil && data != nil {
		s.st, _ = decodeState(data)
	}
	if s.found.State = s.st != nil; s.found.State {
		return nil
	}
	s.st = newState(0)
	for _, name := range [][]byte{bucketState, bucketCheckpoint} {
		if err := s.clear(name); err != nil {
			return err
		}
	}
	return nil
}

func (s *salvager) clear(bucket []byte) error {
	if err := s.tx.DeleteBucket(bucket); err != nil {
		return err
	}
	_, err := s.tx.CreateBucket(bucket)
	return err
}

// assemble makes a store of what was gathered.
func (s *salvager) assemble() error {
	if err := s.recall(); err != nil {
		return err
	}
	if s.waiting {
		s.leaveJournal()
	} else if err := s.journal(); err != nil {
		return err
	}
	marks := s.st.Cursors
	s.st.Ahead = nil // by the old numbers; without it some records are sent again
	records, err := s.renumber(bucketOutbox, tagOutbox, &s.st.Outbox, marks)
	if err != nil {
		return err
	}
	evidence, err := s.renumber(bucketEvidence, tagEvidence, &s.st.Evidence, nil)
	if err != nil {
		return err
	}
	s.found.LostRecords, s.found.Records, s.found.Evidence = records, s.st.Outbox.Len(), s.st.Evidence.Len()
	s.noteLosses(records, evidence)
	if err := s.values(); err != nil {
		return err
	}
	s.found.Complete = s.recovers()
	s.st.Commits++
	return writeState(s.tx, &arena{}, s.st)
}

// noteLosses makes the next gateway report what is missing. Of records it is not
// known to whom they were delivered already: each uplink is told.
func (s *salvager) noteLosses(records, evidence uint64) {
	for _, g := range s.st.Gaps {
		s.st.lose(Loss{Kind: LossRaw, First: g.First, Next: g.Next, MinMS: none, MaxMS: none, Damaged: int64(g.Next - g.First)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.st.Cursors)) {
		if records > 0 {
			s.st.lose(Loss{Kind: LossOutbox, Uplink: name, First: 1, Next: 1 + records, Records: int64(records)})
		}
	}
	if evidence > 0 {
		s.st.lose(Loss{Kind: LossEvidence, First: 1, Next: 1 + evidence})
	}
}

// leaveJournal begins a new journal and counts what stays in the old file as lost.
func (s *salvager) leaveJournal() {
	if left := s.st.Journal; left.Len() > 0 {
		s.found.LeftBlocks, s.found.LeftReadings = left.Len(), s.st.Readings
		s.st.lose(Loss{Kind: LossRaw, First: left.First, Next: left.Next, Readings: s.st.Readings, MinMS: none, MaxMS: none, Damaged: int64(left.Len())})
	}
	fresh := newState(s.st.CreatedMS)
	s.st.Journal, s.st.Readings, s.st.KeepFrom, s.st.Raw, s.st.Gaps = fresh.Journal, 0, 0, nil, nil
	s.st.Checkpoints = fresh.Checkpoints
}

// journal drops blocks that are not whole, or that had been dropped before, and
// notes the gaps.
func (s *salvager) journal() error {
	held := s.st.Journal
	if !s.found.State {
		held.Next = 1<<64 - 1
	}
	got := Range{First: held.First, Next: held.First}
	gaps := []Gap{}
	var readings int64
	err := s.each(bucketJournal, tagJournal, func(seq uint64, content []byte, bytes int64) (keep bool) {
		b, err := decodeBlock(seq, content)
		if err != nil || seq < held.First || seq >= held.Next {
			return false
		}
		if seq > got.Next {
			gaps = append(gaps, Gap{First: got.Next, Next: seq})
		}
		got.Next, got.Bytes, readings = seq+1, got.Bytes+bytes, readings+int64(b.Readings)
		s.found.Blocks++
		return true
	})
	if s.found.State && got.Next < held.Next {
		gaps = append(gaps, Gap{First: got.Next, Next: held.Next})
		got.Next = held.Next
	}
	s.st.Journal, s.st.Readings, s.st.Gaps = got, readings, gaps
	s.found.Readings, s.found.Gaps = readings, gaps
	return err
}

// renumber gives what is whole and was held the numbers from 1 on, and returns
// how many of those held are missing. marks move along.
func (s *salvager) renumber(bucket []byte, t tag, r *Range, marks map[string]uint64) (lost uint64, err error) {
	held := *r
	if !s.found.State {
		held.Next = 1<<64 - 1
	}
	moved := map[string]uint64{}
	*r = Range{First: 1, Next: 1}
	a := &arena{}
	err = s.each(bucket, t, func(seq uint64, content []byte, _ int64) (keep bool) {
		if _, _, _, bad := decodeRecord(content); bad != nil || seq < held.First || seq >= held.Next || err != nil {
			return false
		}
		for name, mark := range marks {
			if seq <= mark {
				moved[name] = r.Next
			}
		}
		var n int64
		// Numbers only fall, so nothing that is still to be read is overwritten. The
		// values must outlive the transaction that each may end.
		a.buf = nil
		n, err = a.put(s.tx.Bucket(bucket), t, seqPrefix(r.Next), content)
		same := seq == r.Next
		r.Next, r.Bytes = r.Next+1, r.Bytes+n
		return same
	})
	for name := range marks {
		marks[name] = moved[name]
	}
	if s.found.State {
		lost = held.Len() - r.Len()
	}
	return lost, err
}

// each calls fn with every whole blob of a numbered bucket, in order, and deletes
// what is not whole or not to be kept.
func (s *salvager) each(bucket []byte, t tag, fn func(seq uint64, content []byte, bytes int64) (keep bool)) error {
	for at := []byte{}; ; {
		b := s.tx.Bucket(bucket)
		c := b.Cursor()
		k, v := c.Seek(at)
		if k == nil {
			return nil
		}
		if len(k) != numberedKeyLen {
			at = append(bytes.Clone(k), 0)
			continue
		}
		prefix := bytes.Clone(k[:8])
		seq := binary.BigEndian.Uint64(prefix)
		var content []byte
		err := errMissing
		if binary.BigEndian.Uint16(k[8:]) == 0 {
			content, err = readBlob(c, t, k, v)
		}
		n := int64(len(content) + chunkCount(len(content))*(len(k)+crcLen+elementLen))
		if err != nil || !fn(seq, content, n) {
			if _, err := deleteBlob(s.tx.Bucket(bucket), prefix); err != nil {
				return err
			}
		}
		if err := s.added(len(content)); err != nil {
			return err
		}
		s.assembled += int64(len(content))
		if err := s.progress.at(StepAssembling, min(s.assembled, s.gathered), s.gathered); err != nil {
			return err
		}
		if seq == 1<<64-1 {
			return nil
		}
		at = seqPrefix(seq + 1)
	}
}

// values counts the named values and drops those that are not whole.
func (s *salvager) values() error {
	b := s.tx.Bucket(bucketState)
	c := b.Cursor()
	var bad [][]byte
	for k, v := c.Seek(metaPrefix); bytes.HasPrefix(k, metaPrefix); k, v = c.Next() {
		prefix := bytes.Clone(k[:len(k)-2])
		if _, err := readBlob(c, tagState, k, v); err != nil {
			bad = append(bad, prefix)
			c.Seek(k)
			continue
		}
		s.found.Values++
	}
	for _, prefix := range bad {
		if _, err := deleteBlob(b, prefix); err != nil {
			return err
		}
	}
	return nil
}

// recovers reports whether Recover would succeed.
func (s *salvager) recovers() bool {
	_, _, err := s.st.start(s.tx)
	return s.found.State && err == nil
}
