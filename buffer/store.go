package buffer

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Store is an open store. It is made by Open; see the package comment for what
// may run beside what.
type Store struct {
	path string
	o    Options
	db   *bolt.DB
	file *os.File // the one that db holds

	readOnly bool // fixed by OpenToRead

	outboxes map[string]*Outbox // by uplink; fixed by Open

	wmu   sync.Mutex // held by the one who writes: a commit, a close
	arena arena      // under wmu
	block []byte     // under wmu; scratch
	part  []byte     // under wmu; of a checkpoint
	st    *state     // of the last commit; written under wmu and mu, never changed in place

	mu   sync.Mutex
	meta map[string][]byte // under mu; values are never changed in place
	more chan struct{}     // under mu; closed and replaced when there may be something to wait for
	err  error             // under mu; why the store can no longer be used

	wantsCheckpoint atomic.Bool
}

// Opened is what Open had to do.
type Opened struct {
	Created  bool   // the store is a new one
	SetAside string // where the damaged file is that was in its place; empty if none was
	Reason   string // what was wrong with it
	// Kept is what the new store was given of the damaged one: the records that wait
	// to go upstream and the evidence, as far as they are whole. nil if none was set
	// aside, or nothing could be brought over, for want of room for example.
	Kept      *Salvaged
	Compacted bool // the file had shrunk inside and was rewritten
	// Torn: one of the file's two beginnings is damaged, and the other was taken.
	// Usually a power cut in the middle of a commit did that, and the commit was
	// never acknowledged; damage at rest would look the same, and have lost the
	// last commit.
	Torn bool
}

// Meta returns the named value, nil if there is none. It must not be changed.
func (s *Store) Meta(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta[name]
}

// WantsCheckpoint reports that the quota would have older blocks dropped, and
// that only the age of the checkpoints keeps them. A commit that carries one
// helps; it takes two, since recovery may need the older of the two.
func (s *Store) WantsCheckpoint() bool { return s.wantsCheckpoint.Load() }

// Close writes what the uplinks have delivered and closes the file. Whoever waits
// is woken. A second call does nothing.
func (s *Store) Close() error {
	if s.readOnly {
		if !s.end(ErrClosed) {
			return nil
		}
		return s.closeFile()
	}
	err := s.FlushCursors()
	s.wmu.Lock()
	defer s.wmu.Unlock()
	usable := s.usable() == nil
	if !s.end(ErrClosed) {
		return nil
	}
	if usable && s.db.NoFreelistSync {
		s.db.NoFreelistSync = false
		// Without the list the next opening takes longer, no more.
		_ = s.guard("closing", func() error { return s.db.Update(func(*bolt.Tx) error { return nil }) })
	}
	if errors.Is(err, ErrFull) || errors.As(err, new(*BrokenError)) {
		err = nil // said before; the cursors stay where they were
	}
	return errors.Join(err, s.closeFile())
}

// closeTimeout bounds the wait for bbolt's own locks: a fault inside it can leave
// one held for ever.
const closeTimeout = time.Second

// closeFile closes the database. If bbolt is stuck the lock on the file is given
// up; the mapping, which keeps the file open, is left behind.
func (s *Store) closeFile() error {
	done := make(chan error, 1)
	go func() { done <- s.guard("closing", s.db.Close) }()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return syscall.Flock(int(s.file.Fd()), syscall.LOCK_UN)
	}
}

// guard runs fn with faults in mapped memory turned into panics, and panics into
// a *DamageError: bbolt trusts the bytes it finds.
func (s *Store) guard(what string, fn func() error) error { return guard(s.path, what, fn) }

func guard(path, what string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &DamageError{Path: path, What: what + " met a fault", Err: fmt.Errorf("%v", p)}
		}
	}()
	return fn()
}

// damage makes a *DamageError of err, unless it is one.
func (s *Store) damage(what string, err error) error {
	if errors.As(err, new(*DamageError)) {
		return err
	}
	return &DamageError{Path: s.path, What: what, Err: err}
}

// view runs fn in a read transaction. After a fault the store is broken.
func (s *Store) view(fn func(tx *bolt.Tx) error) error {
	if err := s.usable(); err != nil {
		return err
	}
	faulted := true
	err := s.guard("reading", func() error {
		err := s.db.View(fn)
		faulted = false
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrDatabaseNotOpen):
		return ErrClosed
	case faulted:
		s.end(&BrokenError{Path: s.path, Err: err})
	}
	return err
}

// usable returns why the store cannot be used any more, nil if it can.
func (s *Store) usable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// end makes err the answer to every later call and wakes who waits. It reports
// whether the file is still to be closed.
func (s *Store) end(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.err, ErrClosed) {
		return false
	}
	if s.err == nil || errors.Is(err, ErrClosed) {
		s.err = err
	}
	s.wake()
	return true
}

// wake tells who waits that something changed; mu must be held.
func (s *Store) wake() {
	close(s.more)
	s.more = make(chan struct{})
}

// changed returns a channel that is closed at the next change.
func (s *Store) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.more
}

// snapshot returns the state of the last commit. It must not be changed.
func (s *Store) snapshot() *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st
}

func (s *Store) outboxNext() uint64 { return s.snapshot().Outbox.Next }

// install makes st and the changed values what readers see.
func (s *Store) install(st *state, changed map[string][]byte) {
	for name, seq := range st.Cursors {
		s.outboxes[name].raise(seq)
	}
	for name, at := range st.Raw {
		s.outboxes[name].raw.raise(at)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.meta, changed)
	maps.DeleteFunc(s.meta, func(_ string, v []byte) bool { return v == nil })
	if st.Outbox.Next > s.st.Outbox.Next || len(s.o.Raw) > 0 && st.Journal.Next > s.st.Journal.Next {
		defer s.wake()
	}
	s.st = st
}
