package buffer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// Record is something that goes upstream.
type Record struct {
	Kind byte // the caller's
	// Since is the block whose commit brought the first record of the chain that
	// this one belongs to, such as the revisions of one window: a chain is delivered
	// in the order of its making. 0 is a record that belongs to none; one whose
	// chain is not known says 1, and keeps its place behind everything that waits.
	Since uint64
	Data  []byte
}

// StoredRecord is a Record with its number in the outbox, from 1 without gaps in
// the order of Commit.Records, and the wall time of its commit (Commit.AtMS, or
// the last one known).
type StoredRecord struct {
	Seq   uint64
	Since uint64
	Kind  byte
	AtMS  int64
	Data  []byte
}

// Lane is a way through the outbox. Each has its own position and its own mark.
type Lane int

const (
	// Live is what came after Begin, but for chains that began before it.
	Live Lane = iota
	// Backlog is what waited at Begin, and whatever continues its chains.
	Backlog
)

// Ahead is a run of records that were delivered before those that waited: of the
// records (After, To] those of no chain, and of chains that began after Block.
type Ahead struct {
	After uint64 `json:"after"`
	To    uint64 `json:"to"`
	Block uint64 `json:"block"`
}

func (a Ahead) took(seq, since uint64) bool {
	return a.After < seq && seq <= a.To && beganAfter(since, a.Block)
}

func beganAfter(since, block uint64) bool { return since == 0 || since > block }

// aheadMax bounds what is remembered of outages that came while the backlog of an
// earlier one was being sent. Beyond it what waits counts as live: it is sent with
// the new records, in order, and merely not as slowly.
const aheadMax = 32

// Outbox is one uplink's view of the records that go upstream: read positions,
// which are only in memory, and the marks of what was delivered, which every
// commit persists. A record is removed once every uplink has delivered it.
//
// After a restart the read positions are at the first record that was not known
// to be delivered: some may be sent again, none is left out.
type Outbox struct {
	s    *Store
	name string
	raw  *rawCursor // nil if the uplink takes no readings

	// Of the reading goroutine.
	next    [2]uint64 // read positions, by lane
	after   uint64    // the last record that waited at Begin
	ordered bool      // what came after it waits until all that waited was read

	mu     sync.Mutex
	mark   uint64  // everything up to here is delivered
	ahead  []Ahead // of what is behind the mark
	apart  bool    // the lanes are: what the live one delivers went ahead
	block  uint64  // the last block at Begin
	merged uint64  // both lanes have been read up to here, and are one from here on; 0 if they are not
}

// Outbox returns the uplink's view. It is the same one each time. The uplink
// must be one of Options.Uplinks.
func (s *Store) Outbox(uplink string) *Outbox {
	o := s.outboxes[uplink]
	if o == nil {
		panic(fmt.Sprintf("buffer: uplink %q is not in Options.Uplinks", uplink))
	}
	return o
}

// Begin begins a connection, before anything is read over it: whatever is not delivered by now is its backlog, and
// reading starts anew. With ordered, Live has nothing until all of the backlog was
// read; else it goes beside it.
func (o *Outbox) Begin(ordered bool) {
	st := o.s.snapshot()
	o.mu.Lock()
	o.after, o.block, o.ordered = st.Outbox.Next-1, st.Journal.Next-1, ordered
	o.apart = o.mark < o.after
	if n := len(o.ahead); n == aheadMax {
		o.after, o.block = o.ahead[n-1].After, o.ahead[n-1].Block
	}
	o.mu.Unlock()
	o.raw.begin(st)
	o.Rewind()
}

// Rewind moves the read positions back to the first records that are not
// delivered, as after a refusal.
func (o *Outbox) Rewind() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.merged = 0
	o.next = [2]uint64{Live: o.mark + 1, Backlog: o.mark + 1}
	if o.apart {
		o.next[Live] = o.after + 1
		if n := len(o.ahead); n > 0 && o.ahead[n-1].After == o.after {
			o.next[Live] = o.ahead[n-1].To + 1
		}
	}
	o.raw.rewind()
}

// Next appends the lane's next records to dst, at most maxRecords and, but for
// the first, no more than maxBytes of data, and moves the read position behind
// them. It appends nothing if there is none. upTo is the position reached: with
// these records the lane is delivered up to there. What it appends is the
// caller's to keep. A damaged record is a *DamageError.
func (o *Outbox) Next(lane Lane, dst []StoredRecord, maxRecords, maxBytes int) (recs []StoredRecord, upTo uint64, err error) {
	o.next[lane] = max(o.next[lane], o.delivered()+1)
	start := len(dst)
	for maxRecords > 0 && len(dst) == start {
		to := o.end(lane)
		if o.next[lane] >= to {
			o.merge()
			break
		}
		if dst, err = o.scan(lane, dst, to, maxRecords, maxBytes); err != nil {
			return dst[:start], 0, err
		}
	}
	return dst, o.next[lane] - 1, o.s.usable()
}

// end is where a lane's records end now.
func (o *Outbox) end(lane Lane) uint64 {
	if lane == Live {
		if o.held() {
			return 0
		}
		return o.s.outboxNext()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.apart || o.merged > 0 {
		return 0
	}
	return o.next[Live]
}

// held reports whether the live lane waits for the backlog to be read.
func (o *Outbox) held() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.apart && o.ordered && o.merged == 0
}

// merge makes one of the lanes if the backlog has been read as far as the live
// one: what comes now follows everything of its chain.
func (o *Outbox) merge() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.apart && o.merged == 0 && o.next[Backlog] >= o.next[Live] {
		o.merged = o.next[Live] - 1
		o.unite()
	}
}

// unite forgets the lanes once everything from before they merged is delivered.
// mu is held.
func (o *Outbox) unite() {
	if o.apart && o.merged > 0 && o.mark >= o.merged {
		if n := len(o.ahead); n > 0 {
			o.mark = max(o.mark, o.ahead[n-1].To)
		}
		o.apart, o.ahead, o.merged = false, nil, 0
	}
}

// scanRecords bounds what one read transaction looks at.
const scanRecords = 1024

// scan appends the lane's records before to, as many as one transaction gives.
func (o *Outbox) scan(lane Lane, dst []StoredRecord, to uint64, maxRecords, maxBytes int) ([]StoredRecord, error) {
	takes := o.filter(lane)
	size, start := 0, len(dst)
	err := o.s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return o.s.damage("state", err)
		}
		from := max(o.next[lane], st.Outbox.First)
		o.next[lane] = from
		return o.s.eachOutbox(tx, from, min(to, st.Outbox.Next, from+scanRecords), func(r StoredRecord) bool {
			if takes(&r) {
				size += len(r.Data)
				if len(dst) > start && size > maxBytes {
					return false
				}
				dst = append(dst, r)
			}
			o.next[lane] = r.Seq + 1
			return len(dst)-start < maxRecords
		})
	})
	return dst, err
}

// filter returns what tells the records of a lane.
func (o *Outbox) filter(lane Lane) func(*StoredRecord) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	after, block, ahead := o.after, o.block, slices.Clone(o.ahead)
	switch {
	case !o.apart || o.merged > 0:
		return func(*StoredRecord) bool { return true }
	case lane == Live:
		return func(r *StoredRecord) bool { return beganAfter(r.Since, block) }
	}
	return func(r *StoredRecord) bool {
		if r.Seq > after {
			return !beganAfter(r.Since, block)
		}
		return !slices.ContainsFunc(ahead, func(a Ahead) bool { return a.took(r.Seq, r.Since) })
	}
}

// Wait returns nil as soon as there may be something for Next(Live) or NextBlock,
// and otherwise the error of ctx or of a store that can no longer be read.
func (o *Outbox) Wait(ctx context.Context) error {
	next := max(o.next[Live], o.delivered()+1)
	held := o.held()
	for {
		more := o.s.changed()
		if err := o.s.usable(); err != nil {
			return err
		}
		if !held && next < o.s.outboxNext() || o.raw.waits(o.s.snapshot()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-more:
		}
	}
}

// Delivered says that everything of the lane up to and including record seq has
// arrived. The marks never go back, and are on disk with the next Commit or
// FlushCursors. Records of both lanes must be passed on in the order in which Next
// gave them.
func (o *Outbox) Delivered(lane Lane, seq uint64) {
	seq = min(seq, o.s.outboxNext()-1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if lane == Live && o.apart {
		if seq > o.after {
			o.goAhead(seq)
		}
	} else {
		o.mark = max(o.mark, seq)
	}
	o.settle()
}

// goAhead notes what the live lane has delivered. mu is held.
func (o *Outbox) goAhead(seq uint64) {
	n := len(o.ahead)
	if n == 0 || o.ahead[n-1].After != o.after {
		o.ahead = append(o.ahead, Ahead{After: o.after, To: o.after, Block: o.block})
		n++
	}
	o.ahead[n-1].To = max(o.ahead[n-1].To, seq)
}

// settle forgets what the mark has passed. mu is held.
func (o *Outbox) settle() {
	o.unite()
	o.ahead = passed(o.ahead, o.mark)
}

// passed returns the runs that are not wholly behind the mark.
func passed(ahead []Ahead, mark uint64) []Ahead {
	for len(ahead) > 0 && ahead[0].To <= mark {
		ahead = ahead[1:]
	}
	return ahead
}

// Waiting is what an uplink still has before it.
type Waiting struct {
	// Records is how many are not delivered; of those that went ahead, the few left
	// for the backlog are not counted.
	Records   int64
	OldestSeq uint64 // the first of them; of no meaning if there is none
	OldestMS  int64  // wall time of its commit, 0 if there is none or it is not known
}

// Waiting tells what is not delivered yet.
func (o *Outbox) Waiting() (Waiting, error) {
	var b Waiting
	err := o.s.view(func(tx *bolt.Tx) error {
		st, err := readState(tx)
		if err != nil {
			return o.s.damage("state", err)
		}
		first := max(o.delivered()+1, st.Outbox.First)
		b = Waiting{Records: o.waiting(st), OldestSeq: first}
		return o.s.eachOutbox(tx, first, st.Outbox.Next, func(r StoredRecord) bool {
			b.OldestMS = r.AtMS
			return false
		})
	})
	return b, err
}

func (o *Outbox) waiting(st *state) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := max(o.mark+1, st.Outbox.First)
	n := int64(st.Outbox.Next - min(first, st.Outbox.Next))
	for _, a := range o.ahead {
		n -= int64(a.To - min(max(a.After, first-1), a.To))
	}
	return n
}

func (o *Outbox) delivered() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mark
}

// raise moves the mark past records that were dropped.
func (o *Outbox) raise(seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mark = max(o.mark, seq)
	o.settle()
}
