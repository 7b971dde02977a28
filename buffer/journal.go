package buffer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// Block is one batch in the journal.
type Block struct {
	Seq      uint64  // from 1, without gaps
	MinMS    int64   // lowest event time; math.MinInt64 if there is none
	MaxMS    int64   // highest event time; likewise
	Digest   [8]byte // of the emissions committed with it
	Readings int     // how many are in Data
	Index    []byte  // what a search may look at without reading Data; nil if none
	Data     []byte
	AtMS     int64 // Commit.AtMS; Commit sets it, the caller's is ignored
}

// The content of a block's blob is a header and Data. Integers are big endian.
//
//	version u8 ‖ min i64 ‖ max i64 ‖ at i64 ‖ readings u32 ‖ digest 8 ‖ index length u16 ‖ index ‖ data
//
// The header stands in chunk 0 whole, so that a search reads one chunk of a
// block: an index has at most indexMax bytes.
const (
	blockVersion = 1
	blockHeadLen = 1 + 8 + 8 + 8 + 4 + 8 + 2
	indexMax     = 1024
)

var errBlockHead = errors.New("head of the block is none")

func appendBlock(dst []byte, b *Block) []byte {
	dst = append(dst, blockVersion)
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.MinMS))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.MaxMS))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.AtMS))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.Readings))
	dst = append(dst, b.Digest[:]...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(b.Index)))
	dst = append(dst, b.Index...)
	return append(dst, b.Data...)
}

// decodeBlock reads the header of content; Index and Data alias it.
func decodeBlock(seq uint64, content []byte) (Block, error) {
	if len(content) < blockHeadLen || content[0] != blockVersion {
		return Block{}, errBlockHead
	}
	b := Block{
		Seq:      seq,
		MinMS:    int64(binary.BigEndian.Uint64(content[1:])),
		MaxMS:    int64(binary.BigEndian.Uint64(content[9:])),
		AtMS:     int64(binary.BigEndian.Uint64(content[17:])),
		Readings: int(binary.BigEndian.Uint32(content[25:])),
		Digest:   [8]byte(content[29:37]),
	}
	n, rest := int(binary.BigEndian.Uint16(content[37:])), content[blockHeadLen:]
	if n > indexMax || n > len(rest) {
		return Block{}, errBlockHead
	}
	if n > 0 {
		b.Index = rest[:n:n]
	}
	b.Data = rest[n:]
	return b, nil
}

// checkBlock refuses what the journal cannot take.
func (s *Store) checkBlock(b *Block) error {
	switch {
	case b.Seq != s.st.Journal.Next:
		return fmt.Errorf("cannot commit block %d to store %q: the next is %d", b.Seq, s.path, s.st.Journal.Next)
	case len(b.Index) > indexMax:
		return fmt.Errorf("cannot commit block %d: its index has %d bytes, the limit is %d", b.Seq, len(b.Index), indexMax)
	case b.Readings < 0 || int64(b.Readings) > 1<<31:
		return fmt.Errorf("cannot commit block %d: %d readings", b.Seq, b.Readings)
	}
	return nil
}

// putBlock appends b to the journal.
func (w *writing) putBlock(b *Block) error {
	stamped := *b
	stamped.AtMS = w.st.LastMS
	w.block = appendBlock(w.block[:0], &stamped)
	n, err := w.put(bucketJournal, tagJournal, seqPrefix(b.Seq), w.block)
	if err != nil {
		return err
	}
	w.st.Journal.Next++
	w.st.Journal.Bytes += n
	w.st.Readings += int64(b.Readings)
	return nil
}

// Blocks calls fn with every block from seq from on, in order, until fn returns
// an error, which Blocks returns. Blocks that retention took away are left out;
// any other that is missing or damaged is a *DamageError. What b holds is fn's to
// keep. No transaction is open while fn runs, so fn may take its time and may
// call the store.
func (s *Store) Blocks(from uint64, fn func(b Block) error) error {
	return s.walkJournal(from, false, fn)
}

// Headers is Blocks without Data: it reads one chunk of each block.
func (s *Store) Headers(from uint64, fn func(b Block) error) error {
	return s.walkJournal(from, true, fn)
}

// What one read transaction copies out at most.
const (
	readBlocks = 256
	readBytes  = 512 << 10
)

func (s *Store) walkJournal(from uint64, headers bool, fn func(Block) error) error {
	for {
		part, err := s.readJournal(from, headers, readBlocks)
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

// readJournal copies out the next blocks from seq from on, at most limit.
func (s *Store) readJournal(from uint64, headers bool, limit int) (part []Block, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return s.damage("state", err)
		}
		c := tx.Bucket(bucketJournal).Cursor()
		size := 0
		for seq := st.heldFrom(from); seq < st.Journal.Next; seq = st.heldFrom(seq + 1) {
			if len(part) == limit || size >= readBytes {
				return nil
			}
			b, n, err := readBlock(c, seq, headers)
			if err != nil {
				return &DamageError{Path: s.path, What: fmt.Sprintf("journal block %d", seq), Block: seq, Err: err}
			}
			part, size = append(part, b), size+n
		}
		return nil
	})
	return part, err
}

// readBlock copies out one block and says how many bytes were read for it.
func readBlock(c *bolt.Cursor, seq uint64, header bool) (Block, int, error) {
	key := chunkKey(seqPrefix(seq), 0)
	k, v := c.Seek(key)
	if string(k) != string(key) {
		return Block{}, 0, errMissing
	}
	if header {
		return readHeader(seq, k, v)
	}
	content, err := readBlob(c, tagJournal, k, v)
	if err != nil {
		return Block{}, 0, err
	}
	b, err := decodeBlock(seq, content)
	return b, len(content), err
}

// readHeader reads what chunk 0 has of a block, without data.
func readHeader(seq uint64, k, v []byte) (Block, int, error) {
	h, err := openHead(tagJournal, k, v)
	if err != nil {
		return Block{}, 0, err
	}
	b, err := decodeBlock(seq, h.first)
	b.Index = append([]byte(nil), b.Index...)
	b.Data = nil
	return b, len(v), err
}

// heldFrom is the first sequence number from seq on that the journal should
// hold, Journal.Next if there is none.
func (s *state) heldFrom(seq uint64) uint64 {
	seq = max(seq, s.Journal.First)
	for _, g := range s.Gaps {
		if g.First <= seq && seq < g.Next {
			seq = g.Next
		}
	}
	return min(seq, s.Journal.Next)
}

// LoseBlock gives up a block that cannot be read, so that what comes after it can
// be. What it held is a Loss, its number a gap in the journal.
func (s *Store) LoseBlock(seq uint64) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if s.readOnly {
		return ErrReadOnly
	}
	if s.st.heldFrom(seq) != seq || seq >= s.st.Journal.Next {
		return fmt.Errorf("cannot give up block %d of store %q: it is not held", seq, s.path)
	}
	return s.transact(nil, func(w *writing) error { return w.loseBlock(seq) })
}

func (w *writing) loseBlock(seq uint64) error {
	l := Loss{Kind: LossRaw, First: seq, Next: seq + 1, MinMS: none, MaxMS: none, Damaged: 1}
	b := w.tx.Bucket(bucketJournal)
	if h, _, err := readBlock(b.Cursor(), seq, true); err == nil {
		l.add(h)
		w.st.Readings = max(0, w.st.Readings-int64(h.Readings))
	}
	n, err := deleteBlob(b, seqPrefix(seq))
	if err != nil {
		return err
	}
	w.st.Journal.Bytes = max(0, w.st.Journal.Bytes-n)
	w.st.gap(seq)
	w.st.lose(l)
	return nil
}

// gap notes that a block is not there.
func (s *state) gap(seq uint64) {
	s.Gaps = append(s.Gaps, Gap{First: seq, Next: seq + 1})
	slices.SortFunc(s.Gaps, func(a, b Gap) int { return cmp.Compare(a.First, b.First) })
	joined := s.Gaps[:1]
	for _, g := range s.Gaps[1:] {
		if last := &joined[len(joined)-1]; last.Next == g.First {
			last.Next = g.Next
		} else {
			joined = append(joined, g)
		}
	}
	s.Gaps = joined
}

// dropBlocks removes the blocks [Journal.First, to) and returns what they held. A
// damaged one goes like the others, and is counted as such.
func (w *writing) dropBlocks(to uint64) (Loss, error) {
	l := Loss{Kind: LossRaw, First: w.st.Journal.First, Next: to, MinMS: none, MaxMS: none}
	b := w.tx.Bucket(bucketJournal)
	for seq := w.st.heldFrom(l.First); seq < to; seq = w.st.heldFrom(seq + 1) {
		if h, _, err := readBlock(b.Cursor(), seq, true); err != nil {
			l.Damaged++
		} else {
			l.add(h)
			w.st.Readings = max(0, w.st.Readings-int64(h.Readings))
		}
		n, err := deleteBlob(b, seqPrefix(seq))
		if err != nil {
			return l, err
		}
		w.st.Journal.Bytes = max(0, w.st.Journal.Bytes-n)
	}
	w.st.Journal.First = to
	w.st.Gaps = slices.DeleteFunc(w.st.Gaps, func(g Gap) bool { return g.Next <= to })
	return l, nil
}
