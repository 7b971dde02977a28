package gateway

import (
	"errors"
	"fmt"
	"slices"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/windowing"
)

// Restepped is what stepping a store's journal again gave: law 2 says that every
// block leads to what was committed with it, from wherever one begins.
type Restepped struct {
	From        uint64   `json:"from"` // the first block stepped, 0 if none was
	Blocks      uint64   `json:"blocks"`
	Readings    int64    `json:"readings"`
	Emissions   int64    `json:"emissions"`
	Checkpoints int      `json:"checkpoints"`           // from which the rest was stepped as well
	Differ      []uint64 `json:"blocks_differ"`         // whose emissions are not those committed; at most differMax
	DifferCount int      `json:"blocks_differ_count"`   // all of them
	Unreachable string   `json:"unreachable,omitempty"` // why no block can be stepped
}

// differMax bounds the list of blocks that differ.
const differMax = 100

// OK reports whether the journal gave what was committed with it.
func (r *Restepped) OK() bool { return r.DifferCount == 0 && r.Unreachable == "" }

// Restep steps the whole journal of the store in the file path again, from the
// first block if it is held and else from the older checkpoint on, and compares
// what each block gives with the digest that was committed with it. From each
// further checkpoint the rest is stepped beside it. The store must not be in use;
// nothing in it is changed. progress is told how many blocks are done, and ends the
// work with an error, which is returned; another says that the store cannot be read.
func Restep(path string, progress func(step string, done, total int64) error) (*Restepped, error) {
	store, err := buffer.OpenToRead(path)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	r := &restepper{found: &Restepped{Differ: []uint64{}}}
	if err := r.begin(store); err != nil {
		return nil, err
	}
	if len(r.engines) == 0 {
		r.found.Unreachable = "the journal no longer begins at its first block, and no whole checkpoint holds before the first that is there"
		return r.found, nil
	}
	held, _ := store.Held()
	first := r.engines[0].after + 1
	return r.found, store.Blocks(first, func(b buffer.Block) error {
		return errors.Join(r.step(&b), progress("stepping", int64(b.Seq-first), int64(held.Next-first)))
	})
}

// restepper steps a journal again.
type restepper struct {
	engines []resumed // the first steps every block, the others from their checkpoint on
	found   *Restepped
}

// resumed is an engine as it was after a block.
type resumed struct {
	after  uint64
	engine *windowing.Engine
}

// begin restores every engine that the store holds, the earliest first.
func (r *restepper) begin(store *buffer.Store) error {
	held, gaps := store.Held()
	for before := held.Next; ; {
		snapshot, seq, err := store.Checkpoint(before)
		if err != nil {
			return err
		}
		if snapshot == nil {
			break
		}
		e, err := restoreEngine(snapshot)
		if err != nil {
			return fmt.Errorf("checkpoint after block %d: %w", seq, err)
		}
		r.engines = append(r.engines, resumed{seq, e})
		r.found.Checkpoints++
		before = seq
	}
	if held.First == 1 && len(gaps) == 0 {
		e, err := restoreEngine(nil)
		if err != nil {
			return err
		}
		r.engines = append(r.engines, resumed{0, e})
	}
	slices.Reverse(r.engines)
	return nil
}

// step steps one block on every engine that has come to it and compares.
func (r *restepper) step(b *buffer.Block) error {
	f := r.found
	same := true
	for i, e := range r.engines {
		if b.Seq <= e.after {
			continue
		}
		batch, err := reading.DecodeBatch(b.Data)
		if err != nil {
			return fmt.Errorf("journal block %d cannot be read: %w", b.Seq, err)
		}
		out, err := safeStep(e.engine, batch)
		if err != nil {
			return fmt.Errorf("journal block %d: %w", b.Seq, err)
		}
		same = same && out.Digest() == b.Digest && len(batch.Readings) == b.Readings
		if i == 0 {
			f.Blocks++
			f.Readings += int64(len(batch.Readings))
			f.Emissions += int64(len(out.Emissions))
		}
	}
	if f.From == 0 {
		f.From = b.Seq
	}
	if !same {
		f.DifferCount++
		if len(f.Differ) < differMax {
			f.Differ = append(f.Differ, b.Seq)
		}
	}
	return nil
}
