package buffer

import (
	"maps"
	"math"
	"sync"
)

// Position is a place among the readings of the journal: before reading Index of
// block Block, from 0.
type Position struct {
	Block uint64 `json:"block"`
	Index int    `json:"index,omitempty"`
}

func (p Position) before(q Position) bool {
	return p.Block < q.Block || p.Block == q.Block && p.Index < q.Index
}

// rawCursor is how far an uplink that takes readings has come in the journal. The
// nil one belongs to an uplink that takes none.
type rawCursor struct {
	next  uint64 // the block to read; of the reading goroutine
	begun uint64 // the last block at Begin; likewise

	mu   sync.Mutex
	mark Position // everything before it is delivered
}

func (c *rawCursor) begin(st *state) {
	if c != nil {
		c.begun = st.Journal.Next - 1
	}
}

func (c *rawCursor) rewind() {
	if c != nil {
		c.next = c.delivered().Block
	}
}

func (c *rawCursor) delivered() Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mark
}

func (c *rawCursor) waits(st *state) bool { return c != nil && c.next < st.Journal.Next }

func (c *rawCursor) raise(p Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mark.before(p) {
		c.mark = p
	}
}

func (c *rawCursor) note(st *state, name string) {
	if c == nil {
		return
	}
	at := c.delivered()
	if old, known := st.Raw[name]; known && !old.before(at) {
		return
	}
	st.setRaw(name, at)
}

func (s *state) setRaw(name string, at Position) {
	s.Raw = maps.Clone(s.Raw)
	if s.Raw == nil {
		s.Raw = map[string]Position{}
	}
	s.Raw[name] = at
}

func (c *rawCursor) dirty(st *state, name string) bool {
	if c == nil {
		return false
	}
	old, known := st.Raw[name]
	return !known || old.before(c.delivered())
}

// NextBlock returns the next block of the journal for an uplink that takes
// readings (Options.Raw), the first of its readings that is not delivered, and
// whether it stood in the journal before Begin; false if there is none. Blocks
// that are no longer there are passed over: a Loss says which.
func (o *Outbox) NextBlock() (b Block, from int, waited, ok bool, err error) {
	c := o.raw
	if c == nil {
		return b, 0, false, false, nil
	}
	mark := c.delivered()
	c.next = max(c.next, mark.Block)
	part, err := o.s.readJournal(c.next, false, 1)
	if err != nil || len(part) == 0 {
		return b, 0, false, false, err
	}
	b = part[0]
	c.next = b.Seq + 1
	if b.Seq == mark.Block {
		from = mark.Index
	}
	return b, from, b.Seq <= c.begun, true, nil
}

// DeliveredReadings says that every reading before p has arrived. It is to
// NextBlock what Delivered is to Next.
func (o *Outbox) DeliveredReadings(p Position) {
	p.Block = min(p.Block, o.s.snapshot().Journal.Next)
	o.raw.raise(p)
}

// WaitingBlocks returns how many blocks hold readings that are not delivered.
func (o *Outbox) WaitingBlocks() int64 {
	if o.raw == nil {
		return 0
	}
	st := o.s.snapshot()
	return int64(st.Journal.Next - min(max(o.raw.delivered().Block, st.Journal.First), st.Journal.Next))
}

// unsent is the first block that an uplink has not delivered the readings of.
func (s *state) unsent() uint64 {
	first := uint64(math.MaxUint64)
	for _, at := range s.Raw {
		first = min(first, at.Block)
	}
	return first
}

// loseUnsent makes a loss of the blocks [first, to) for each uplink that had not
// delivered their readings.
func (w *writing) loseUnsent(to uint64) {
	for _, name := range w.s.o.Raw {
		at := w.st.Raw[name]
		if at.Block >= to {
			continue
		}
		from := max(at.Block, w.st.Journal.First)
		l := Loss{Kind: LossUnsent, Uplink: name, First: from, Next: to, MinMS: none, MaxMS: none}
		b := w.tx.Bucket(bucketJournal)
		for seq := w.st.heldFrom(from); seq < to; seq = w.st.heldFrom(seq + 1) {
			if h, _, err := readBlock(b.Cursor(), seq, true); err != nil {
				l.Damaged++
			} else {
				l.add(h)
			}
		}
		w.st.lose(l)
		w.st.setRaw(name, Position{Block: to})
	}
}
