package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Checkpoints stand in two slots that take turns, so that the one before is
// whole while the next is written, and stands in where the newer turns out
// damaged. A snapshot is megabytes, so it is stored in parts, each a blob under the
// slot's number and its own (u8 ‖ u16), whose content is
//
//	version u8 ‖ generation u64 ‖ seq u64 ‖ part of the snapshot
//
// All but the last part are written in transactions of their own: memory and
// database pages are needed for one of them at a time. The checkpoint is one when
// the state names it, in the transaction of the last part.
const (
	checkpointVersion = 2
	checkpointHeadLen = 1 + 8 + 8
	// partLen is from what size on a part is written.
	partLen = 512 << 10
)

// Snapshot hands out a snapshot part by part, of any length, and returns the error
// of put. A part is the snapshot's again when put returns.
type Snapshot func(put func(part []byte) error) error

// checkpointRef is what the state knows about a slot. The zero ref is an empty
// one. One of generation 0 with a Seq is in the making: what it was is gone.
type checkpointRef struct {
	Generation uint64 `json:"generation"` // counts checkpoints from 1
	Seq        uint64 `json:"seq"`        // the block after which it holds
	Bytes      int64  `json:"bytes"`
	Parts      int    `json:"parts"`
}

var errCheckpoint = errors.New("checkpoint is not the one that the state names")

// appendCheckpointHead appends what stands before the snapshot.
func appendCheckpointHead(dst []byte, ref checkpointRef) []byte {
	dst = append(dst, checkpointVersion)
	dst = binary.BigEndian.AppendUint64(dst, ref.Generation)
	return binary.BigEndian.AppendUint64(dst, ref.Seq)
}

// decodeCheckpoint reads the content of a slot; the snapshot aliases it.
func decodeCheckpoint(content []byte) (ref checkpointRef, snapshot []byte, err error) {
	if len(content) < checkpointHeadLen || content[0] != checkpointVersion {
		return ref, nil, errCheckpoint
	}
	ref.Generation = binary.BigEndian.Uint64(content[1:])
	ref.Seq = binary.BigEndian.Uint64(content[9:])
	return ref, content[checkpointHeadLen:], nil
}

// partPrefix is the key prefix of a part of a slot.
func partPrefix(slot, part int) []byte {
	return binary.BigEndian.AppendUint16([]byte{byte(slot)}, uint16(part))
}

// newest returns the slots, the newer first.
func (s *state) newest() [2]int {
	if s.Checkpoints[1].Generation > s.Checkpoints[0].Generation {
		return [2]int{1, 0}
	}
	return [2]int{0, 1}
}

// safeSeq is the last block that recovery can do without: what the older
// checkpoint covers, 0 while there are not two.
func (s *state) safeSeq() uint64 { return s.Checkpoints[s.newest()[1]].Seq }

// laying is a checkpoint that is being written.
type laying struct {
	s     *Store
	slot  int
	ref   checkpointRef
	old   int    // parts that the slot held
	bytes int    // of the snapshot
	part  []byte // what is gathered; the last part is left here for the commit
}

// lay writes all of the snapshot but its last part, over the older checkpoint.
// seq is the block after which it will hold.
func (s *Store) lay(snapshot Snapshot, seq uint64) (*laying, error) {
	order := s.st.newest()
	l := &laying{s: s, slot: order[1], old: s.st.Checkpoints[order[1]].Parts, part: s.part[:0]}
	l.ref = checkpointRef{Generation: s.st.Checkpoints[order[0]].Generation + 1, Seq: seq}
	l.begin()
	err := snapshot(l.put)
	if err == nil && l.old > l.ref.Parts+1 {
		err = l.trim()
	}
	s.part = l.part[:0]
	return l, err
}

func (l *laying) begin() { l.part = appendCheckpointHead(l.part[:0], l.ref) }

// put gathers a part of the snapshot and writes what has become long enough.
func (l *laying) put(part []byte) error {
	for len(part) > 0 {
		if len(l.part) >= partLen {
			if err := l.flush(); err != nil {
				return err
			}
		}
		n := min(len(part), partLen-len(l.part))
		l.part, part = append(l.part, part[:n]...), part[n:]
		l.bytes += n
	}
	return nil
}

// flush writes a part that is not the last.
func (l *laying) flush() error {
	if err := l.s.makeRoom(&Commit{Checkpoint: func(func([]byte) error) error { return nil }}); err != nil {
		return err
	}
	if err := l.s.transact(nil, l.write); err != nil {
		return err
	}
	l.begin()
	return nil
}

// trim removes what the slot held beyond the parts that the new checkpoint will
// have: each part in a transaction of its own, for the same reason.
func (l *laying) trim() error {
	for ; l.old > l.ref.Parts+1; l.old-- {
		err := l.s.transact(nil, func(w *writing) error {
			l.spoil(w)
			_, err := deleteBlob(w.tx.Bucket(bucketCheckpoint), partPrefix(l.slot, l.old-1))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// spoil takes the slot's old checkpoint out of the state. Its Seq stays: what it
// let go may be gone.
func (l *laying) spoil(w *writing) {
	if ref := &w.st.Checkpoints[l.slot]; ref.Generation != 0 {
		*ref = checkpointRef{Seq: ref.Seq, Parts: ref.Parts}
	}
}

// write writes what is gathered as the next part.
func (l *laying) write(w *writing) error {
	l.spoil(w)
	prefix := partPrefix(l.slot, l.ref.Parts)
	if _, err := deleteBlob(w.tx.Bucket(bucketCheckpoint), prefix); err != nil {
		return err
	}
	n, err := w.put(bucketCheckpoint, tagCheckpoint, prefix, l.part)
	l.ref.Parts++
	l.ref.Bytes += n
	w.st.Checkpoints[l.slot].Parts = max(l.ref.Parts, l.old)
	return err
}

// finish writes the last part and makes the checkpoint one.
func (l *laying) finish(w *writing) error {
	if err := l.write(w); err != nil {
		return err
	}
	w.st.Checkpoints[l.slot] = l.ref
	return nil
}

// Recover returns the newest whole checkpoint and the block after which it
// holds, and the journal's last block; the blocks in between are to be stepped
// again. Without a checkpoint it returns nil and 0. Blocks on the way may be gaps
// (Held) or turn out damaged; LoseBlock passes over those. If there is nothing to
// begin with (both checkpoints are damaged, and the journal does not go back to its
// first block) the error is a *DamageError.
func (s *Store) Recover() (checkpoint []byte, checkpointSeq, lastSeq uint64, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return s.damage("state", err)
		}
		lastSeq = st.Journal.Next - 1
		checkpoint, checkpointSeq, err = st.start(tx)
		if err != nil {
			return s.damage(fmt.Sprintf("no checkpoint leads to block %d", lastSeq), err)
		}
		return nil
	})
	if err != nil {
		return nil, 0, 0, err
	}
	return checkpoint, checkpointSeq, lastSeq, nil
}

// start returns what recovery begins with.
func (s *state) start(tx *bolt.Tx) (snapshot []byte, seq uint64, err error) {
	var faults []error
	for _, slot := range s.newest() {
		ref := s.Checkpoints[slot]
		snapshot, err := readSlot(tx, slot, ref)
		if err == nil && s.Journal.First > ref.Seq+1 {
			err = fmt.Errorf("checkpoint %d holds after block %d, and the journal begins with block %d", ref.Generation, ref.Seq, s.Journal.First)
		}
		if err == nil {
			return snapshot, ref.Seq, nil
		}
		faults = append(faults, err)
	}
	if s.Journal.First > 1 {
		return nil, 0, errors.Join(faults...)
	}
	return nil, 0, nil
}

// reaches reports whether every block after seq is held.
func (s *state) reaches(seq uint64) bool {
	for _, g := range s.Gaps {
		if g.Next > seq+1 {
			return false
		}
	}
	return s.Journal.First <= seq+1
}

// readSlot copies out a slot's snapshot; an error for an empty slot.
func readSlot(tx *bolt.Tx, slot int, want checkpointRef) ([]byte, error) {
	if want.Generation == 0 {
		return nil, errors.New("there is no checkpoint in the slot")
	}
	snapshot := make([]byte, 0, min(want.Bytes, 1<<30))
	for i := range want.Parts {
		content, err := getBlob(tx.Bucket(bucketCheckpoint), tagCheckpoint, partPrefix(slot, i))
		var ref checkpointRef
		var part []byte
		if err == nil {
			ref, part, err = decodeCheckpoint(content)
		}
		if err == nil && (ref.Generation != want.Generation || ref.Seq != want.Seq) {
			err = errCheckpoint
		}
		if err != nil {
			return nil, fmt.Errorf("checkpoint %d, part %d: %w", want.Generation, i, err)
		}
		snapshot = append(snapshot, part...)
	}
	return snapshot, nil
}
