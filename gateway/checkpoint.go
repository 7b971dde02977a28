package gateway

import (
	"errors"
	"fmt"
	"runtime"
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
	c := buffer.Commit{Checkpoint: p.snapshot()}
	size := len(c.Checkpoint)
	p.noteMeta(&c, p.clk.Now().WallNS)
	switch err := p.store.Commit(&c); {
	case errors.Is(err, buffer.ErrFull):
		p.clockDirty = true
		p.cost = min(p.cost, checkpointCost/8*7) // in a while; a start would step more
		return nil
	case err != nil:
		return &storageError{err: fmt.Errorf("cannot write a checkpoint: %w", err)}
	}
	p.cost = 0
	p.cad.committed(p.now(), size)
	// The collector would take what a checkpoint needed for a moment for what is
	// always in use, and let half as much again gather.
	c = buffer.Commit{}
	runtime.GC()
	return nil
}

// snapshotPerIdentity is about what a snapshot holds for each reading that will be
// recognised: eight bytes, and a share of its sensor's windows.
const snapshotPerIdentity = 10

// snapshot returns the engine's state with room for the store. Its size is guessed
// beforehand: growing by and by takes several times as much memory.
func (p *pipeline) snapshot() []byte {
	guess := max(p.snapshotLen+p.snapshotLen/8, p.engine.Status().Identities*snapshotPerIdentity)
	s := p.engine.AppendSnapshot(make([]byte, 0, guess+buffer.CheckpointRoom(guess)))
	p.snapshotLen = len(s)
	return s
}
