package buffer

import (
	"errors"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

// ErrReadOnly is the answer to a commit on a store that was opened to read.
var ErrReadOnly = errors.New("the store was opened to be read only")

// OpenToRead opens the store in the file path for looking into it. It changes
// nothing, several may do so at once, and a gateway cannot use the store
// meanwhile. What is damaged is a *DamageError and stays where it is; a file that
// is in use is a *LockedError, one that was never a store a *ForeignError.
func OpenToRead(path string) (*Store, error) {
	s, err := openToRead(path)
	return s, orForeign(path, err)
}

func openToRead(path string) (*Store, error) {
	f, err := lockToRead(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = verify(path, f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s := &Store{path: path, o: Options{Quota: max(info.Size(), MinQuota)}, file: f, more: make(chan struct{}), outboxes: map[string]*Outbox{}, readOnly: true}
	if err := s.openDB(); err != nil {
		f.Close()
		return nil, err
	}
	if err := s.load(); err != nil {
		s.end(ErrClosed)
		return nil, errors.Join(err, s.closeFile())
	}
	return s, nil
}

// boltToRead is what bbolt is told of a file that is not to be changed.
func (s *Store) boltToRead() *bolt.Options {
	return &bolt.Options{ReadOnly: true, Timeout: lockTimeout, PageSize: pageSize,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return s.file, nil }}
}

// Checkpoint returns the newest whole checkpoint that holds after a block below
// before, and that block; nil and 0 if there is none.
func (s *Store) Checkpoint(before uint64) (snapshot []byte, seq uint64, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return s.damage("state", err)
		}
		for _, slot := range st.newest() {
			ref := st.Checkpoints[slot]
			if ref.Generation == 0 || ref.Seq >= before || !st.reaches(ref.Seq) {
				continue
			}
			if snapshot, err = readSlot(tx, slot, ref); err == nil {
				seq = ref.Seq
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read a checkpoint: %w", err)
	}
	return snapshot, seq, nil
}

// Held returns the range of blocks that the journal holds and what is missing in
// it.
func (s *Store) Held() (Range, []Gap) {
	st := s.snapshot()
	return st.Journal, append([]Gap(nil), st.Gaps...)
}
