package buffer

import (
	"math"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// LossKind is what was dropped.
type LossKind string

const (
	LossRaw      LossKind = "raw"      // blocks of the journal
	LossOutbox   LossKind = "outbox"   // records that an uplink had not delivered
	LossUnsent   LossKind = "unsent"   // readings that an uplink takes and had not delivered
	LossEvidence LossKind = "evidence" // evidence before its time
)

// Loss is something that the store had to drop. It stands in the file until a
// commit says that it was reported.
type Loss struct {
	ID       uint64   `json:"id"` // grows
	Kind     LossKind `json:"kind"`
	Uplink   string   `json:"uplink,omitempty"` // of LossOutbox and LossUnsent
	First    uint64   `json:"first"`            // sequence numbers [First, Next)
	Next     uint64   `json:"next"`
	Records  int64    `json:"records,omitempty"`  // of LossOutbox: those that the uplink has not
	Readings int64    `json:"readings,omitempty"` // of LossRaw and LossUnsent
	MinMS    int64    `json:"min_ms,omitempty"`   // of LossRaw: event times; math.MinInt64 if there is none
	MaxMS    int64    `json:"max_ms,omitempty"`
	Damaged  int64    `json:"damaged,omitempty"` // blocks that could not be read: of their readings perhaps none is counted
}

// none is the absence of an event time.
const none = math.MinInt64

// add counts a block in.
func (l *Loss) add(b Block) {
	l.Readings += int64(b.Readings)
	if b.MinMS != none && (l.MinMS == none || b.MinMS < l.MinMS) {
		l.MinMS = b.MinMS
	}
	l.MaxMS = max(l.MaxMS, b.MaxMS)
}

// Losses returns what was dropped and is not reported yet, oldest first. Whoever
// writes them into a commit sets its Reported to the ID of the last one.
func (s *Store) Losses() []Loss { return slices.Clone(s.snapshot().Losses) }

// lossesMax bounds the unreported losses; beyond it a new one takes in the oldest
// of its kind.
const lossesMax = 64

func (s *state) lose(l Loss) {
	s.LossID++
	l.ID = s.LossID
	alike := func(old Loss) bool { return old.Kind == l.Kind && old.Uplink == l.Uplink }
	if i := slices.IndexFunc(s.Losses, alike); i >= 0 && len(s.Losses) >= lossesMax {
		old := s.Losses[i]
		l.First = min(l.First, old.First)
		l.add(Block{Readings: int(old.Readings), MinMS: old.MinMS, MaxMS: old.MaxMS})
		l.Records, l.Damaged = l.Records+old.Records, l.Damaged+old.Damaged
		s.Losses = slices.Delete(s.Losses, i, i+1)
	}
	s.Losses = append(s.Losses, l)
}

// forget removes the losses up to and including id.
func (s *state) forget(id uint64) {
	s.Losses = slices.DeleteFunc(s.Losses, func(l Loss) bool { return l.ID <= id })
}

// used is how many bytes of the file hold something. Pages that the last commit
// freed count as free: the next may use them.
func (s *Store) used() int64 {
	var size int64
	err := s.view(func(tx *bolt.Tx) error { size = tx.Size(); return nil })
	if err != nil {
		return 0
	}
	st := s.db.Stats()
	return size - int64(st.FreePageN+st.PendingPageN)*pageSize
}

// size is how many bytes of its caller's a commit carries.
func (c *Commit) size() (n int64) {
	if c.Checkpoint != nil {
		n = partLen // each part before the last finds its own room
	}
	if c.Block != nil {
		n += int64(len(c.Block.Data) + len(c.Block.Index))
	}
	for i := range c.Records {
		n += int64(len(c.Records[i].Data)) + 64
	}
	for i := range c.Evidence {
		n += int64(len(c.Evidence[i].Data)) + 64
	}
	for _, v := range c.Meta {
		n += int64(len(v))
	}
	return n
}

// need is about what a commit takes until the pages that it replaces are free.
func (c *Commit) need() int64 { return c.size()*5/4 + 128<<10 }

// makeRoom sees to it that c fits, or returns a *FullError. Pages come free only
// with the transaction after the one that gave them up, so what must go for c to
// fit goes first, in a transaction of its own. Usually nothing must: tidy keeps
// the distance.
func (s *Store) makeRoom(c *Commit) error {
	need := c.need()
	if s.o.WhenFull == HoldSources && c.Block != nil && s.used()+need > s.o.rawLimit() {
		if err := s.transact(nil, func(w *writing) error { return w.expire(c.AtMS) }); err != nil {
			return err
		}
		if used := s.used(); used+need > s.o.rawLimit() {
			return &FullError{Path: s.path, Reason: FullHold, Used: used, Limit: s.o.rawLimit()}
		}
	}
	for excess := s.used() + need - s.o.limit(); excess > 0; excess = s.used() + need - s.o.limit() {
		before := s.st.held()
		if err := s.transact(nil, func(w *writing) error { return w.evict(excess) }); err != nil {
			return err
		}
		if s.st.held() == before {
			if c.Block == nil && c.Checkpoint != nil {
				break // it may be what makes room: let it use the last of it
			}
			return &FullError{Path: s.path, Reason: FullQuota, Used: s.used(), Limit: s.o.limit()}
		}
	}
	if c.size() < zeroBelow {
		return s.grow(need)
	}
	return nil
}

// held counts all that may be dropped.
func (s *state) held() uint64 { return s.Journal.Len() + s.Outbox.Len() + s.Evidence.Len() }

// droppable is the first block that has to stay, since the caller or recovery
// needs it. What goes ahead of a commit goes by what the commits before it said.
func (s *state) droppable() uint64 {
	return max(s.Journal.First, min(s.safeSeq()+1, s.KeepFrom, s.Journal.Next))
}

// tidy keeps the distance to the limits at the end of a commit.
func (w *writing) tidy(c *Commit) error {
	if err := w.removeDelivered(false); err != nil {
		return err
	}
	if err := w.expire(c.AtMS); err != nil {
		return err
	}
	if over := w.st.Evidence.Bytes - w.s.o.EvidenceMax; over > 0 {
		if err := w.dropEvidence(over + w.s.o.EvidenceMax/8); err != nil {
			return err
		}
	}
	w.s.wantsCheckpoint.Store(false)
	if excess := w.s.used() + c.need() - w.s.o.rawLimit(); excess > 0 && w.s.o.WhenFull == DropOldestRaw {
		return w.dropRaw(excess + w.s.o.Quota/64)
	}
	return nil
}

// evict frees about want bytes: raw readings if the policy lets them go, then
// evidence, then what waits to go upstream.
func (w *writing) evict(want int64) error {
	want += w.s.o.Quota / 64
	before := w.st.Journal.Bytes + w.st.Evidence.Bytes
	if w.s.o.WhenFull == DropOldestRaw {
		if err := w.dropRaw(want); err != nil {
			return err
		}
	}
	if got := before - w.st.Journal.Bytes - w.st.Evidence.Bytes; got < want {
		if err := w.dropEvidence(want - got); err != nil {
			return err
		}
	}
	if got := before - w.st.Journal.Bytes - w.st.Evidence.Bytes; got < want {
		return w.dropOutbox(want - got)
	}
	return nil
}

// dropAtMost bounds the blocks or records of a kind that one transaction drops.
const dropAtMost = 8192

// dropRaw drops the oldest blocks, about want bytes of them.
func (w *writing) dropRaw(want int64) error {
	j := &w.st.Journal
	limit := w.st.droppable()
	to := min(limit, upTo(*j, want))
	if to < upTo(*j, want) && w.st.safeSeq()+1 < min(w.st.KeepFrom, j.Next) {
		w.s.wantsCheckpoint.Store(true)
	}
	if to <= j.First {
		return nil
	}
	w.loseUnsent(to)
	l, err := w.dropBlocks(to)
	if err == nil {
		w.st.lose(l)
	}
	return err
}

// upTo is where the oldest of r that hold about want bytes end.
func upTo(r Range, want int64) uint64 {
	if r.Len() == 0 {
		return r.First
	}
	each := max(r.Bytes/int64(r.Len()), 1)
	return r.First + min(uint64(want/each)+1, r.Len(), dropAtMost)
}

func (w *writing) dropEvidence(want int64) error {
	e := &w.st.Evidence
	to := upTo(*e, want)
	if to <= e.First {
		return nil
	}
	w.st.lose(Loss{Kind: LossEvidence, First: e.First, Next: to})
	return w.dropRecords(bucketEvidence, e, to)
}

// Blocks and evidence that are old go in batches, for the reason that delivered
// records do.
const (
	expireBatch   = 128
	expireBatches = 8
)

// expire drops what is older than the retention and needed by nobody. Age is
// measured from a trusted time only.
func (w *writing) expire(nowMS int64) error {
	if w.s.o.RetainMS == 0 || nowMS <= 0 {
		return nil
	}
	oldest := max(w.st.LastMS, nowMS) - w.s.o.RetainMS
	limit := min(w.st.droppable(), w.st.unsent())
	for range expireBatches {
		to := w.st.Journal.First + expireBatch
		if to > limit || !w.blockBefore(to-1, oldest) {
			break
		}
		l, err := w.dropBlocks(to)
		if err != nil {
			return err
		}
		if l.Damaged > 0 {
			w.st.lose(l)
		}
	}
	for range expireBatches {
		to := w.st.Evidence.First + expireBatch
		if to > w.st.Evidence.Next || !w.evidenceBefore(to-1, oldest) {
			break
		}
		if err := w.dropRecords(bucketEvidence, &w.st.Evidence, to); err != nil {
			return err
		}
	}
	return nil
}

// blockBefore reports whether the block was written before oldest. A block
// written while the time was not known is as old as the first known time; one
// that cannot be read is as old as the one after it.
func (w *writing) blockBefore(seq uint64, oldest int64) bool {
	for seq = w.st.heldFrom(seq); seq < w.st.Journal.Next; seq = w.st.heldFrom(seq + 1) {
		h, _, err := readBlock(w.tx.Bucket(bucketJournal).Cursor(), seq, true)
		if err != nil {
			continue
		}
		if h.AtMS == 0 {
			h.AtMS = w.st.FirstMS
		}
		return h.AtMS < oldest
	}
	return false
}

// evidenceBefore is blockBefore for evidence.
func (w *writing) evidenceBefore(seq uint64, oldest int64) bool {
	for ; seq < w.st.Evidence.Next; seq++ {
		content, err := getBlob(w.tx.Bucket(bucketEvidence), tagEvidence, seqPrefix(seq))
		if err != nil || content == nil {
			continue
		}
		_, atMS, _, err := decodeRecord(content)
		if err == nil {
			return atMS < oldest
		}
	}
	return false
}
