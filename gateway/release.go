package gateway

import (
	"errors"
	"fmt"
	"slices"

	"tidemark/buffer"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/uplink"
	"tidemark/windowing"
)

// Selection names quarantined readings; an empty field takes in all.
type Selection struct {
	Input  string `json:"input,omitempty"`
	Device string `json:"device,omitempty"` // or the asset, where an input has no devices
	Reason string `json:"reason,omitempty"`
}

func (s Selection) has(k history.KeptKey) bool {
	return (s.Input == "" || s.Input == k.Input) && (s.Device == "" || s.Device == k.Sender) &&
		(s.Reason == "" || s.Reason == k.Reason.String())
}

// covers reports whether all that o has is in s.
func (s Selection) covers(o Selection) bool {
	return (s.Input == "" || s.Input == o.Input) && (s.Device == "" || s.Device == o.Device) && (s.Reason == "" || s.Reason == o.Reason)
}

// Release is a release at work, or the last one. Its place stands in the ledger, in
// one transaction with what was judged again: a crash neither loses one nor
// releases anything twice.
type Release struct {
	Selection
	Next uint64 `json:"next_block"` // the first block that is still to be looked at
	To   uint64 `json:"last_block"` // the journal's last block when the release began

	Accepted    uint64 `json:"accepted"`
	Duplicate   uint64 `json:"duplicate"`
	Quarantined uint64 `json:"quarantined"` // once more
}

func (r *Release) done() bool { return r.Next > r.To }

// released says that a selection has left the quarantine of the blocks up to To.
// What was quarantined again stands in a later block.
type released struct {
	Selection
	To uint64 `json:"to"`
}

// maxReleased bounds what is remembered of releases of blocks that are still there.
const maxReleased = 200

var (
	errReleasing    = errors.New("a release is at work; wait for its end")
	errManyReleases = errors.New("too many releases of single groups; release an input, or all, at once")
)

// releases is what has left the quarantine, and what is on its way.
type releases struct {
	// QuarantineFrom is the first block that may hold quarantined readings; 0 if
	// none ever did.
	QuarantineFrom uint64     `json:"quarantine_from,omitempty"`
	Release        *Release   `json:"release,omitempty"`
	Released       []released `json:"released,omitempty"`
}

// held reports whether the readings of a group in a block are still there.
func (l *releases) held(k history.KeptKey, block uint64) bool {
	if r := l.Release; r != nil && block < r.Next && block <= r.To && r.has(k) {
		return false
	}
	return !slices.ContainsFunc(l.Released, func(r released) bool { return block <= r.To && r.has(k) })
}

// clone returns a copy for another goroutine.
func (l *releases) clone() releases {
	c := releases{QuarantineFrom: l.QuarantineFrom, Released: slices.Clone(l.Released)}
	if l.Release != nil {
		r := *l.Release
		c.Release = &r
	}
	return c
}

// beginRelease lets everything that sel names and that is on disk be judged again.
func (p *pipeline) beginRelease(sel Selection) error {
	l := p.ledger
	switch {
	case l.Release != nil && !l.Release.done():
		return errReleasing
	case l.QuarantineFrom == 0:
		return errors.New("nothing is in quarantine")
	case l.Generation == 0 || !p.clk.Trusted():
		return fmt.Errorf("readings cannot be judged again while the clock is not trusted: %s", p.clk.Advice())
	}
	p.forgetReleased()
	if len(l.Released) >= maxReleased {
		return errManyReleases
	}
	l.Release = &Release{Selection: sel, Next: l.QuarantineFrom, To: p.seq}
	p.log.Info().Str("input", sel.Input).Str("device", sel.Device).Str("reason", sel.Reason).Uint64("from_block", l.QuarantineFrom).
		Uint64("to_block", p.seq).Msg("quarantined readings are released: they are judged again as historical")
	p.note(p.event(uplink.EventRelease).Str("input", sel.Input).Str("device", sel.Device).Str("reason", sel.Reason).Uint("last_block", p.seq))
	p.since = p.now()
	return nil
}

// forgetReleased drops what concerns blocks that retention has taken away.
func (p *pipeline) forgetReleased() {
	st, err := p.store.Stats()
	if err != nil {
		return // the next commit will say so
	}
	p.ledger.Released = slices.DeleteFunc(p.ledger.Released, func(r released) bool { return r.To < st.Journal.First })
}

// releasing reports whether a share of a release can go into the batch now: one
// share at a time, and pending readings first.
func (p *pipeline) releasing() bool {
	r := p.ledger.Release
	return r != nil && !r.done() && !p.resolve.inBatch && !p.resolve.active && p.clk.Trusted()
}

// release judges a share of the released readings again and puts it into the
// batch. They are historical: they move no watermark and are never too old.
func (p *pipeline) release() error {
	if !p.releasing() {
		return nil
	}
	r := p.ledger.Release
	found, next, err := p.releaseChunk(r)
	if err != nil {
		return err
	}
	if p.empty() {
		p.since = p.now()
	}
	p.judgeAgain(found, reading.Historical|reading.Released)
	if r.Next = next; r.done() {
		p.endRelease(r)
	}
	p.resolve.inBatch = len(found) > 0 || r.done()
	p.stalled = p.stalled || p.resolve.inBatch
	return nil
}

// endRelease remembers what has left.
func (p *pipeline) endRelease(r *Release) {
	l := p.ledger
	l.Released = slices.DeleteFunc(l.Released, func(o released) bool { return o.To <= r.To && r.covers(o.Selection) })
	l.Released = append(l.Released, released{r.Selection, r.To})
	if r.Selection == (Selection{}) {
		l.QuarantineFrom = r.To + 1
	}
	p.dirty = true
}

// releaseChunk reads whole blocks until it has enough readings or has looked at
// enough blocks. next is the block to go on with.
func (p *pipeline) releaseChunk(r *Release) (found []reading.Reading, next uint64, err error) {
	next = r.To + 1
	err = p.store.Headers(r.Next, func(b buffer.Block) error {
		if b.Seq > r.To || len(found) >= resolveChunk || b.Seq-r.Next >= resolveBlocks {
			next = min(next, b.Seq)
			return errEnough
		}
		sums, inside, err := history.KeptIn(b.Index)
		if err != nil {
			return unreadable(fmt.Sprintf("journal block %d", b.Seq), err)
		}
		if !inside && !slices.ContainsFunc(sums, func(k history.Kept) bool { return r.has(k.KeptKey) && p.ledger.held(k.KeptKey, b.Seq) }) {
			return nil
		}
		return eachKept(p.store, b.Seq, func(q *reading.Reading, k history.KeptKey) {
			if r.has(k) && p.ledger.held(k, b.Seq) {
				found = append(found, *q)
			}
		})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	sortBySource(found)
	return found, next, err
}

// eachKept calls fn with the quarantined readings of a block.
func eachKept(store *buffer.Store, seq uint64, fn func(r *reading.Reading, k history.KeptKey)) error {
	err := store.Blocks(seq, func(b buffer.Block) error {
		if b.Seq != seq {
			return errEnough // retention was quicker
		}
		batch, err := reading.DecodeBatch(b.Data)
		if err != nil {
			return unreadable(fmt.Sprintf("journal block %d", seq), err)
		}
		for i := range batch.Readings {
			if r := &batch.Readings[i]; r.Stamp.Disposition == reading.Quarantine {
				fn(r, history.KeptKeyOf(r))
			}
		}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// count takes in what became of one released reading.
func (r *Release) count(o windowing.Outcome) {
	switch o {
	case windowing.OutcomeAccepted, windowing.OutcomeInitial:
		r.Accepted++
	case windowing.OutcomeDuplicate:
		r.Duplicate++
	default:
		r.Quarantined++
	}
}
