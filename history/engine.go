package history

import (
	"context"
	"errors"
	"fmt"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/windowing"
)

// fromStart is how many readings are stepped from the journal's beginning rather
// than starting an engine in the middle: a few seconds' worth.
const fromStart = 3_000_000

// engineBefore returns a private engine that has stepped everything before block
// seq, or as much of it as is held and worth it, and the block to go on with,
// which is not after seq. before is how many readings the journal holds below seq,
// and warmMS how much of the time before seq brings an engine that starts with
// nothing to know the partitions and their watermarks. exact says that the engine
// is the gateway's own; else the digests of the blocks tell from where on it says
// the same.
func engineBefore(ctx context.Context, j Journal, info *Info, seq uint64, before int64, warmMS int64) (e *windowing.Engine, from uint64, exact bool, err error) {
	snapshot, at, err := j.Checkpoint(ctx, seq)
	switch {
	case err != nil:
		return nil, 0, false, err
	case snapshot != nil:
		if e, err = windowing.Restore(snapshot); err != nil {
			return nil, 0, false, fmt.Errorf("the checkpoint after block %d: %w", at, err)
		}
		return e, at + 1, true, nil
	case info.Complete() && before <= fromStart:
		e, err = windowing.New(windowing.Config{FloorMS: reading.NoTime})
		return e, info.First, true, err
	}
	if from, err = warmStart(ctx, j, info, seq, warmMS); err != nil {
		return nil, 0, false, err
	}
	config, _, err := configAt(ctx, j, info, from)
	if err != nil {
		return nil, 0, false, err
	}
	c, err := windowing.DecodeConfig(config)
	if err != nil {
		return nil, 0, false, err
	}
	e, err = windowing.New(*c)
	return e, from, false, err
}

// warmStart is the first block that was committed at most warmMS before block seq.
func warmStart(ctx context.Context, j Journal, info *Info, seq uint64, warmMS int64) (from uint64, err error) {
	var at int64
	if err := j.Headers(ctx, seq, seq+1, func(b buffer.Block) error { at = b.AtMS; return nil }); err != nil {
		return 0, err
	}
	from = seq
	err = j.Headers(ctx, info.First, seq, func(b buffer.Block) error {
		if b.AtMS < at-warmMS {
			return nil
		}
		from = b.Seq
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return from, err
}
