package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Evidence is something that has to be looked up later: a late or a quarantined
// reading, a gap, a loss. It is kept for Options.RetainMS, and no more of it than
// Options.EvidenceMax.
type Evidence struct {
	Kind byte  // the caller's
	AtMS int64 // wall time, milliseconds; decides how long it is kept
	Data []byte
}

// StoredEvidence is Evidence with its number in the store, from 1.
type StoredEvidence struct {
	Seq uint64
	Evidence
}

// The content of a piece of evidence, and of an outbox record, is
//
//	kind u8 ‖ at i64 ‖ data
const recordHeadLen = 1 + 8

var errRecordHead = errors.New("head of the record is none")

func appendRecord(dst []byte, kind byte, atMS int64, data []byte) []byte {
	dst = append(dst, kind)
	dst = binary.BigEndian.AppendUint64(dst, uint64(atMS))
	return append(dst, data...)
}

// decodeRecord reads what appendRecord wrote; data aliases content.
func decodeRecord(content []byte) (kind byte, atMS int64, data []byte, err error) {
	if len(content) < recordHeadLen {
		return 0, 0, nil, errRecordHead
	}
	return content[0], int64(binary.BigEndian.Uint64(content[1:])), content[recordHeadLen:], nil
}

func (w *writing) putEvidence(e *Evidence) error {
	w.block = appendRecord(w.block[:0], e.Kind, e.AtMS, e.Data)
	n, err := w.put(bucketEvidence, tagEvidence, seqPrefix(w.st.Evidence.Next), w.block)
	w.st.Evidence.Next++
	w.st.Evidence.Bytes += n
	return err
}

// Evidence calls fn with every piece of evidence from number from on, in the
// order of writing, until fn returns an error, which Evidence returns. It reads
// as Blocks does.
func (s *Store) Evidence(from uint64, fn func(e StoredEvidence) error) error {
	for {
		part, err := s.readEvidence(from)
		if err != nil || len(part) == 0 {
			return err
		}
		for i := range part {
			if err := fn(part[i]); err != nil {
				return err
			}
		}
		from = part[len(part)-1].Seq + 1
	}
}

func (s *Store) readEvidence(from uint64) (part []StoredEvidence, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return s.damage("state", err)
		}
		size := 0
		return s.eachRecord(tx, bucketEvidence, tagEvidence, "evidence", max(from, st.Evidence.First), st.Evidence.Next,
			func(r StoredRecord) bool {
				part = append(part, StoredEvidence{Seq: r.Seq, Evidence: Evidence{Kind: r.Kind, AtMS: r.AtMS, Data: r.Data}})
				size += len(r.Data)
				return len(part) < readBlocks && size < readBytes
			})
	})
	return part, err
}

// eachRecord copies out the records [from, to) of a bucket until fn returns
// false. A record that is not there is damage.
func (s *Store) eachRecord(tx *bolt.Tx, bucket []byte, t tag, name string, from, to uint64, fn func(StoredRecord) bool) error {
	if from >= to {
		return nil
	}
	c := tx.Bucket(bucket).Cursor()
	k, v := c.Seek(chunkKey(seqPrefix(from), 0))
	for seq := from; seq < to; seq++ {
		if string(k) != string(chunkKey(seqPrefix(seq), 0)) {
			return s.damage(fmt.Sprintf("%s record %d", name, seq), errMissing)
		}
		content, err := readBlob(c, t, k, v)
		r := StoredRecord{Seq: seq}
		if err == nil {
			r.Kind, r.AtMS, r.Data, err = decodeRecord(content)
		}
		if err != nil {
			return s.damage(fmt.Sprintf("%s record %d", name, seq), err)
		}
		if !fn(r) {
			return nil
		}
		k, v = c.Next()
	}
	return nil
}

// dropRecords removes the records [r.First, to) of a bucket. It asks nothing of
// what is in them: a damaged one goes like the others.
func (w *writing) dropRecords(bucket []byte, r *Range, to uint64) error {
	b := w.tx.Bucket(bucket)
	for ; r.First < to; r.First++ {
		n, err := deleteBlob(b, seqPrefix(r.First))
		if err != nil {
			return err
		}
		r.Bytes = max(0, r.Bytes-n)
	}
	return nil
}
