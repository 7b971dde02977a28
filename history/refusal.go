package history

import (
	"context"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/windowing"
)

// Refusals are those of the features that an engine which goes on with the journal
// would not run, since their versions have stood for other definitions. What the
// newest checkpoint knows of definitions, and the configurations that came after it,
// are looked at; no reading is.
func Refusals(ctx context.Context, j Journal, features []windowing.Feature) ([]windowing.Fault, error) {
	info, err := j.Info(ctx)
	if err != nil {
		return nil, err
	}
	snapshot, after, err := j.Checkpoint(ctx, info.Next)
	if err != nil {
		return nil, err
	}
	e, err := windowing.New(windowing.Config{FloorMS: reading.NoTime})
	if snapshot != nil {
		e, err = windowing.Restore(snapshot)
	}
	if err != nil {
		return nil, err
	}
	var configured []uint64
	err = j.Headers(ctx, max(after+1, info.First), info.Next, func(b buffer.Block) error {
		if configures(b.Index) {
			configured = append(configured, b.Seq)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, seq := range configured {
		err := j.Blocks(ctx, seq, seq+1, func(blk buffer.Block) error {
			b, err := decode(&blk)
			if err == nil {
				e.Step(&reading.Batch{GatewayMS: reading.NoTime, Config: b.Config})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var out []windowing.Fault
	for i := range features {
		if why := e.Refuses(&features[i]); why != "" {
			out = append(out, windowing.Fault{Feature: features[i].ID, Reason: why})
		}
	}
	return out, nil
}
