package gateway

import (
	"bytes"
	"errors"
	"fmt"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/windowing"
)

// storageError is a fault of the store that ends the session; what is in memory
// is dropped and the store opened again.
type storageError struct {
	err     error
	damaged bool // what the store holds cannot be understood; opening it again will not help
}

func (e *storageError) Error() string { return e.err.Error() }
func (e *storageError) Unwrap() error { return e.err }

// unreadable is the error of stored data that its checksum vouches for and that
// cannot be understood all the same. What a later version wrote is no damage.
func unreadable(what string, err error) error {
	return &storageError{
		err:     fmt.Errorf("%s cannot be read: %w", what, err),
		damaged: !errors.Is(err, reading.ErrNewer) && !errors.Is(err, windowing.ErrNewer),
	}
}

// IsDamage reports whether err says that a store is damaged.
func IsDamage(err error) bool { return isDamage(err) }

// isDamage reports whether only another store can help.
func isDamage(err error) bool {
	var se *storageError
	var de *buffer.DamageError
	return errors.As(err, &de) || errors.As(err, &se) && se.damaged
}

// recovered is what a store holds after its journal was stepped again.
type recovered struct {
	engine    *windowing.Engine
	ledger    *ledger
	seq       uint64   // last block
	cost      int      // of stepping since the checkpoint
	readings  int      // stepped since then
	lost      uint64   // blocks on the way that are damaged or missing
	mismatch  uint64   // first block that is lost or whose emissions differ from the committed ones, 0 if none
	different [][]byte // emissions of the blocks from there on
}

// recoverEngine brings the engine back to the last committed block: the newest
// good checkpoint, then every block after it. The emissions of these blocks were
// committed with them and are dropped; the digest proves that they are the same
// (law 2). A block that cannot be read is given up: what comes after it is then
// another story, as after a mismatch.
func recoverEngine(store *buffer.Store) (*recovered, error) {
	led, err := decodeLedger(store.Meta(metaLedger))
	if err != nil {
		return nil, unreadable("the store's ledger", err)
	}
	snapshot, from, last, err := store.Recover()
	if err != nil {
		return nil, &storageError{err: err}
	}
	r := &recovered{ledger: led, seq: last}
	if r.engine, err = restoreEngine(snapshot); isDamage(err) {
		// Whole, but not to be understood: the older one, if there is one.
		if older, seq, cerr := store.Checkpoint(from); cerr == nil && older != nil {
			from = seq
			r.engine, err = restoreEngine(older)
		}
	}
	if err != nil {
		return nil, err
	}
	_, gaps := store.Held()
	for _, g := range gaps {
		if g.Next > from+1 {
			r.lose(max(g.First, from+1), g.Next)
		}
	}
	return r, r.stepOn(store, from+1)
}

// stepOn steps the blocks from next on, and gives up those that are damaged.
func (r *recovered) stepOn(store *buffer.Store, next uint64) error {
	for {
		err := store.Blocks(next, func(b buffer.Block) error { return r.step(b) })
		var damage *buffer.DamageError
		if errors.As(err, &damage) && damage.Block != 0 {
			r.lose(damage.Block, damage.Block+1)
			next = damage.Block + 1
			if err = store.LoseBlock(damage.Block); err == nil {
				continue
			}
		}
		var se *storageError
		if err != nil && !errors.As(err, &se) {
			err = &storageError{err: err}
		}
		return err
	}
}

// lose notes that the blocks [first, next) are not there.
func (r *recovered) lose(first, next uint64) {
	r.lost += next - first
	if r.mismatch == 0 || first < r.mismatch {
		r.mismatch = first
	}
}

// restoreEngine returns the engine of a checkpoint, and one without features if
// there is none: the journal's first block brings the configuration.
func restoreEngine(snapshot []byte) (*windowing.Engine, error) {
	if snapshot == nil {
		return windowing.New(windowing.Config{FloorMS: reading.NoTime})
	}
	e, err := windowing.Restore(snapshot)
	if err != nil {
		return nil, unreadable("the store's checkpoint", err)
	}
	return e, nil
}

// step steps one committed block again.
func (r *recovered) step(b buffer.Block) error {
	batch, err := reading.DecodeBatch(b.Data)
	if err != nil {
		return unreadable(fmt.Sprintf("journal block %d", b.Seq), err)
	}
	out := r.engine.Step(batch)
	if digest := out.Digest(); r.mismatch == 0 && !bytes.Equal(digest[:], b.Digest[:]) {
		r.mismatch = b.Seq
	}
	if r.mismatch != 0 && b.Seq >= r.mismatch {
		for i := range out.Emissions {
			r.different = append(r.different, windowing.AppendEmission(nil, &out.Emissions[i]))
		}
	}
	r.cost += len(batch.Readings) + blockCost
	r.readings += len(batch.Readings)
	return nil
}
