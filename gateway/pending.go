package gateway

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"tidemark/buffer"
	"tidemark/reading"
)

// resolver judges pending readings again once the gateway's clock is trusted.
// They are not copied anywhere: they stand in the journal, and the ledger knows
// the first block that may hold one. A block's pending readings are decided
// together, in the same transaction that moves that mark.
type resolver struct {
	active bool
	to     uint64          // last block that may hold pending readings of this round
	inputs map[string]bool // that are catching up
}

// resolveChunk is how many pending readings are judged again in one batch.
const resolveChunk = 2000

// saw notes a pending reading on its way into block seq.
func (r *resolver) saw(rd *reading.Reading, seq uint64, l *ledger) {
	if rd.Stamp.Disposition == reading.Pending && l.PendingFrom == 0 {
		l.PendingFrom = seq
	}
}

// pendingExist reports whether readings wait for a second verdict.
func (l *ledger) pendingExist() bool { return l.PendingFrom != 0 }

var errEnough = errors.New("enough")

// resolvePending adds a chunk of pending readings to the batch if the clock is
// trusted. Their inputs catch up meanwhile (SEMANTICS G4), so that what waited
// is windowed and not late.
func (p *pipeline) resolvePending() error {
	if !p.ledger.pendingExist() || p.ledger.Generation == 0 || !p.clk.Trusted() || !p.empty() {
		return nil
	}
	if !p.resolve.active {
		p.resolve = resolver{active: true, to: p.seq, inputs: map[string]bool{}}
		p.log.Info().Uint64("from_block", p.ledger.PendingFrom).Uint64("to_block", p.seq).
			Msg("the clock is trusted: pending readings are judged again")
	}
	waiting, next, err := p.pendingChunk()
	if err != nil {
		return err
	}
	p.since = p.now()
	p.judgeAgain(waiting)
	p.ledger.PendingFrom = next
	if next == 0 || next > p.resolve.to {
		p.endResolve()
	}
	p.stalled = true // commit at once: whoever waited has waited long enough
	return nil
}

// pendingChunk reads whole blocks until it has enough pending readings. next is
// the block to go on with, 0 if there is none.
func (p *pipeline) pendingChunk() (waiting []reading.Reading, next uint64, err error) {
	err = p.store.Blocks(p.ledger.PendingFrom, func(b buffer.Block) error {
		if len(waiting) >= resolveChunk {
			next = b.Seq
			return errEnough
		}
		batch, err := reading.DecodeBatch(b.Data)
		if err != nil {
			return &storageError{err: err}
		}
		for _, r := range batch.Readings {
			if r.Stamp.Disposition == reading.Pending {
				waiting = append(waiting, r)
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	slices.SortStableFunc(waiting, func(a, b reading.Reading) int { return cmp.Compare(a.Source.NS, b.Source.NS) })
	return waiting, next, err
}

// judgeAgain puts readings with their second verdict into the batch.
func (p *pipeline) judgeAgain(waiting []reading.Reading) {
	for _, r := range waiting {
		input := r.Tag.Value().Input
		if !p.resolve.inputs[input] {
			p.resolve.inputs[input] = true
			p.mark(reading.MarkCatchUpBegin, input)
		}
		r.Delivery |= reading.Rejudged
		p.clk.JudgeReading(&r, p.policies[input])
		p.batch.Readings = append(p.batch.Readings, r)
	}
}

// endResolve ends the round: its inputs have caught up.
func (p *pipeline) endResolve() {
	for _, input := range slices.Sorted(maps.Keys(p.resolve.inputs)) {
		p.mark(reading.MarkCatchUpEnd, input)
	}
	p.resolve = resolver{}
}

// mark puts a mark about an input behind the batch's readings so far.
func (p *pipeline) mark(kind reading.MarkKind, input string) {
	p.batch.Marks = append(p.batch.Marks, reading.Mark{
		Kind: kind, At: len(p.batch.Readings), Input: input, TimeMS: reading.NoTime,
	})
}
