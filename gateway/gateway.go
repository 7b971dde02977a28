package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"tidemark/buffer"
	"tidemark/configs"
	"tidemark/reading"
)

// Options are what a gateway is given besides its configuration.
type Options struct {
	Log     zerolog.Logger
	Version string
	// Notify speaks to systemd: READY, RELOADING, STOPPING, STATUS and the watchdog.
	Notify bool
	// Load reads the configuration file anew, for a reload; nil where there is none.
	Load func() (*configs.Config, error)
	// Rejected is why the configuration file is not what is in force: the gateway
	// goes on with the last good one, degraded. Nil if it is.
	Rejected error
}

// Gateway is the whole product in one process. Make it with New; Run works until
// its context ends.
type Gateway struct {
	cfg  *configs.Config
	opts Options
	log  zerolog.Logger
	now  atomic.Pointer[session]

	aside   setAside // a store that the last session could not use
	trend   trend    // of the clock
	health  *health
	results *results
	board   *board
	reload
}

// setAside is a store's file that was put out of the way.
type setAside struct {
	path, reason string
	kept         *buffer.Salvaged // what the store in its place was given
}

// New prepares a gateway. Nothing is opened before Run.
func New(cfg *configs.Config, o Options) *Gateway {
	g := &Gateway{cfg: cfg, opts: o, log: o.Log, health: newHealth(o.Log), results: newResults(), board: newBoard()}
	if o.Rejected != nil {
		g.reject(o.Rejected)
	}
	return g
}

// IsStorage reports whether err is a fault of the store.
func IsStorage(err error) bool {
	var se *storageError
	return errors.As(err, &se)
}

// A store that fails again this soon after it was reopened is no passing fault.
const (
	reopenAfter   = time.Second
	reopenAtMost  = time.Minute
	stableSession = 5 * time.Minute
)

// Run opens the store, recovers and serves until ctx ends. A fault of the store
// while serving ends that session only: everything is dropped, nothing is
// acknowledged, and the store is opened and recovered again, as after a crash. A
// store that turns out to be damaged is set aside, and a new one takes its place.
// The error is one that was met at the first start, or nil.
func (g *Gateway) Run(ctx context.Context) error {
	wait := reopenAfter
	for first := true; ; first = false {
		o, err := g.session(ctx)
		switch {
		case ctx.Err() != nil || err == nil:
			return err
		case errors.Is(err, errReload):
			continue
		case !o.served && g.revert(err):
			continue
		case isDamage(err) && o.aside:
			g.log.Error().Err(err).Str("kept_as", g.aside.path).Msg("the store is damaged and was set aside; a new one takes its place")
			continue
		case first && !o.served, !IsStorage(err):
			return err
		}
		if o.lasted > stableSession {
			wait = reopenAfter
		}
		g.log.Error().Err(err).Dur("retry_in_ms", wait).Msg("the store failed: it is opened and recovered again; nothing unwritten was acknowledged")
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, reopenAtMost)
	}
}

// outcome is how a session went.
type outcome struct {
	served bool
	aside  bool // its store was set aside
	lasted time.Duration
}

// session serves from opening the store to closing it.
func (g *Gateway) session(ctx context.Context) (o outcome, err error) {
	ctx, done := g.beginSession(ctx)
	defer done()
	s, err := g.open()
	if err != nil {
		return outcome{aside: g.aside.path != ""}, err
	}
	g.settled()
	g.now.Store(s)
	begin := s.pipe.now()
	err = s.serve(ctx)
	g.now.Store(nil)
	o = outcome{served: true, lasted: s.pipe.now() - begin}
	if cerr := g.leave(s, err); err == nil {
		err = cerr
	}
	o.aside = g.aside.path != ""
	return o, err
}

// leave closes the session's store, and sets it aside if the session ended
// because what it holds cannot be read.
func (g *Gateway) leave(s *session, why error) error {
	if why != nil && isDamage(why) {
		path, kept, err := s.store.SetAside(why, reading.FloorMS(s.clk.Now().WallNS))
		if err == nil {
			g.aside = setAside{path, why.Error(), kept}
			return nil
		}
		g.log.Error().Err(err).Msg("the damaged store cannot be set aside")
	}
	if err := s.store.Close(); err != nil {
		return &storageError{err: fmt.Errorf("cannot close the store: %w", err)}
	}
	return nil
}

// serve runs every part until ctx ends or one of them fails, then stops them in
// the order of the data: readers, pipeline, uplinks, clock.
func (s *session) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	background := context.WithoutCancel(ctx)

	clockCtx, stopClock := context.WithCancel(background)
	uplinkCtx, stopUplinks := context.WithCancel(background)
	pipeCtx, stopPipe := context.WithCancel(background)
	defer stopClock()
	defer stopUplinks()
	defer stopPipe()
	var clocks, uplinks, pipes, readers errgroup.Group
	run := func(g *errgroup.Group, ctx context.Context, f func(context.Context) error) {
		g.Go(func() error {
			err := f(ctx)
			if err != nil && ctx.Err() == nil {
				cancel(err)
			}
			return err
		})
	}

	run(&clocks, clockCtx, s.clk.Run)
	run(&clocks, clockCtx, s.socket.serve)
	if s.web != nil {
		run(&clocks, clockCtx, s.web.Run)
		run(&clocks, clockCtx, s.page.Run)
	}
	run(&pipes, pipeCtx, s.pipe.run)
	for _, u := range s.uplinks {
		run(&uplinks, uplinkCtx, u.run)
	}
	for _, r := range s.readers {
		run(&readers, ctx, r.Run)
	}
	s.notify.ready()
	run(&clocks, clockCtx, s.notify.watch)

	<-ctx.Done()
	if errors.Is(context.Cause(ctx), errReload) {
		s.notify.reloading()
		s.log.Info().Msg("applying the changed configuration: what was brought is committed, then every part starts anew")
	} else {
		s.notify.stopping()
		s.log.Info().Msg("stopping: readers first, then what they brought is committed and sent")
	}
	_ = readers.Wait()
	stopPipe()
	perr := pipes.Wait()
	stopUplinks()
	_ = uplinks.Wait()
	ferr := s.store.FlushCursors()
	stopClock()
	_ = clocks.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return errors.Join(perr, ferr)
}
