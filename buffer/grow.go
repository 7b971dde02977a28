package buffer

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// zeroBelow is the size of a commit from which on it is cheaper to let the file
// system find the blocks: zeros cost as many bytes as are written later, the file
// system's journal costs about as much as this, however large the commit.
const zeroBelow = 16 << 10

// grow sees to it that the file has room behind its last page for a commit that
// takes need bytes, and fills that room with zeros. bbolt would only make the
// file longer, and the file system would find blocks for it as they are written:
// each commit would then write to the file system's journal too, some 15 KB on
// ext4.
func (s *Store) grow(need int64) error {
	var used int64
	if err := s.view(func(tx *bolt.Tx) error { used = tx.Size(); return nil }); err != nil {
		return err
	}
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("cannot look at store %q: %w", s.path, err)
	}
	size := info.Size()
	to := min(max(used+need, size+s.o.step()), s.o.Quota) &^ (pageSize - 1)
	if used+need <= size || to <= size {
		return nil
	}
	if err := s.zero(size, to); err != nil {
		// What was added is no part of the store yet.
		err = errors.Join(err, s.file.Truncate(size))
		if noSpace(err) {
			return &FullError{Path: s.path, Reason: FullDisk, Err: err}
		}
		return s.failed(err, 0)
	}
	return nil
}

// zero writes zeros from from to to and syncs them.
func (s *Store) zero(from, to int64) error {
	zeros := make([]byte, 64<<10)
	for at := from; at < to; at += int64(len(zeros)) {
		if _, err := s.file.WriteAt(zeros[:min(to-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	return s.file.Sync()
}
