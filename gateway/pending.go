package gateway

import (
	"cmp"
	"errors"
	"slices"

	"tidemark/buffer"
	"tidemark/reading"
)

// resolver judges pending readings again once the gateway's clock is trusted.
// They are not copied anywhere: they stand in the journal, and the ledger knows
// the first block that may hold one. A block's pending readings are decided
// together, in the same transaction that moves that mark, beside whatever live
// readings the batch holds.
type resolver struct {
	active  bool
	inBatch bool // this batch has its share
}

const (
	resolveChunk  = 2000 // pending readings that are judged again in one batch
	resolveBlocks = 500  // journal blocks that are looked through for them
)

// saw notes a pending or quarantined reading on its way into block seq.
func (l *ledger) saw(r *reading.Reading, seq uint64) {
	switch {
	case r.Stamp.Disposition == reading.Pending && l.PendingFrom == 0:
		l.PendingFrom = seq
	case r.Stamp.Disposition == reading.Quarantine && l.QuarantineFrom == 0:
		l.QuarantineFrom = seq
	}
}

// resolvePending adds a share of the pending readings to the batch while the
// clock is trusted. Their inputs catch up meanwhile (SEMANTICS G4), from before
// the first live reading that the trusted clock accepts, so that what waited is
// windowed and not late.
func (p *pipeline) resolvePending() error {
	waits := p.ledger.PendingFrom != 0 || p.pending > 0
	if p.ledger.Generation == 0 || p.resolve.inBatch || !p.clk.Trusted() || !waits && !p.resolve.active {
		return nil
	}
	if !p.resolve.active {
		p.beginResolve()
	}
	if p.ledger.PendingFrom != 0 {
		waiting, next, err := p.pendingChunk()
		if err != nil {
			return err
		}
		if p.empty() {
			p.since = p.now()
		}
		p.judgeAgain(waiting, 0)
		p.ledger.PendingFrom = next
		p.resolve.inBatch = true
		p.stalled = true // commit soon: whoever waited has waited long enough
	}
	if p.ledger.PendingFrom == 0 && p.pending == 0 {
		p.endResolve()
	}
	return nil
}

func (p *pipeline) beginResolve() {
	p.resolve.active = true
	p.log.Info().Uint64("from_block", p.ledger.PendingFrom).Msg("the clock is trusted: pending readings are judged again")
	for _, input := range p.inputs {
		if p.ledger.Counts.input(input).PendingNow() > 0 || p.pending > 0 {
			p.catchUp(input, byPending, true)
		}
	}
}

// endResolve ends the round: its inputs have caught up.
func (p *pipeline) endResolve() {
	p.resolve.active = false
	for _, input := range p.inputs {
		p.catchUp(input, byPending, false)
	}
	p.log.Info().Msg("no reading is pending any more")
}

var errEnough = errors.New("enough")

// pendingChunk reads whole blocks until it has enough pending readings or has
// looked through enough blocks. next is the block to go on with, 0 if there is
// none.
func (p *pipeline) pendingChunk() (waiting []reading.Reading, next uint64, err error) {
	first := p.ledger.PendingFrom
	err = p.store.Blocks(first, func(b buffer.Block) error {
		if len(waiting) >= resolveChunk || b.Seq-first >= resolveBlocks {
			next = b.Seq
			return errEnough
		}
		batch, err := reading.DecodeBatch(b.Data)
		if err != nil {
			return unreadable("a journal block with pending readings", err)
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
	sortBySource(waiting)
	return waiting, next, err
}

// sortBySource puts readings into the order of their source times, as far as they
// have any.
func sortBySource(rs []reading.Reading) {
	slices.SortStableFunc(rs, func(a, b reading.Reading) int { return cmp.Compare(a.Source.NS, b.Source.NS) })
}

// judgeAgain puts readings with a new verdict into the batch, flagged as what else
// they are now. One that even a trusted clock cannot vouch for, since it arrived in an
// earlier boot whose clock nobody ever checked, will never be decided: it goes into
// quarantine, with the reason for which it waited, and one that was released stays
// there.
func (p *pipeline) judgeAgain(rs []reading.Reading, flags reading.Delivery) {
	for _, r := range rs {
		r.Delivery |= reading.Rejudged | flags
		p.clk.JudgeReading(&r, p.policies[r.Tag.Value().Input])
		if r.Stamp.Disposition == reading.Pending && (flags.Has(reading.Released) || p.clk.Trusted()) {
			r.Stamp.Disposition = reading.Quarantine
		}
		p.batch.Readings = append(p.batch.Readings, r)
	}
}
