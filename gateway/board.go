package gateway

import (
	"slices"
	"sync"

	"tidemark/buffer"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing"
)

// board knows the last reading of every series, for `tidemark tags`: as the engine
// took it, which is a moment before it is on disk. It outlives a reload: an OPC UA
// server that keeps the subscription does not say again what has not changed.
type board struct {
	mu    sync.Mutex
	rows  reading.ByTag[*posted] // under mu
	extra uint64                 // under mu; readings of series that had no room
}

// posted is what the board shows of a series.
type posted struct {
	last    reading.Reading
	verdict history.Verdict
	count   uint64 // since the start
}

// boardMax bounds the series that are shown; each takes some 300 bytes.
const boardMax = 50_000

func newBoard() *board { return &board{} }

// note takes what became of a batch's readings.
func (b *board) note(rs []reading.Reading, outcomes []windowing.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range rs {
		if row := b.row(rs[i].Tag); row != nil {
			row.last, row.verdict = rs[i], history.VerdictOf(outcomes[i])
			row.count++
		} else {
			b.extra++
		}
	}
}

// row returns the series' row, nil if there is no room for another. The lock is
// held.
func (b *board) row(tag reading.Tag) *posted {
	row := b.rows.Get(tag)
	if row == nil && b.rows.Len() < boardMax {
		row = &posted{}
		b.rows.Set(tag, row)
	}
	return row
}

// boardBlocks is how many of the last blocks a start looks through, so that a
// restart does not empty the board.
const boardBlocks = 64

// begin makes the board ready for a session: the series of other inputs go.
func (b *board) begin(inputs []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for tag := range b.rows.All() {
		if !slices.Contains(inputs, tag.Value().Input) {
			b.rows.Delete(tag)
		}
	}
}

// restore fills the board from the journal's last blocks up to seq. What became of
// a reading there is not known beyond the clock's verdict.
func (b *board) restore(store *buffer.Store, seq uint64) error {
	return store.Blocks(seq-min(seq, boardBlocks)+1, func(blk buffer.Block) error {
		batch, err := reading.DecodeBatch(blk.Data)
		if err != nil {
			return unreadable("a journal block", err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for i := range batch.Readings {
			r := &batch.Readings[i]
			if row := b.row(r.Tag); row != nil && row.count == 0 {
				row.last, row.verdict = *r, history.Judged(r)
			}
		}
		return nil
	})
}

// each shows fn every row, which changes once fn returns, and returns how many
// readings had no room. The engine waits meanwhile.
func (b *board) each(fn func(*posted)) (extra uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range b.rows.All() {
		fn(row)
	}
	return b.extra
}
