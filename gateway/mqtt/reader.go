package mqtt

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"tidemark/internal/broker"
	"tidemark/reading"
)

// Clock tells the time of arrival, and by which certificates are judged. It is
// asked once per read of the connection.
type Clock interface{ Now() reading.Instant }

// Reader reads one input from one broker. Its methods may be called from any
// goroutine.
type Reader struct {
	cfg     Config
	peer    *broker.Peer
	sink    reading.Sink
	clk     Clock
	log     zerolog.Logger
	decoder *Decoder // for the reading goroutine
	pinger  pinger
	seed    maphash.Seed

	committed atomic.Uint64
	closing   atomic.Bool  // what comes now is left to the broker
	keepAlive atomic.Int64 // as agreed upon with the broker, nanoseconds

	wake chan struct{} // the queue has something
	room chan struct{} // the queue has less
	acks chan struct{} // something may be acknowledged
	asks chan string   // topics on which to ask for a rebirth

	mu         sync.Mutex // guards what follows, and what links say
	cur        *link      // of the connection that is or was last; nil before the first
	token      uint64     // of the last parcel
	delivered  uint64     // token of the last parcel that the sink took
	queue      queue
	window     window
	catch      catchUp
	catchTimer *time.Timer
	retry      retry
	greeted    bool  // it was said that the input is connected
	arrivalNS  int64 // of the last message, boot line
	ackNS      int64 // when acknowledgements last went out, boot line
	crowdedNS  int64 // 1 + when a series was last refused, boot line; 0: never
	status     Status
	refusals   map[string]string // by filter: why there is no subscription
	session    string            // in what the session is less than was asked for; empty: in nothing
	words      string            // the broker's own, of its last refusal
	host       string            // why the host application is not announced; empty: it is, or is not to be
}

// New prepares a reader. Its error names the key and the remedy.
func New(cfg Config, sink reading.Sink, clk Clock, log zerolog.Logger) (*Reader, error) {
	cfg = cfg.withDefaults()
	peer, err := broker.At(cfg.URL, cfg.TLS, func() int64 { return clk.Now().WallNS })
	if err == nil {
		err = cfg.validate()
	}
	var d *Decoder
	if err == nil {
		d, err = NewDecoder(cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("input %s: mqtt: %w", cfg.Input, err)
	}
	r := &Reader{
		cfg: cfg, peer: peer, sink: sink, clk: clk, decoder: d,
		log:    log.With().Str("input", cfg.Input).Str("broker", peer.Addr()).Logger(),
		pinger: pinger{paho.NewDefaultPinger()}, seed: maphash.MakeSeed(),
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1), acks: make(chan struct{}, 1), asks: make(chan string, 64),
		window: window{ceiling: int(cfg.ReceiveMaximum)}, catch: catchUp{max: cfg.CatchUpMax},
		refusals: map[string]string{},
		status:   Status{Input: cfg.Input, Broker: peer.Addr(), ClientID: cfg.ClientID, LastNS: reading.NoTime},
	}
	r.keepAlive.Store(int64(cfg.KeepAlive))
	return r, nil
}

// Filters lists the topic filters that the reader subscribes to, for the
// StaleFilters of a later configuration.
func (r *Reader) Filters() []string {
	var fs []string
	for i := range r.decoder.router.filters {
		fs = append(fs, r.decoder.router.filters[i].text)
	}
	return fs
}

// Run connects, and reads until ctx ends or the sink fails for another reason.
// Then it takes nothing more, waits a moment until what it delivered is on disk
// and acknowledged, and disconnects; the sink must be served until Run returns.
// The session stays with the broker. Run must be called once.
func (r *Reader) Run(ctx context.Context) error {
	link, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	conn, err := r.connect(link, ctx)
	if err != nil {
		return fmt.Errorf("input %s: mqtt: %w", r.cfg.Input, err)
	}
	var g errgroup.Group
	g.Go(func() error { r.acknowledge(link); return nil })
	err = r.deliver(ctx)
	r.closing.Store(true)
	r.drain()
	hangUp()
	conn.wait()
	g.Wait()
	r.mu.Lock()
	if r.catchTimer != nil {
		r.catchTimer.Stop()
	}
	r.setState(Stopped, "")
	r.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Committed implements reading.Source.
func (r *Reader) Committed(token uint64) {
	for {
		old := r.committed.Load()
		if token <= old {
			return
		}
		if r.committed.CompareAndSwap(old, token) {
			signal(r.acks)
			return
		}
	}
}

// Status returns how the reader stands.
func (r *Reader) Status() Status {
	now := r.clk.Now().BootNS
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	if s.State == Connected {
		s.Problem = r.contention(now)
	}
	s.CertificateEndNS = reading.NoTime
	if end, ok := r.peer.CertificateEnd(); ok {
		s.CertificateEndNS = end
	}
	s.CatchingUp, s.Queued, s.Limit = r.catch.active, r.queue.weight, r.window.limit
	if r.cur != nil {
		s.Outstanding = r.cur.outstanding()
	}
	switch {
	case s.Problem != "":
	case len(r.refusals) > 0:
		for _, f := range r.Filters() {
			if why, ok := r.refusals[f]; ok {
				s.Problem = why
				break
			}
		}
	case r.session != "":
		s.Problem = r.session
	case r.host != "":
		s.Problem = r.host
	case r.crowded(now):
		s.Problem = fmt.Sprintf("readings of sensors beyond %d are refused; is a level of the topic or a name in the payload something that changes all the time? else raise max_series", r.cfg.MaxSeries)
	case r.window.small():
		s.Problem = fmt.Sprintf("the broker sends only %d messages before it waits for their commit; raise what it allows a client in flight (mosquitto: max_inflight_messages) to %d", r.window.limit, r.window.ceiling)
	}
	return s
}

// begin makes l the current link. It runs before the first message of l.
func (r *Reader) begin(l *link, resumed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cur != nil {
		r.status.Reconnects++
		if resumed {
			l.ghosts = r.cur.leftOver()
		}
	}
	r.cur = l
	r.status.Resumed = resumed
	r.retry.connected(l.at.BootNS)
	r.catch.connect(resumed, l.at.BootNS)
	r.watchCatchUp()
}

// take queues what l has read.
func (r *Reader) take(l *link) {
	l.parcel.Memory = r.decoder.Memory()
	r.mu.Lock()
	it := item{parcel: l.parcel, empty: l.empty()}
	if !it.empty {
		r.token++
		it.parcel.Input, it.parcel.Source, it.parcel.Token = r.cfg.Input, r, r.token
		it.parcel.Marks = append(r.catch.readings(r.cfg.Input, l.parcel.Readings, l.at.BootNS), l.parcel.Marks...)
		slices.SortStableFunc(it.parcel.Marks, func(a, b reading.Mark) int { return a.At - b.At })
	}
	for i := range l.pending {
		if l.pending[i].token == 0 {
			l.pending[i].token = r.token
		}
	}
	l.open = append(l.open, l.pending...)
	if len(l.pending) > 0 {
		r.window.resumed(time.Duration(l.at.BootNS - r.ackNS))
		it.stalled, it.hold = r.window.grown(l.outstanding())
	}
	if !it.empty || it.stalled {
		r.queue.push(it)
	}
	r.arrivalNS, l.useful = l.at.BootNS, true
	r.count(l)
	r.mu.Unlock()
	if it.empty {
		signal(r.acks) // what holds nothing, or is on disk already
	}
	l.parcel, l.pending, l.messages, l.redelivered = reading.Parcel{}, l.pending[:0], 0, 0
	signal(r.wake)
}

// crowdedFor is how long the refusal of a series is shown.
const crowdedFor = 10 * time.Minute

// crowded reports whether the input has had more series than it may have lately.
// The lock is held.
func (r *Reader) crowded(now int64) bool {
	return r.crowdedNS > 0 && now-r.crowdedNS < int64(crowdedFor)
}

func (r *Reader) count(l *link) {
	if slices.ContainsFunc(l.parcel.Rejects, func(j reading.Reject) bool { return j.Reason == tooManySeries }) {
		r.crowdedNS = l.at.BootNS + 1
	}
	r.status.Messages += uint64(l.messages)
	r.status.Redelivered += uint64(l.redelivered)
	r.status.Readings += uint64(len(l.parcel.Readings))
	r.status.Rejects += uint64(len(l.parcel.Rejects))
	r.status.LastNS = l.at.WallNS
}

func (r *Reader) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue.weight >= maxQueued
}

// deliver hands the queue over to the sink.
func (r *Reader) deliver(ctx context.Context) error {
	for {
		r.mu.Lock()
		it, ok := r.queue.pop()
		r.mu.Unlock()
		if !ok {
			select {
			case <-r.wake:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		signal(r.room)
		if !it.empty {
			if err := r.sink.Deliver(ctx, it.parcel); err != nil {
				return fmt.Errorf("input %s: %w", r.cfg.Input, err)
			}
			r.mu.Lock()
			r.delivered = max(r.delivered, it.parcel.Token)
			r.mu.Unlock()
		}
		if it.stalled {
			r.stalled(it.hold)
		}
	}
}

func (r *Reader) stalled(hold time.Duration) {
	switch {
	case r.cfg.OnStall == nil:
	case hold == 0:
		r.cfg.OnStall()
	default:
		time.AfterFunc(hold, r.cfg.OnStall)
	}
}

// watchCatchUp looks again when a backlog may be drained. The lock is held.
func (r *Reader) watchCatchUp() {
	if r.catchTimer != nil {
		r.catchTimer.Stop()
	}
	r.catchTimer = time.AfterFunc(catchUpQuiet, func() {
		now := r.clk.Now().BootNS
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closing.Load() {
			return
		}
		open := r.queue.weight + r.cur.outstanding()
		marks, again := r.catch.wait(r.cfg.Input, open, now)
		if len(marks) > 0 {
			r.token++
			r.queue.push(item{parcel: reading.Parcel{Input: r.cfg.Input, Marks: marks, Source: r, Token: r.token}})
			signal(r.wake)
		}
		if again > 0 {
			r.catchTimer.Reset(again)
		}
	})
}

// setState notes how the connection stands. It says once that the input is
// connected; what is wrong stands in the status, for whoever watches over the
// gateway to log. The lock is held.
func (r *Reader) setState(s State, problem string) {
	changed := s != r.status.State
	r.status.State, r.status.Problem = s, problem
	switch {
	case !changed:
	case s == Connected && !r.greeted:
		r.greeted = true
		r.log.Info().Bool("resumed", r.status.Resumed).Msg("the input is connected")
	default:
		r.log.Debug().Stringer("state", s).Bool("resumed", r.status.Resumed).Str("problem", problem).
			Msg("the connection's state changed")
	}
}

// signal wakes whoever waits for c, and never blocks.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
