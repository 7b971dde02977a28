package history

import (
	"context"
	"errors"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/windowing"
)

// Journal is what is read here: the blocks of a running gateway or of a store at
// rest. Its methods may be called from several goroutines, and end early with
// ctx's error.
type Journal interface {
	// Info says what the journal holds now.
	Info(ctx context.Context) (*Info, error)
	// Headers calls fn with the blocks [from, to), without their data, in order,
	// until fn returns an error, which Headers returns. What is no longer held is
	// left out.
	Headers(ctx context.Context, from, to uint64, fn func(buffer.Block) error) error
	// Blocks is Headers with the data.
	Blocks(ctx context.Context, from, to uint64, fn func(buffer.Block) error) error
	// Checkpoint returns an engine's snapshot that holds after a block below before,
	// and that block; nil and 0 if there is none.
	Checkpoint(ctx context.Context, before uint64) (snapshot []byte, seq uint64, err error)
}

// Info is about a journal.
type Info struct {
	Gateway    string       `json:"gateway"`    // empty if the store does not say
	Generation uint64       `json:"generation"` // 0 until the clock was trusted once
	First      uint64       `json:"first"`      // the oldest block that is held
	Next       uint64       `json:"next"`       // the block that will come next
	Readings   int64        `json:"readings"`
	OldestMS   int64        `json:"oldest_ms"` // wall time of the oldest block's commit; 0 if not known
	LatestMS   int64        `json:"latest_ms"` // of the newest
	Gaps       []buffer.Gap `json:"gaps"`      // blocks that are lost
	Config     []byte       `json:"config"`    // the engine's configuration in force, in its own form
}

// Complete reports whether nothing was ever dropped.
func (i *Info) Complete() bool { return i.First <= 1 && len(i.Gaps) == 0 }

// ErrEmpty is the answer about a journal in which nothing has been committed yet.
var ErrEmpty = errors.New("the journal is empty: nothing has been committed yet")

// engineConfig reads the configuration in force.
func (i *Info) engineConfig() (*windowing.Config, error) {
	if len(i.Config) == 0 {
		return nil, ErrEmpty
	}
	return windowing.DecodeConfig(i.Config)
}

// decode reads a block's batch.
func decode(b *buffer.Block) (*reading.Batch, error) { return reading.DecodeBatch(b.Data) }
