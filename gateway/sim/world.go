package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Config is what a world is made from.
type Config struct {
	Seed uint64
	Now  func() time.Time // the true time of this world
	// Told, if not nil, hears what the machines do that is worth telling. It is
	// called on their goroutines and must not block.
	Told func(Happening)
}

// Happening is something that a machine does, for people to read.
type Happening struct {
	At      time.Time
	Machine Machine
	What    string // goes after the machine's name: "goes silent"
}

// World is a broker, four time servers, the machines of Cast and a controller.
type World struct {
	Broker     *Broker
	Controller *Controller
	cfg        Config
	times      []*TimeServer

	hushed chan struct{} // closed by Hush
	hush   sync.Once
}

// dispersion is what the servers say of their clocks. They are as good as one that is
// fetched over the Internet, and not better: on a machine that is busy the way to them
// and back takes tens of milliseconds more in one direction than in the other, which
// servers that claimed a millisecond would have to disagree over.
const dispersion = 50 * time.Millisecond

// liarOffset is far beyond what four servers that agree to a millisecond allow.
const liarOffset = 7 * time.Second

// prelude gives those who listen a moment to be there when the story begins.
const prelude = time.Second

// New binds the ports. A world that is not wanted after all is given back with
// Close.
func New(cfg Config) (*World, error) {
	broker, err := NewBroker()
	if err != nil {
		return nil, err
	}
	controller, err := NewController(cfg.Now)
	if err != nil {
		broker.close()
		return nil, err
	}
	w := &World{Broker: broker, Controller: controller, cfg: cfg, hushed: make(chan struct{}), times: []*TimeServer{
		{Stratum: 1, Seed: cfg.Seed, Dispersion: dispersion},
		{Stratum: 2, Offset: 300 * time.Microsecond, DriftPPB: 20, Loss: 0.05, Seed: cfg.Seed, Dispersion: dispersion},
		{Stratum: 2, Offset: liarOffset, Seed: cfg.Seed, Dispersion: dispersion},
		{Stratum: 3, Offset: -400 * time.Microsecond, DriftPPB: -30, Seed: cfg.Seed, Dispersion: dispersion},
	}}
	for i, s := range w.times {
		if err := s.Listen(cfg.Now); err != nil {
			w.times = w.times[:i]
			w.Close()
			return nil, err
		}
	}
	return w, nil
}

// TimeServers are the NTP servers' addresses, host:port.
func (w *World) TimeServers() []string {
	addrs := make([]string, len(w.times))
	for i, s := range w.times {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Hush ends the machines' story; broker and time servers go on until the context
// of Run ends. It may be called more than once.
func (w *World) Hush() { w.hush.Do(func() { close(w.hushed) }) }

// Run tells the story until ctx ends. It may be called once.
func (w *World) Run(ctx context.Context) error {
	// The servers outlive the machines, so that those can say goodbye.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	world, ctx := errgroup.WithContext(ctx)
	world.Go(func() error { return w.Broker.Run(serving) })
	world.Go(func() error { return w.Controller.Run(serving, w.hushed) })
	for _, s := range w.times {
		world.Go(func() error { return s.Run(serving) })
	}
	world.Go(func() error {
		defer stop()
		if err := w.play(ctx); err != nil {
			return err
		}
		<-ctx.Done() // the machines may have been hushed before
		return nil
	})
	return world.Wait()
}

// play runs the machines until ctx ends or they are hushed.
func (w *World) play(ctx context.Context) error {
	machines, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	machines.Go(func() error {
		select {
		case <-w.hushed:
			stop()
		case <-ctx.Done():
		}
		return nil
	})
	start := w.cfg.Now().Add(prelude)
	for i, m := range Cast() {
		d := &device{
			Machine: m, broker: w.Broker.Addr(), start: start, now: w.cfg.Now, told: w.cfg.Told,
			dice: rand.New(rand.NewPCG(w.cfg.Seed, uint64(i))),
		}
		machines.Go(func() error { return d.run(ctx) })
	}
	return machines.Wait()
}

// Close frees the ports of a world that never ran.
func (w *World) Close() {
	w.Broker.close()
	w.Controller.close()
	for _, s := range w.times {
		s.conn.Close()
	}
}
