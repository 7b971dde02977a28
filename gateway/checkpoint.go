package gateway

import (
	"errors"
	"fmt"
	"time"

	"tidemark/buffer"
)

// This file is what the pipeline writes beside its batches.

// Delivery cursors are written at most once a minute while nothing else is, the
// clock's anchors once an hour: a day at rest costs the flash less than 1 MB. The
// sources' clocks take about 100 bytes a device, so they ride along every few
// minutes and with each checkpoint.
const (
	saveCursors = time.Minute
	saveClock   = time.Hour
	saveSources = 5 * time.Minute
)

// saveIdle writes what moved while nothing else was written.
func (p *pipeline) saveIdle(now time.Duration) error {
	p.saved = now
	err := p.store.FlushCursors()
	if err == nil && (p.clockDirty || now-p.clockSaved >= saveClock) {
		c := buffer.Commit{}
		p.noteMeta(&c, p.clk.Now().WallNS)
		err = p.store.Commit(&c)
	}
	if errors.Is(err, buffer.ErrFull) {
		p.clockDirty = true // what was to be saved is not
		p.health.full(err)
		return nil
	}
	if err != nil {
		return &storageError{err: fmt.Errorf("cannot save cursors and clock: %w", err)}
	}
	return nil
}

// checkpoint writes the engine's state, so that the next start has nothing to
// step again.
func (p *pipeline) checkpoint() error {
	if p.cost == 0 {
		return nil
	}
	size := 0
	c := buffer.Commit{Checkpoint: func(put func([]byte) error) error {
		return p.engine.Snapshot(func(part []byte) error {
			size += len(part)
			return put(part)
		})
	}}
	p.noteMeta(&c, p.clk.Now().WallNS)
	switch err := p.store.Commit(&c); {
	case errors.Is(err, buffer.ErrFull):
		p.clockDirty = true
		p.cost = min(p.cost, checkpointCost/8*7) // in a while; a start would step more
		return nil
	case err != nil:
		return &storageError{err: fmt.Errorf("cannot write a checkpoint: %w", err)}
	}
	p.cost, p.checkpointLen = 0, size
	p.cad.committed(p.now(), size)
	return nil
}

// checkpointDue reports whether a restart would have to step too much again.
func (p *pipeline) checkpointDue() bool {
	return p.cost >= min(max(checkpointCost, p.checkpointLen/checkpointShare), 2*checkpointCost)
}
