package uplink

import (
	"context"
	"errors"
	"sync"
	"time"

	"tidemark/internal/broker"
)

// pass is the use of one connection. Its window is shared with answered, which
// the connection calls from a goroutine of its own.
type pass struct {
	*Uplink
	conn   conn
	window *window

	pace   *pace
	batch  batch
	single bool // no batches: one of them may hold what the broker will not take

	mu        sync.Mutex
	interrupt context.CancelCauseFunc // ends the present sweep; nil between sweeps
	resting   bool                    // the broker refused a record and has taken none since
}

// serve sends until the connection is lost, which is an error, or ctx ends and
// nothing is left that the broker would take, which is none.
func (p *pass) serve(ctx, hard context.Context) error {
	if err := p.status(hard, "online", ""); err != nil {
		return err
	}
	rests := backoff{min: p.cfg.BackoffMin, max: p.cfg.BackoffMax}
	for {
		err := p.sweep(ctx, hard)
		var r *refusedError
		if !errors.As(err, &r) {
			return err
		}
		if err := p.afterRefusal(hard, r); err != nil {
			return err
		}
		if p.progress.Swap(false) {
			rests.reset()
		}
		if err := p.pauseConnected(ctx, rests.next()); err != nil {
			return err
		}
		p.window.clear()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// afterRefusal waits for the answers to what is in flight behind a refused record
// and gives the record up if it was refused too often for no clear reason.
func (p *pass) afterRefusal(hard context.Context, r *refusedError) error {
	run, end := p.begin(hard, false)
	defer end()
	if err := p.drain(run); err != nil {
		return err
	}
	p.setResting(true)
	p.enter(codeState(r.code), r.Error())
	if r.count > 1 {
		p.single = true // to find the one that is meant
		return nil
	}
	if judge(r.code) == doubtful && p.suspects.doubted(&r.last) {
		p.giveUp(r.last, r.Error())
	}
	return nil
}

// pauseConnected waits for d, or until ctx ends or the connection is lost, which
// is an error.
func (p *pass) pauseConnected(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-p.conn.done():
		return p.conn.err()
	}
	return nil
}

// begin returns a context for using the connection. It ends with hard, and with a
// cause when the connection is lost, when the broker stops answering and, if
// refusable, when it refuses a record.
func (p *pass) begin(hard context.Context, refusable bool) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(hard)
	if refusable {
		p.setInterrupt(cancel)
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.watch(ctx, cancel) })
	return ctx, func() {
		p.setInterrupt(nil)
		cancel(nil)
		wg.Wait()
	}
}

func (p *pass) setInterrupt(f context.CancelCauseFunc) {
	p.mu.Lock()
	p.interrupt = f
	p.mu.Unlock()
}

// setResting returns what it was before.
func (p *pass) setResting(v bool) (was bool) {
	p.mu.Lock()
	was, p.resting = p.resting, v
	p.mu.Unlock()
	return was
}

// watch ends ctx when the connection is lost or the broker stops answering. Then
// it also breaks the connection, so that a write which nobody reads returns.
func (p *pass) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(p.cfg.AckTimeout)
	defer tick.Stop()
	var before uint64
	waited := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.conn.done():
			cancel(p.conn.err())
			return
		case <-tick.C:
		}
		open, answers := p.window.progress()
		if waited && open > 0 && answers == before {
			cancel(errStalled)
			p.conn.abort()
			return
		}
		before, waited = answers, open > 0
	}
}

// sweep sends from the first records that are not delivered on, until ctx ends and
// nothing is left that may go. It returns nil then, else why it stopped.
func (p *pass) sweep(ctx, hard context.Context) error {
	run, end := p.begin(hard, true)
	defer end()
	p.rewind()
	for {
		ended := ctx.Err() != nil // asked before the source is: what was there by then goes
		moved, err := p.round(run)
		switch {
		case err != nil:
			return err
		case moved:
		case ended:
			return p.drain(run)
		default:
			if err := p.wait(ctx, run); err != nil {
				return err
			}
		}
	}
}

// wait returns nil when there may be more to send or ctx ended, and an error when
// the sweep did.
func (p *pass) wait(ctx, run context.Context) error {
	if err := p.conn.flush(); err != nil {
		return p.lost(err)
	}
	either, cancel := context.WithCancel(run)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	defer p.pace.wake(cancel)()
	err := p.src.Wait(either)
	switch {
	case run.Err() != nil:
		return context.Cause(run)
	case either.Err() != nil:
		return nil
	}
	return err
}

// status publishes the retained status. Its answer is awaited with the others'.
func (p *pass) status(hard context.Context, state, reason string) error {
	now, clock := p.cfg.Clock()
	m := p.enc.statusMessage(state, reason, now, clock)
	id, err := p.admit(hard, cargo{})
	if err != nil {
		return err
	}
	props := m.Properties(now, false)
	if err := p.conn.send(id, m, &props); err != nil {
		return p.lost(err)
	}
	return nil
}

// leave says that the gateway goes and ends the connection in order. If the
// broker does not answer in time, the will says it.
func (p *pass) leave(hard context.Context) {
	run, end := p.begin(hard, false)
	defer end()
	err := p.status(run, "offline", "shutdown")
	if err == nil {
		err = p.drain(run)
	}
	if err != nil {
		p.conn.disconnect(broker.DisconnectWithWill)
		return
	}
	p.conn.disconnect(broker.Normal)
}
