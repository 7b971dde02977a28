package mqtt

import (
	"context"
	"time"
)

// drainFor is how long Run waits at its end for the commits of what it delivered.
const drainFor = 2 * time.Second

// acknowledge writes acknowledgements as commits allow them.
func (r *Reader) acknowledge(ctx context.Context) {
	var packets []byte
	for {
		select {
		case <-r.acks:
		case <-ctx.Done():
			return
		}
		now := r.clk.Now().BootNS
		r.mu.Lock()
		l := r.cur
		if l == nil || l.wire.isClosed() {
			r.mu.Unlock() // what is not acknowledged comes again
			continue
		}
		n := l.due(r.committed.Load())
		if n > 0 {
			r.window.acknowledging(l.outstanding(), time.Duration(now-r.arrivalNS))
			r.ackNS = now
			packets = l.acknowledgements(packets[:0], n)
		}
		r.mu.Unlock()
		if n == 0 {
			continue
		}
		l.wire.Lock()
		_, err := l.wire.Write(packets)
		l.wire.Unlock()
		if err != nil {
			l.wire.Close()
			continue
		}
		r.mu.Lock()
		l.writing = l.writing[:0]
		r.mu.Unlock()
	}
}

// drain waits until what the sink took is on disk and acknowledged.
func (r *Reader) drain() {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(drainFor)
	defer deadline.Stop()
	for asked := false; ; asked = true {
		r.mu.Lock()
		owed := r.committed.Load() < r.delivered
		if l := r.cur; l != nil && !l.wire.isClosed() {
			owed = owed || l.due(r.delivered) > 0 || len(l.writing) > 0
		}
		r.mu.Unlock()
		if !owed {
			return
		}
		if !asked {
			r.stalled(0)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return
		}
	}
}
