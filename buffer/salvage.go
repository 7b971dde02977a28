package buffer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// Salvaged is what Salvage brought back.
type Salvaged struct {
	Blocks   uint64 `json:"blocks"`
	Readings int64  `json:"readings"`
	Gaps     []Gap  `json:"gaps"` // blocks that are lost
	Records  uint64 `json:"records"`
	// LostRecords are outbox records that are known to be missing.
	LostRecords uint64 `json:"lost_records"`
	Evidence    uint64 `json:"evidence"`
	// LeftBlocks and LeftReadings stay behind in the damaged file when another store
	// takes its place by itself: see Opened.Kept.
	LeftBlocks   uint64 `json:"left_blocks,omitempty"`
	LeftReadings int64  `json:"left_readings,omitempty"`
	Values       int    `json:"values"`   // named values
	State        bool   `json:"state"`    // the state was there; without it there are no values and no checkpoint
	Complete     bool   `json:"complete"` // a gateway can go on with the file: Recover succeeds
}

// Salvage reads whatever is whole in the file src, however damaged it is, and
// writes it to a new store dst. It looks into every page, also those that nothing
// leads to any more; checksums tell what belongs where. Records and evidence are
// numbered anew, with the uplinks' marks moved along. src is not changed, and
// must not be in use; a *ForeignError says that it was never a store. dst must not
// exist.
//
// The new store may have gaps in its journal: Blocks passes over them.
func Salvage(src, dst string, progress Progress) (*Salvaged, error) {
	if _, err := os.Lstat(dst); !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot salvage into %q: it exists already, name another file", dst)
	}
	return salvage(src, dst, &salvager{progress: progress})
}

// bringOver makes the store that takes the place of the damaged file src: with what
// waits to go upstream and the evidence, as far as they are whole, and an empty
// journal, since there is no state of an engine for it to follow upon.
func bringOver(src, dst string) (*Salvaged, error) {
	return salvage(src, dst, &salvager{waiting: true})
}

func salvage(src, dst string, s *salvager) (*Salvaged, error) {
	f, err := lockToRead(src)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if foreign(f) {
		return nil, &ForeignError{Path: src}
	}
	if err := s.salvage(f, dst); err != nil {
		return nil, fmt.Errorf("cannot salvage %q into %q: %w", src, dst, err)
	}
	return s.found, nil
}

// salvager gathers chunks in a file of its own first, since what is found has no
// order; then it makes a store of them.
type salvager struct {
	*bulk
	progress Progress
	waiting  bool // leave out everything but records and evidence

	gathered, assembled int64  // bytes
	st                  *state // the newest found
	found               *Salvaged
}

func (s *salvager) salvage(f *os.File, dst string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	tmp, err := tempName(dst)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	s.found = &Salvaged{Gaps: []Gap{}}
	err = guard(tmp, "salvage", func() error {
		return fill(tmp, func(b *bulk) error {
			s.bulk = b
			for name := range buckets {
				if _, err := s.tx.CreateBucket([]byte(name)); err != nil {
					return err
				}
			}
			if err := s.gather(f, info.Size()); err != nil {
				return err
			}
			return s.assemble()
		})
	})
	if err != nil {
		return err
	}
	if _, _, err := Compact(tmp, s.progress); err != nil {
		return err
	}
	return publish(tmp, dst)
}

// gather copies every chunk that its checksum vouches for: first those that the
// trees lead to, then those in any other leaf, where they are not known yet.
func (s *salvager) gather(f *os.File, size int64) error {
	pages, err := openPages(f, size)
	if !errors.Is(err, errMeta) {
		var failed error
		reachable := func(bucket []byte, e element) {
			if t, known := buckets[string(bucket)]; known && failed == nil {
				failed = s.keep(bucket, t, e)
			}
		}
		err := checkPages(pages, reachable, func(*PageError) {}, s.progress)
		if err = errors.Join(failed, err); err != nil {
			return err
		}
	}
	data := make([]byte, pageSize)
	for at := int64(0); at+pageSize <= size; at += pageSize {
		if err := s.progress.at(StepSearching, at, size); err != nil {
			return err
		}
		if _, err := f.ReadAt(data, at); err != nil {
			continue
		}
		if err := s.search(parsePage(data)); err != nil {
			return err
		}
	}
	return nil
}

// search keeps what a leaf has. Only what bears its number can be told from an older
// version of itself.
func (s *salvager) search(p *page) error {
	for i := 0; p.flags == flagLeaf && i < p.count; i++ {
		e, ok := p.element(i)
		if !ok {
			break
		}
		if len(e.key) != numberedKeyLen {
			continue
		}
		for _, bucket := range [][]byte{bucketJournal, bucketOutbox, bucketEvidence} {
			if err := s.keep(bucket, buckets[string(bucket)], e); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep stores a chunk if it is whole and the first of its key.
func (s *salvager) keep(bucket []byte, t tag, e element) error {
	if len(e.key) < 3 || s.waiting && (t == tagJournal || t == tagCheckpoint || t == tagState && e.key[0] != stateKey[0]) {
		return nil
	}
	if _, err := openChunk(t, e.key, e.value); err != nil {
		return nil
	}
	b := s.tx.Bucket(bucket)
	if b.Get(e.key) != nil {
		return nil
	}
	if err := b.Put(e.key, bytes.Clone(e.value)); err != nil {
		return err
	}
	s.gathered += int64(len(e.value))
	return s.added(len(e.key) + len(e.value))
}
