package buffer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"
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
// must not be in use; dst must not exist.
//
// The new store may have gaps in its journal: Blocks passes over them.
func Salvage(src, dst string) (*Salvaged, error) {
	f, err := lockToRead(src)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(dst); !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot salvage into %q: it exists already, name another file", dst)
	}
	found, err := salvageInto(f, info.Size(), dst, false)
	if err != nil {
		return nil, fmt.Errorf("cannot salvage %q into %q: %w", src, dst, err)
	}
	return found, nil
}

// bringOver makes the store that takes the place of the damaged file src: with what
// waits to go upstream and the evidence, as far as they are whole, and an empty
// journal, since there is no state of an engine for it to follow upon.
func bringOver(src, dst string) (*Salvaged, error) {
	f, err := lockToRead(src)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return salvageInto(f, info.Size(), dst, true)
}

func salvageInto(f *os.File, size int64, dst string, waiting bool) (found *Salvaged, err error) {
	tmp, err := tempName(dst)
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp)
	err = guard(tmp, "salvage", func() (err error) {
		found, err = salvage(f, size, tmp, waiting)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, _, err := Compact(tmp); err != nil {
		return nil, err
	}
	return found, publish(tmp, dst)
}

// salvager gathers chunks in a database of its own first: what is found has no
// order.
type salvager struct {
	db   *bolt.DB
	tx   *bolt.Tx
	size int // of what tx holds

	waiting bool   // leave out everything but records and evidence
	st      *state // the newest found
	found   *Salvaged
}

func salvage(f *os.File, size int64, tmp string, waiting bool) (*Salvaged, error) {
	db, err := bolt.Open(tmp, 0o600, &bolt.Options{Timeout: lockTimeout, PageSize: pageSize, NoSync: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	s := &salvager{db: db, waiting: waiting, found: &Salvaged{Gaps: []Gap{}}}
	if s.tx, err = db.Begin(true); err == nil {
		err = s.run(f, size)
	}
	if err == nil {
		err = errors.Join(s.tx.Commit(), db.Sync())
	} else if s.tx != nil {
		err = errors.Join(err, s.tx.Rollback())
	}
	return s.found, errors.Join(err, db.Close())
}

func (s *salvager) run(f *os.File, size int64) error {
	for name := range buckets {
		if _, err := s.tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	if err := s.gather(f, size); err != nil {
		return err
	}
	b := s.tx.Bucket(bucketState)
	if data, err := getBlob(b, tagState, stateKey); err == nil && data != nil {
		s.st, _ = decodeState(data)
	}
	s.found.State = s.st != nil
	if s.st == nil {
		s.st = newState(0)
		for _, name := range [][]byte{bucketState, bucketCheckpoint} { // there is no telling which are the newest
			if err := s.clear(name); err != nil {
				return err
			}
		}
	}
	return s.assemble()
}

// gather copies every chunk that its checksum vouches for: first those that the
// trees lead to, then those in any other leaf, where they are not known yet.
func (s *salvager) gather(f *os.File, size int64) error {
	pages, err := openPages(f, size)
	var failed error
	reachable := func(bucket []byte, e element) {
		if t, known := buckets[string(bucket)]; known && failed == nil {
			failed = s.keep(bucket, t, e)
		}
	}
	if !errors.Is(err, errMeta) {
		checkPages(pages, reachable, func(*PageError) {})
	}
	data := make([]byte, pageSize)
	for at := int64(0); at+pageSize <= size && failed == nil; at += pageSize {
		if _, err := f.ReadAt(data, at); err != nil {
			continue
		}
		p := parsePage(data)
		if p.flags != flagLeaf {
			continue
		}
		for i := 0; i < p.count && failed == nil; i++ {
			e, ok := p.element(i)
			if !ok {
				break
			}
			// Only what bears its number can be told from an older version of itself.
			for _, bucket := range [][]byte{bucketJournal, bucketOutbox, bucketEvidence} {
				if len(e.key) == 10 && failed == nil {
					failed = s.keep(bucket, buckets[string(bucket)], e)
				}
			}
		}
	}
	return failed
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
	s.size += len(e.key) + len(e.value)
	if err := b.Put(e.key, bytes.Clone(e.value)); err != nil {
		return err
	}
	return s.breathe()
}

// breathe commits now and then, which bounds the memory.
func (s *salvager) breathe() (err error) {
	if s.size < txBytes {
		return nil
	}
	s.size = 0
	if err = s.tx.Commit(); err != nil {
		s.tx = nil
		return err
	}
	s.tx, err = s.db.Begin(true)
	return err
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
		if len(k) != 10 {
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
		s.size += len(content)
		if err := s.breathe(); err != nil {
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
