package gateway

import (
	"context"
	"errors"

	"tidemark/buffer"
	"tidemark/history"
	"tidemark/reading"
)

// HeldOldest is since when readings wait.
type HeldOldest struct {
	Pending    string `json:"pending,omitempty"`    // arrival of the oldest that waits for the gateway's clock; empty if none does
	Quarantine string `json:"quarantine,omitempty"` // of the oldest that is in quarantine, or was released from among others that are
}

// oldest remembers the arrival of the oldest reading that is kept out, by the block
// with which the search for it began, so that one that waits for days is looked for
// once.
type oldest struct {
	from uint64
	at   string
}

// oldestBlocks bounds the search: the ledger's marks stand at or before the block,
// a release may have emptied those that follow.
const oldestBlocks = 100

// find looks from a block on, which is 0 if there is none.
func (o *oldest) find(store *buffer.Store, from uint64, kept reading.Disposition) (string, error) {
	if from == o.from {
		return o.at, nil
	}
	at := ""
	err := store.Blocks(from, func(b buffer.Block) error {
		batch, err := reading.DecodeBatch(b.Data)
		if err != nil {
			return unreadable("a journal block", err)
		}
		for i := range batch.Readings {
			if r := &batch.Readings[i]; r.Stamp.Disposition == kept {
				at = history.Time(r.IngestNS)
				return errEnough
			}
		}
		if b.Seq >= from+oldestBlocks {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	o.from, o.at = from, at
	return at, nil
}

// lookAtHeld tells since when readings wait.
func (s *session) lookAtHeld(ctx context.Context, o *[2]oldest) (h HeldOldest, err error) {
	var pending, quarantine uint64
	if err = s.pipe.ask(ctx, func() { pending, quarantine = s.pipe.ledger.PendingFrom, s.pipe.ledger.QuarantineFrom }); err != nil {
		return h, err
	}
	if h.Pending, err = o[0].find(s.store, pending, reading.Pending); err != nil {
		return h, err
	}
	h.Quarantine, err = o[1].find(s.store, quarantine, reading.Quarantine)
	return h, err
}
