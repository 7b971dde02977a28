package gateway

import (
	"context"
	"errors"
	"fmt"

	"tidemark/buffer"
	"tidemark/history"
)

// Journal is what a store holds for those who look into it.
type Journal interface {
	history.Journal
	// Evidence calls fn with what is kept to be looked up later, the oldest first,
	// until fn returns an error, which Evidence returns.
	Evidence(ctx context.Context, fn func(buffer.StoredEvidence) error) error
}

// storedJournal is a store's journal as history reads it.
type storedJournal struct{ store *buffer.Store }

// Info implements history.Journal.
func (j storedJournal) Info(context.Context) (*history.Info, error) {
	led, err := decodeLedger(j.store.Meta(metaLedger))
	if err != nil {
		return nil, unreadable("the store's ledger", err)
	}
	st, err := j.store.Stats()
	if err != nil {
		return nil, err
	}
	held, gaps := j.store.Held()
	return &history.Info{
		Gateway: led.Gateway, Generation: led.Generation, First: held.First, Next: held.Next, Readings: st.Readings,
		OldestMS: st.OldestMS, LatestMS: st.LatestMS, Gaps: gaps, Config: j.store.Meta(metaConfig),
	}, nil
}

// Headers implements history.Journal.
func (j storedJournal) Headers(ctx context.Context, from, to uint64, fn func(buffer.Block) error) error {
	return upTo(ctx, to, fn, func(fn func(buffer.Block) error) error { return j.store.Headers(from, fn) })
}

// Blocks implements history.Journal.
func (j storedJournal) Blocks(ctx context.Context, from, to uint64, fn func(buffer.Block) error) error {
	return upTo(ctx, to, fn, func(fn func(buffer.Block) error) error { return j.store.Blocks(from, fn) })
}

// Checkpoint implements history.Journal.
func (j storedJournal) Checkpoint(_ context.Context, before uint64) ([]byte, uint64, error) {
	return j.store.Checkpoint(before)
}

// Evidence implements Journal.
func (j storedJournal) Evidence(ctx context.Context, fn func(buffer.StoredEvidence) error) error {
	return j.store.Evidence(0, func(e buffer.StoredEvidence) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(e)
	})
}

// upTo ends a walk before block to, and with ctx.
func upTo(ctx context.Context, to uint64, fn func(buffer.Block) error, walk func(func(buffer.Block) error) error) error {
	err := walk(func(b buffer.Block) error {
		if b.Seq >= to {
			return errEnough
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(b)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// StoredJournal is the journal of a store at rest.
type StoredJournal struct{ storedJournal }

// OpenJournal opens a store that no gateway is using, to look into its journal. It
// changes nothing.
func OpenJournal(path string) (*StoredJournal, error) {
	s, err := buffer.OpenToRead(path)
	if err != nil {
		return nil, &storageError{err: err}
	}
	return &StoredJournal{storedJournal{s}}, nil
}

// Close lets go of the store.
func (j *StoredJournal) Close() error {
	if err := j.store.Close(); err != nil {
		return &storageError{err: fmt.Errorf("cannot close the store: %w", err)}
	}
	return nil
}
