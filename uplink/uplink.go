package uplink

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tidemark/internal/broker"
	"tidemark/reading"
)

// Config is how to reach a broker. Durations and counts that are 0 take the
// default that is named.
type Config struct {
	Name     string   // in the log and in the status
	URL      *url.URL // mqtt, mqtts, ws or wss
	ClientID string
	// Login is asked at every connection; nil is no login.
	Login func() (user string, password []byte, err error)
	// TLS is asked at every connection with mqtts or wss; nil trusts the system's
	// authorities and shows no certificate.
	TLS func() (*tls.Config, error)

	KeepAlive      time.Duration // 20 s; a broker that is silent for twice as long is gone
	ConnectTimeout time.Duration // 10 s, from dialling to CONNACK
	AckTimeout     time.Duration // 20 s; longest wait for a PUBACK
	MaxInFlight    int           // 2048; the broker's Receive Maximum may be lower
	// Types are the types of records that are sent: feature, closed, late,
	// quarantine, event, definition. None is all. With Encoder.Finals a feature is
	// sent when its window closes, and no closing is.
	Types []string
	// RetainFeatures has the broker keep the newest window's feature of each topic.
	RetainFeatures bool
	// Batch is how many records one message may hold; 0 or 1 is one record to a
	// message, each on its own topic.
	Batch int
	// BacklogRate is how many of the records that waited are sent a second; 0 is no
	// limit.
	BacklogRate  int
	BackoffMin   time.Duration // 500 ms
	BackoffMax   time.Duration // 60 s
	DrainTimeout time.Duration // 5 s; for what is left at the end

	// Clock is asked for the wall time in Unix nanoseconds and how far it can be
	// trusted. It does not block.
	Clock func() (int64, reading.ClockState)
	// SetAside is told of a record that can never be delivered, before it counts as
	// delivered. It must not block; nil ignores it.
	SetAside func(SetAside)
}

// SetAside is a record that the broker can never take.
type SetAside struct {
	Record Record
	Topic  string // empty if the record could not be read
	Reason string
}

// Lane is a way by which records come; a lower one goes first.
type Lane uint8

const (
	Live    Lane = iota // records as they are made
	Backlog             // records that waited, and what must not overtake them
	Raw                 // readings
	lanes
)

// Source is an uplink's view of what goes upstream: lanes, each with a read
// position. Its methods are called by one goroutine, except Delivered and Waiting,
// which are called at any time and must not block.
type Source interface {
	// Begin begins a connection: what is not delivered by now has waited. The
	// positions are at the first records that are not delivered.
	Begin()
	// Next appends up to max records after the lane's position, together about
	// maxBytes, to dst and moves the position behind them, to upTo: there may be
	// nothing for a while before it. It does not wait: no records means that there
	// are none now. The records' data stays valid.
	Next(lane Lane, dst []Record, max, maxBytes int) (recs []Record, upTo uint64, err error)
	// Wait returns when there may be records that were not there before, and with
	// ctx's error when that ends first.
	Wait(ctx context.Context) error
	// Rewind moves the positions back to the first records that are not delivered.
	Rewind()
	// Delivered says that everything of a lane up to and including seq is delivered.
	Delivered(lane Lane, seq uint64)
	// Waiting returns how many records are not delivered.
	Waiting() int64
}

// Uplink publishes an outbox to one broker. Make one with New.
type Uplink struct {
	cfg      Config
	src      Source
	enc      Encoder
	log      zerolog.Logger
	peer     *broker.Peer
	counters counters

	// What follows belongs to the goroutine of Run.
	connect  connector
	retry    backoff
	high     [lanes]uint64 // highest record ever sent, by lane
	suspects suspects
	types    types
	newest   newest
	queues   [lanes]queue
	msg      Message
	progress atomic.Bool // a record was delivered, or the connection held, since this was last taken
}

// limits are a broker's own, from its CONNACK.
type limits struct {
	receiveMax int
	maxPacket  uint32 // 0: none
}

// conn is one connection to a broker, from CONNECT to its end. send, flush and
// disconnect belong to one goroutine.
type conn interface {
	// send queues a PUBLISH of QoS 1.
	send(id uint16, m *Message, props *[8]Property) error
	flush() error
	limits() limits
	// done is closed when the connection is lost; then err says why.
	done() <-chan struct{}
	err() error
	// disconnect ends the connection in order, with what was sent.
	disconnect(code broker.Code)
	// abort ends it at once; it may be called at any time and returns when nothing
	// of it runs any more.
	abort()
}

// connector makes a connection which leaves will behind when it is lost, and
// brings the broker's answers to answered, one at a time.
type connector func(ctx context.Context, will *Message, answered func(id uint16, code broker.Code)) (conn, error)

// New returns an uplink that is not running. It refuses a configuration that
// could not work with any broker.
func New(cfg Config, src Source, enc Encoder, log zerolog.Logger) (*Uplink, error) {
	if fault := prefixFault(enc.Prefix); fault != "" {
		return nil, fmt.Errorf("uplink %q: prefix %q: %s", cfg.Name, enc.Prefix, fault)
	}
	cfg.setDefaults()
	types, err := parseTypes(cfg.Types, enc.Finals)
	if err != nil {
		return nil, fmt.Errorf("uplink %q: %w", cfg.Name, err)
	}
	b, err := newClient(&cfg)
	if err != nil {
		return nil, fmt.Errorf("uplink %q: %w", cfg.Name, err)
	}
	return &Uplink{
		cfg: cfg, src: src, enc: enc, connect: b.connect, peer: b.peer, types: types, newest: newest{},
		log:   log.With().Str("uplink", cfg.Name).Logger(),
		retry: backoff{min: cfg.BackoffMin, max: cfg.BackoffMax},
	}, nil
}

func (c *Config) setDefaults() {
	c.KeepAlive = cmp.Or(c.KeepAlive, 20*time.Second)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 10*time.Second)
	c.AckTimeout = cmp.Or(c.AckTimeout, 20*time.Second)
	c.BackoffMin = cmp.Or(c.BackoffMin, 500*time.Millisecond)
	c.BackoffMax = cmp.Or(c.BackoffMax, time.Minute)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 5*time.Second)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 2048)
	if c.SetAside == nil {
		c.SetAside = func(SetAside) {}
	}
}

// Run publishes until ctx ends, then sends what is left within the drain timeout
// and takes leave. A broker that is away is no error; Run returns nil.
func (u *Uplink) Run(ctx context.Context) error {
	hard, cancel := afterwards(ctx, u.cfg.DrainTimeout)
	defer cancel()
	for {
		err := u.once(ctx, hard)
		if err == nil || ctx.Err() != nil {
			u.enter(StateStopped, "")
			return nil
		}
		u.counters.failures.Add(1)
		u.enter(stateOf(err), err.Error())
		if u.progress.Swap(false) {
			u.retry.reset()
		}
		pause(ctx, u.retry.next())
	}
}

// afterwards returns a context that ends d after ctx does.
func afterwards(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		pause(hard, d)
		cancel()
	})
	return hard, func() { stop(); cancel() }
}

// once makes a connection and uses it until it is lost or ctx ends. It returns
// nil after an orderly end.
func (u *Uplink) once(ctx, hard context.Context) error {
	w := newWindow()
	p := &pass{Uplink: u, window: w, pace: newPace(u.cfg.BacklogRate)}
	defer p.pace.stop()
	will := u.enc.statusMessage("offline", "connection_lost", reading.NoTime, reading.ClockUnknown)
	c, err := u.connect(ctx, will, p.answered)
	if err != nil {
		return err
	}
	defer c.abort()
	u.counters.connects.Add(1)
	p.conn = c
	p.single = u.suspects.cautious
	u.src.Begin()
	w.open(min(c.limits().receiveMax, u.cfg.MaxInFlight), u.suspects.cautious)
	u.attach(c, w)
	defer u.attach(nil, nil)
	u.enter(StateOnline, "")
	u.hintWindow(c.limits().receiveMax)

	stable := time.AfterFunc(u.cfg.BackoffMax, func() { u.progress.Store(true) })
	defer stable.Stop()
	err = p.serve(ctx, hard)
	if err == nil {
		p.leave(hard)
		return nil
	}
	if errors.Is(err, context.Canceled) && hard.Err() != nil {
		c.disconnect(broker.DisconnectWithWill) // the will says that we are gone
	}
	if r, found := u.suspects.lost(err, w); found {
		u.giveUp(r, err.Error())
	}
	return err
}

// hintWindow names the remedy for a broker that takes few records at a time.
func (u *Uplink) hintWindow(n int) {
	if n < 100 && u.counters.connects.Load() == 1 {
		u.log.Info().Int("receive_maximum", n).
			Msg("the broker takes few records at a time, which bounds the rate to that many per round trip; raise its limit (mosquitto: max_inflight_messages)")
	}
}

// setAside hands over a record that can never be delivered.
func (u *Uplink) setAside(r Record, topic, reason string) {
	u.counters.setAside.Add(1)
	u.log.Warn().Uint64("seq", r.Seq).Str("topic", topic).Str("reason", reason).Msg("a record that the broker can never take is set aside")
	u.cfg.SetAside(SetAside{Record: r, Topic: topic, Reason: reason})
}

// giveUp sets aside the first record that is not delivered.
func (u *Uplink) giveUp(r Record, reason string) {
	u.setAside(r, "", reason)
	u.src.Delivered(r.lane, r.Seq)
}
