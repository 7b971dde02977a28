package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Checkpoints stand in two slots that take turns, so that the one before is
// whole while the next is written, and stands in where the newer turns out
// damaged. A slot's blob has the slot's number as its prefix; its content is
//
//	version u8 ‖ generation u64 ‖ seq u64 ‖ snapshot
const (
	checkpointVersion = 1
	checkpointHeadLen = 1 + 8 + 8
)

// checkpointRef is what the state knows about a slot. The zero ref is an empty
// one.
type checkpointRef struct {
	Generation uint64 `json:"generation"` // counts checkpoints from 1
	Seq        uint64 `json:"seq"`        // the block after which it holds
	Bytes      int64  `json:"bytes"`
}

// CheckpointRoom is the spare capacity that saves a copy of a Checkpoint of n bytes.
func CheckpointRoom(n int) int {
	return headLen + checkpointHeadLen + chunkCount(n+checkpointHeadLen)*crcLen
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

// slotPrefix is the key prefix of a slot.
func slotPrefix(slot int) []byte { return []byte{byte(slot)} }

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

// putCheckpoint replaces the older checkpoint.
func (w *writing) putCheckpoint(snapshot []byte) error {
	order := w.st.newest()
	slot := order[1]
	ref := checkpointRef{Generation: w.st.Checkpoints[order[0]].Generation + 1, Seq: w.st.Journal.Next - 1}
	if _, err := deleteBlob(w.tx.Bucket(bucketCheckpoint), slotPrefix(slot)); err != nil {
		return err
	}
	b := w.tx.Bucket(bucketCheckpoint)
	b.FillPercent = 1 // as in put
	n, err := putInPlace(b, tagCheckpoint, slotPrefix(slot), appendCheckpointHead(nil, ref), snapshot)
	ref.Bytes = n
	w.st.Checkpoints[slot] = ref
	return err
}

// Recover returns the newest whole checkpoint and the block after which it
// holds, and the journal's last block; the blocks in between are to be stepped
// again. Without a checkpoint it returns nil and 0. If what is left of the file
// does not lead to lastSeq (both checkpoints are damaged, or blocks that are
// needed are missing) the error is a *DamageError.
func (s *Store) Recover() (checkpoint []byte, checkpointSeq, lastSeq uint64, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return s.damage("state", err)
		}
		lastSeq = st.Journal.Next - 1
		var faults []error
		for _, slot := range st.newest() {
			checkpoint, err = readSlot(tx, slot, st.Checkpoints[slot])
			checkpointSeq = st.Checkpoints[slot].Seq
			if err == nil && st.reaches(checkpointSeq) {
				return nil
			}
			faults = append(faults, err)
		}
		return s.damage(fmt.Sprintf("no checkpoint leads to block %d", lastSeq), errors.Join(faults...))
	})
	if err != nil {
		return nil, 0, 0, err
	}
	return checkpoint, checkpointSeq, lastSeq, nil
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

// readSlot copies out a slot's snapshot; nil for an empty one.
func readSlot(tx *bolt.Tx, slot int, want checkpointRef) ([]byte, error) {
	if want.Generation == 0 {
		return nil, nil
	}
	content, err := getBlob(tx.Bucket(bucketCheckpoint), tagCheckpoint, slotPrefix(slot))
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", want.Generation, err)
	}
	ref, snapshot, err := decodeCheckpoint(content)
	if err == nil && (ref.Generation != want.Generation || ref.Seq != want.Seq) {
		err = errCheckpoint
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", want.Generation, err)
	}
	return snapshot, nil
}
