package clock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"tidemark/clock"
)

// world is a true time with a gateway whose wall clock is off, inside a synctest
// bubble. True time starts at 2026-10-01T12:00:00Z.
type world struct {
	mu      sync.Mutex
	start   time.Time // of the bubble's clock
	ofs     int64     // wall − true at the start, and after steps
	drift   int64     // ppb of the gateway's oscillator
	slept   int64     // ns that boottime is ahead of monotonic
	bootID  uint64
	servers map[string]*fakeServer
	chrony  func() (clock.Chrony, error)
	kernel  func() (clock.Kernel, error)
	rng     *rand.Rand
	asked   map[string]int
	events  []clock.Event // guarded by mu
}

// fakeServer answers with an error of its own.
type fakeServer struct {
	off     time.Duration // server − true
	out     time.Duration // one-way delays
	back    time.Duration
	err     error
	stratum uint8
	lost    float64       // share of queries without an answer
	disp    time.Duration // root dispersion beyond 1 ms
}

var genesis = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

var errNone = errors.New("not there")

func newWorld() *world {
	return &world{
		start: time.Now(), bootID: 7, servers: map[string]*fakeServer{}, asked: map[string]int{}, rng: rand.New(rand.NewPCG(1, 2)),
		chrony: func() (clock.Chrony, error) { return clock.Chrony{}, errNone },
		kernel: func() (clock.Kernel, error) { return clock.Kernel{}, errNone },
	}
}

// addServers adds good servers a, b, c, … 10 ms away.
func (w *world) addServers(names ...string) []string {
	for _, n := range names {
		w.servers[n] = &fakeServer{out: 5 * time.Millisecond, back: 5 * time.Millisecond, stratum: 2}
	}
	return names
}

func (w *world) elapsed() int64 { return time.Since(w.start).Nanoseconds() }

func (w *world) trueNS() int64 { return genesis.UnixNano() + w.elapsed() + w.slept }

// mono is the gateway's oscillator, which drifts.
func (w *world) mono() int64 { e := w.elapsed(); return e + e/1e6*w.drift/1e3 }

func (w *world) wall() int64 { return genesis.UnixNano() + w.ofs + w.mono() + w.slept }

func (w *world) boot() int64 { return w.mono() + w.slept + 1e9 }

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// polls is how often a server was asked.
func (w *world) polls(name string) (n int) {
	w.set(func() { n = w.asked[name] })
	return n
}

// step sets the wall clock by d.
func (w *world) step(d time.Duration) { w.set(func() { w.ofs += d.Nanoseconds() }) }

func (w *world) query(ctx context.Context, name string) (clock.Reply, error) {
	w.mu.Lock()
	s := *w.servers[name]
	w.asked[name]++
	lost := s.lost > 0 && w.rng.Float64() < s.lost
	w.mu.Unlock()
	if lost {
		s.err = clock.TimeoutError()
	}
	if s.err != nil {
		sleep(ctx, time.Second)
		return clock.Reply{}, s.err
	}
	w.mu.Lock()
	t1 := w.wall()
	w.mu.Unlock()
	sleep(ctx, s.out)
	w.mu.Lock()
	t23 := w.trueNS() + s.off.Nanoseconds()
	w.mu.Unlock()
	sleep(ctx, s.back)
	w.mu.Lock()
	defer w.mu.Unlock()
	t4 := w.wall()
	return clock.MakeReply(((t23-t1)+(t23-t4))/2, t4-t1, 1e6, 1e6+s.disp.Nanoseconds(), s.stratum, w.boot(), w.wall()-w.boot()), nil
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (w *world) device() clock.Device {
	locked := func(f func() (int64, int64)) func() (int64, int64) {
		return func() (int64, int64) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return f()
		}
	}
	return clock.Device{
		Clocks: locked(func() (int64, int64) { return w.wall(), w.mono() }),
		Pair:   locked(func() (int64, int64) { return w.wall(), w.boot() }),
		BootID: w.bootID, Query: w.query,
		Chrony: func() (clock.Chrony, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.chrony() },
		Kernel: func() (clock.Kernel, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.kernel() },
	}
}

// run runs f in a bubble with a running clock.
func run(t *testing.T, setup func(*world) clock.Config, f func(t *testing.T, w *world, c *clock.Clock)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		cfg := setup(w)
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		c := clock.NewOn(cfg, clock.Options{Log: zerolog.Nop(), OnEvent: func(e clock.Event) { w.set(func() { w.events = append(w.events, e) }) }}, w.device())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		f(t, w, c)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// inBound fails if true time lies outside what the clock states.
func inBound(t *testing.T, w *world, c *clock.Clock) {
	t.Helper()
	now := c.Now()
	w.mu.Lock()
	off := now.WallNS - w.trueNS()
	w.mu.Unlock()
	if now.BoundNS >= 0 && max(off, -off) > now.BoundNS {
		t.Errorf("the gateway is %d ns off, outside its bound of %d ns (%v)", off, now.BoundNS, now.State)
	}
}

func timeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
