package opcua

import (
	"context"
	"time"

	"tidemark/reading"
)

// catchUp holds the input's watermark while what waited at the server, or is
// fetched from its history, is still coming in (SEMANTICS G4). It is pure; times
// are on the boot line.
type catchUp struct {
	max     time.Duration
	active  bool
	sinceNS int64
}

// begin reports whether the mark of the beginning is due.
func (c *catchUp) begin(nowNS int64) bool {
	if c.active || c.max == 0 {
		return false
	}
	c.active, c.sinceNS = true, nowNS
	return true
}

// end reports whether the mark of the end is due: nothing is still to come, or it
// takes too long.
func (c *catchUp) end(drained bool, nowNS int64) bool {
	if !c.active || !drained && nowNS-c.sinceNS < int64(c.max) {
		return false
	}
	c.active = false
	return true
}

func (r *Reader) beginCatchUp(ctx context.Context) error {
	if !r.catch.begin(r.clk.Now().BootNS) {
		return nil
	}
	r.setCatchingUp(true)
	return r.send(ctx, r.marked(reading.MarkCatchUpBegin), true)
}

// endCatchUp ends it if everything that waited has come.
func (r *Reader) endCatchUp(ctx context.Context) error {
	drained := true
	for _, sub := range r.subs {
		drained = drained && sub.settled && !sub.filling
	}
	if !r.catch.end(drained, r.clk.Now().BootNS) {
		return nil
	}
	r.setCatchingUp(false)
	return r.send(ctx, r.marked(reading.MarkCatchUpEnd), true)
}

func (r *Reader) marked(kind reading.MarkKind) reading.Parcel {
	return reading.Parcel{Marks: []reading.Mark{reading.InputMark(kind, r.cfg.Input, 0)}}
}

func (r *Reader) setCatchingUp(on bool) {
	r.mu.Lock()
	r.status.CatchingUp = on
	r.mu.Unlock()
}
