package gateway

import (
	"sync"

	"tidemark/buffer"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing"
)

// board knows the last reading of every series, for `tidemark tags`. The pipeline
// stages what a batch brings and posts it once that is on disk.
type board struct {
	mu    sync.Mutex
	rows  map[reading.Tag]*boardRow // under mu
	extra uint64                    // under mu; readings of series that had no room

	staged []*boardRow // the pipeline's
	over   uint64      // likewise
}

// boardRow is one series.
type boardRow struct {
	last    reading.Reading // under mu
	verdict history.Verdict // under mu
	count   uint64          // under mu; since the start

	next     reading.Reading // the pipeline's, with what follows
	nextSays history.Verdict
	more     uint64
	at       int // 1 + the place of next in the batch at hand
}

// boardMax bounds the series that are shown; each takes some 600 bytes.
const boardMax = 50_000

func newBoard() *board { return &board{rows: map[reading.Tag]*boardRow{}} }

// stage notes what became of a batch's readings.
func (b *board) stage(rs []reading.Reading, outcomes []windowing.Outcome) {
	for i := range rs {
		r := &rs[i]
		row := b.row(r.Tag)
		if row == nil {
			b.over++
			continue
		}
		if row.more == 0 {
			b.staged = append(b.staged, row)
		}
		row.at = i + 1
		row.more++
	}
	for _, row := range b.staged {
		if i := row.at - 1; i >= 0 {
			row.next, row.nextSays, row.at = rs[i], history.VerdictOf(outcomes[i]), 0
		}
	}
}

// row returns the series' row, nil if there is no room for another. Only the
// pipeline adds rows.
func (b *board) row(tag reading.Tag) *boardRow {
	row := b.rows[tag]
	if row == nil && len(b.rows) < boardMax {
		row = &boardRow{}
		b.mu.Lock()
		b.rows[tag] = row
		b.mu.Unlock()
	}
	return row
}

// post shows what was staged.
func (b *board) post() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range b.staged {
		row.last, row.verdict, row.count = row.next, row.nextSays, row.count+row.more
		row.next, row.more = reading.Reading{}, 0
	}
	b.staged, b.extra, b.over = b.staged[:0], b.extra+b.over, 0
}

// boardBlocks is how many of the last blocks a start looks through, so that a
// restart does not empty the board.
const boardBlocks = 64

// restore fills the board from the journal's last blocks up to seq. What became of
// a reading there is not known beyond the clock's verdict.
func (b *board) restore(store *buffer.Store, seq uint64) error {
	from := uint64(1)
	if seq > boardBlocks {
		from = seq - boardBlocks + 1
	}
	return store.Blocks(from, func(blk buffer.Block) error {
		batch, err := reading.DecodeBatch(blk.Data)
		if err != nil {
			return unreadable("a journal block", err)
		}
		for i := range batch.Readings {
			r := &batch.Readings[i]
			if row := b.row(r.Tag); row != nil {
				row.last, row.verdict = *r, history.Judged(r)
			}
		}
		return nil
	})
}

// posted is what the board shows of a series.
type posted struct {
	last    reading.Reading
	verdict history.Verdict
	count   uint64
}

// list copies the board out. Series that have been staged only are not on it yet.
func (b *board) list() (rows []posted, extra uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range b.rows {
		if row.verdict != "" {
			rows = append(rows, posted{row.last, row.verdict, row.count})
		}
	}
	return rows, b.extra
}
