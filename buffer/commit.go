package buffer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Commit is what goes to disk together. Every part may be absent.
type Commit struct {
	// Block is the next block of the journal: its Seq is one above the last.
	Block *Block
	// Records go into the outbox in this order; the store numbers them.
	Records  []Record
	Evidence []Evidence
	// Meta changes named values; a nil value deletes. A name is not empty and
	// holds no NUL. A value that is as it was costs nothing.
	Meta map[string][]byte
	// Checkpoint is a snapshot that holds after Block, or after the last block;
	// nil for none. All but its last part is written in transactions that come
	// before the commit's own, over the older of the two checkpoints.
	Checkpoint Snapshot
	// KeepFrom is the first block that the caller still needs: those below may go
	// as retention, quota and checkpoints allow. 0 keeps all.
	KeepFrom uint64
	// AtMS is the wall time in milliseconds if it can be trusted, else 0: then
	// nothing grows old. It may be renewed when the commit is tried again.
	AtMS int64
	// Reported is the ID of the last Loss that this commit's records or evidence
	// report; the store forgets the losses up to it.
	Reported uint64
}

// Commit writes c in one transaction. When it returns nil, everything in c and
// everything delivered before the call is on disk. If the error is an ErrFull,
// nothing was written and c may be tried again as it is; the older checkpoint may
// be gone. A c that cannot be right, such as a block out of sequence, is refused and
// changes nothing. Any other error is a *BrokenError: it is not known whether c is on
// disk, and the store answers nothing until it is closed and opened again.
//
// c and what it points to are the caller's again when Commit returns. Commit
// returns the error of a Snapshot that fails by itself; nothing was written then.
func (s *Store) Commit(c *Commit) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if s.readOnly {
		return ErrReadOnly
	}
	if err := s.check(c); err != nil {
		return err
	}
	if err := s.makeRoom(c); err != nil {
		return err
	}
	var l *laying
	if c.Checkpoint != nil {
		var err error
		if l, err = s.lay(c.Checkpoint, s.lastOf(c)); err != nil {
			return err
		}
	}
	changed := s.changedMeta(c.Meta)
	return s.transact(changed, func(w *writing) error { return w.commit(c, l) })
}

// lastOf is the journal's last block after c.
func (s *Store) lastOf(c *Commit) uint64 {
	if c.Block != nil {
		return c.Block.Seq
	}
	return s.st.Journal.Next - 1
}

// FlushCursors writes what the uplinks have delivered since the last commit and
// removes the records that nobody needs. It does nothing if there is nothing to
// write, so it may be called at any rate, but each write costs the flash some
// 20 KB: once a minute while nothing else is committed is enough. Its errors are
// those of Commit.
func (s *Store) FlushCursors() error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	dirty := false
	for _, o := range s.outboxes {
		dirty = dirty || o.dirty(s.st)
	}
	if !dirty {
		return nil
	}
	return s.transact(nil, func(w *writing) error { return w.removeDelivered(true) })
}

// writing is one transaction in the making. s.wmu is held.
type writing struct {
	s     *Store
	tx    *bolt.Tx
	st    *state // becomes the store's
	block []byte // scratch
}

func (w *writing) put(bucket []byte, t tag, prefix, content []byte) (int64, error) {
	b := w.tx.Bucket(bucket)
	b.FillPercent = 1 // keys only ever grow: a split leaves a full page behind
	return w.s.arena.put(b, t, prefix, content)
}

func (w *writing) commit(c *Commit, l *laying) error {
	w.st.KeepFrom = c.KeepFrom
	if c.AtMS > 0 {
		w.st.LastMS = max(w.st.LastMS, c.AtMS)
		if w.st.FirstMS == 0 {
			w.st.FirstMS = c.AtMS
		}
	}
	w.st.forget(c.Reported)
	if c.Block != nil {
		if err := w.putBlock(c.Block); err != nil {
			return err
		}
	}
	if len(w.s.outboxes) > 0 {
		for i := range c.Records {
			if err := w.putRecord(&c.Records[i]); err != nil {
				return err
			}
		}
	}
	for i := range c.Evidence {
		if err := w.putEvidence(&c.Evidence[i]); err != nil {
			return err
		}
	}
	if l != nil {
		if err := l.finish(w); err != nil {
			return err
		}
	}
	return w.tidy(c)
}

// check refuses a commit that cannot be right.
func (s *Store) check(c *Commit) error {
	if c.Block != nil {
		if err := s.checkBlock(c.Block); err != nil {
			return err
		}
	}
	for name, value := range c.Meta {
		if name == "" || len(name) > indexMax || strings.Contains(name, "\x00") {
			return fmt.Errorf("cannot store a value under the name %q: names are 1 to %d bytes without NUL", name, indexMax)
		}
		if err := checkSize("value "+name, value); err != nil {
			return err
		}
	}
	for i := range c.Records {
		if err := checkSize("outbox record", c.Records[i].Data); err != nil {
			return err
		}
	}
	for i := range c.Evidence {
		if err := checkSize("evidence", c.Evidence[i].Data); err != nil {
			return err
		}
	}
	return nil
}

// dataMax is the longest value of a caller: content also holds a head.
const dataMax = contentMax - blockHeadLen - indexMax

func checkSize(what string, data []byte) error {
	if len(data) > dataMax {
		return fmt.Errorf("cannot store %s of %d bytes: the limit is %d", what, len(data), dataMax)
	}
	return nil
}

// changedMeta returns copies of the values that are not as they were.
func (s *Store) changedMeta(meta map[string][]byte) map[string][]byte {
	changed := map[string][]byte{}
	for name, value := range meta {
		old, known := s.meta[name]
		switch {
		case value == nil && known:
			changed[name] = nil
		case value != nil && !(known && bytes.Equal(old, value)):
			changed[name] = append([]byte{}, value...)
		}
	}
	return changed
}

// transact runs fn in a write transaction that also takes along the cursors and
// the changed values, and makes its outcome the store's.
func (s *Store) transact(changed map[string][]byte, fn func(w *writing) error) error {
	w := &writing{s: s, st: s.st.clone(), block: s.block}
	w.st.Commits++
	s.arena.reset()
	s.weighFreelist()
	err := s.guard("a commit", func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			w.tx = tx
			w.noteCursors()
			if err := fn(w); err != nil {
				return err
			}
			if err := writeMeta(tx, &s.arena, changed); err != nil {
				return err
			}
			return writeState(tx, &s.arena, w.st)
		})
	})
	s.block = w.block
	if err == nil {
		s.install(w.st, changed)
		s.forgetPages(w.st.Commits)
		return nil
	}
	return s.failed(err, w.st.Commits)
}

// Many free pages, as after a long outage whose records are gone, make bbolt's
// list of them large: 800 KB for 400 MB, with every commit. Beyond freelistMax
// pages the list is not written. Then an opening after a crash has to find the
// free pages by walking the trees; Close writes the list.
const (
	freelistMax = 4096
	freelistMin = 2048
)

func (s *Store) weighFreelist() {
	st := s.db.Stats()
	switch free := st.FreePageN + st.PendingPageN; {
	case free > freelistMax:
		s.db.NoFreelistSync = true
	case free < freelistMin:
		s.db.NoFreelistSync = false
	}
}

// failed sorts the error of transaction number n: full, or broken.
func (s *Store) failed(err error, n uint64) error {
	var full *FullError
	switch {
	case errors.Is(err, berrors.ErrMaxSizeReached):
		full = &FullError{Path: s.path, Reason: FullQuota, Used: s.used(), Limit: s.o.limit(), Err: err}
	case noSpace(err):
		full = &FullError{Path: s.path, Reason: FullDisk, Err: err}
	}
	if full != nil && s.stands(n-1) {
		return full
	}
	broken := &BrokenError{Path: s.path, Err: err}
	s.end(broken)
	return broken
}

// noSpace reports whether err is a full disk. bbolt passes on some of the
// system's errors as text only.
func noSpace(err error) bool {
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, no) || strings.HasSuffix(err.Error(), ": "+no.Error()) {
			return true
		}
	}
	return false
}

// stands reports whether transaction n is what the file shows: a failure to
// write may come after the new meta page was in the system's cache.
func (s *Store) stands(n uint64) bool {
	err := s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err == nil && st.Commits != n {
			err = errState
		}
		return err
	})
	return err == nil
}
