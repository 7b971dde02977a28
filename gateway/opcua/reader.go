package opcua

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/rs/zerolog"

	"tidemark/reading"
)

// Clock is the gateway's, as far as a reader needs it.
type Clock interface {
	Now() reading.Instant
	// ObserveServer takes in a measurement of the server's clock.
	ObserveServer(x reading.ServerExchange)
}

// Reader reads one input from one server. Run's goroutine does everything; the
// other methods may be called from any.
type Reader struct {
	cfg      Config
	sink     reading.Sink
	clk      Clock
	log      zerolog.Logger
	resolver *resolver

	committed atomic.Uint64
	commits   chan struct{} // committed has risen
	fills     chan fillResult
	reviews   chan found

	mu        sync.Mutex // guards what follows
	status    Status
	connected bool // it was, once
	points    points

	// What follows belongs to Run.
	access       *access  // nil: to be discovered
	last         *session // to be taken up again; nil: none
	itemsPerCall int      // that the server lets one call monitor
	retry        retry

	per        int          // nodes in a subscription
	plan       []*monitored // by client handle
	planSum    uint64
	unresolved []problem
	subs       []*subscription
	byID       map[uint32]*subscription // those that are there
	startNS    int64                    // when the server started, by its clock; 0: it does not say
	startedNS  int64                    // the same, as the subscriptions were made
	serverNS   int64                    // its clock when the session began
	mendedNS   int64                    // boot time of the last look after nodes
	vouchedNS  int64                    // boot time of the last mark of life

	stored     *position // of an earlier reader, until it is used
	token      uint64    // of the last parcel
	open       []delivery
	acks       []*ua.SubscriptionAcknowledgement
	gaps       []reading.Gap // to go with the next parcel
	reading    bool          // history, to fill a hole
	reviewing  bool          // the nodes are looked for anew
	reviewedNS int64         // boot time since when they were last
	overflow   overflow
	lag        lag
	catch      catchUp
}

// New prepares a reader. Its error names the key and the remedy.
func New(cfg Config, sink reading.Sink, clk Clock, log zerolog.Logger) (*Reader, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("input %s: opcua: %w", cfg.Input, err)
	}
	r := &Reader{
		cfg: cfg, sink: sink, clk: clk,
		log:     log.With().Str("input", cfg.Input).Str("server", cfg.Endpoint.String()).Logger(),
		commits: make(chan struct{}, 1), fills: make(chan fillResult), reviews: make(chan found),
		resolver: newResolver(cfg), catch: catchUp{max: cfg.CatchUpMax},
		per: perSubscription, byID: map[uint32]*subscription{},
		status: Status{Input: cfg.Input, Server: cfg.Endpoint.String(), LastNS: reading.NoTime, CertificateEndNS: reading.NoTime},
	}
	var err error
	if r.stored, err = decodePosition(cfg.Memory); err != nil {
		r.gaps = append(r.gaps, reading.Gap{
			Reason: "position_unknown", FromNS: reading.NoTime, ToNS: reading.NoTime, AtNS: clk.Now().WallNS,
			Detail: "what the server may still hold from before this start of the gateway cannot be taken over: " + err.Error(),
		})
	}
	return r, nil
}

// Run connects, and reads until ctx ends or the sink fails for another reason.
// Then it takes nothing more, waits a moment until what it delivered is on disk
// and acknowledged, and leaves; the sink must be served until Run returns. The
// subscriptions stay with the server for the next start. Run must be called once.
func (r *Reader) Run(ctx context.Context) error {
	defer r.setState(Stopped, "")
	for {
		err := r.connection(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var full *sinkError
		if errors.As(err, &full) {
			return fmt.Errorf("input %s: %w", r.cfg.Input, full.err)
		}
		r.retry.failed(r.clk.Now().BootNS)
		wait := r.retry.delay(err, rand.Float64())
		r.setState(r.judgement(err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// sinkError is a failure of the gateway, not of the server.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }

// connection is one from its attempt to its end.
func (r *Reader) connection(ctx context.Context) error {
	s, resumed, err := r.enter(ctx)
	if err != nil {
		return err
	}
	if err = r.resume(ctx, s, resumed); err == nil {
		r.retry.connected(r.clk.Now().BootNS)
		r.show()
		err = r.serve(ctx, s)
	}
	if ctx.Err() != nil {
		r.leave(s)
		return nil
	}
	s.ch.abort(err)
	return err
}

// enter opens a session by what discovery found.
func (r *Reader) enter(ctx context.Context) (*session, bool, error) {
	if r.access == nil {
		a, err := r.approach(ctx)
		if err != nil {
			return nil, false, err
		}
		r.access = a
	}
	s, resumed, err := enter(ctx, r.cfg.Endpoint, r.access, r.last, "tidemark "+r.cfg.Input)
	if err != nil {
		r.access = nil // certificates and secrets are looked at anew
		return nil, false, err
	}
	r.last = s
	return s, resumed, nil
}

// Committed implements reading.Source.
func (r *Reader) Committed(token uint64) {
	for {
		old := r.committed.Load()
		if token <= old {
			return
		}
		if r.committed.CompareAndSwap(old, token) {
			signal(r.commits)
			return
		}
	}
}

// Status returns how the reader stands.
func (r *Reader) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// signal wakes whoever waits for c, and never blocks.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
