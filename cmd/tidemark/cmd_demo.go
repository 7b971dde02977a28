package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"tidemark/clock"
	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/gateway/sim"
)

// demo is `tidemark demo`: the whole product in one process, with a simulated
// world around it.
type demo struct {
	limit   limit
	format  string
	keep    bool
	verbose bool
	seed    uint64

	dir   string // of the store, the log and the configuration
	now   func() time.Time
	world *sim.World
	gw    *gateway.Gateway
	told  chan demoTold
}

// limit is a flag: a duration as configurations have them. 0 is none.
type limit configs.Duration

func (l *limit) String() string { return configs.Duration(*l).String() }
func (l *limit) Type() string   { return "duration" }

func (l *limit) Set(s string) error {
	d, err := configs.ParseDuration(strings.TrimSpace(s))
	if err == nil && d < 0 {
		err = fmt.Errorf("%v is in the past", d)
	}
	if err == nil {
		*l = limit(d)
	}
	return err
}

// demoTold is what reaches the view; one of its fields is set.
type demoTold struct {
	record []byte // as published
	event  *demoEvent
	status *demoStatus
}

func newDemoCmd() *cobra.Command {
	d := &demo{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run everything in one process, against a simulated plant",
		Long: `Run the whole gateway in one process with nothing installed and no network: a
broker, time servers of which one lies, a controller with an OPC UA server, and
machines that are late, repeat themselves, stamp the future, go silent and come
back with a backlog. Shows the
results as they come, in place on a terminal, else line by line.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.Var(&d.limit, "for", "end after this long, such as 60s; 0 runs until interrupted")
	f.StringVar(&d.format, "format", "text", "text, or json: each record as it goes upstream, one a line")
	f.BoolVar(&d.keep, "keep", false, "keep the store, the log and the configuration, and say where")
	f.BoolVar(&d.verbose, "verbose", false, "show the gateway's log on stderr")
	f.Uint64Var(&d.seed, "seed", 1, "of the simulated plant's chance")
	return cmd
}

func (d *demo) run(ctx context.Context, out, errOut io.Writer) (err error) {
	if d.format != "text" && d.format != "json" {
		return fmt.Errorf("unknown format %q: text or json", d.format)
	}
	// A pipe that closes is an error of writing like any other: without this the
	// process would end at once and leave its directory behind.
	signal.Ignore(syscall.SIGPIPE)
	if d.dir, err = os.MkdirTemp("", "tidemark-demo-"); err != nil {
		return runtimeError(fmt.Errorf("cannot make a directory for the demo: %w", err))
	}
	if !d.keep {
		defer os.RemoveAll(d.dir)
	}
	log, closeLog, err := d.openLog(errOut)
	if err != nil {
		return runtimeError(err)
	}
	defer closeLog()
	if err := d.build(log); err != nil {
		return runtimeError(err)
	}
	if err := d.serve(ctx, newDemoView(d, out, errOut)); err != nil {
		code := exitRuntime
		if gateway.IsStorage(err) {
			code = exitStorage
		}
		return &exitError{code, err}
	}
	if d.keep {
		fmt.Fprintf(errOut, "kept: %s\n", d.dir)
	}
	return nil
}

// openLog logs to a file beside the store, so that the view stays whole.
func (d *demo) openLog(errOut io.Writer) (zerolog.Logger, func(), error) {
	if d.verbose {
		return newLogger(errOut), func() {}, nil
	}
	f, err := os.Create(filepath.Join(d.dir, "demo.log"))
	if err != nil {
		return zerolog.Nop(), nil, fmt.Errorf("cannot write the demo's log: %w", err)
	}
	return newLogger(f), func() { _ = f.Close() }, nil
}

// build makes the world and the gateway; nothing runs yet.
func (d *demo) build(log zerolog.Logger) (err error) {
	// A clock that checks nothing: this world is right by definition.
	clk := clock.New(clock.Config{Trust: clock.TrustLocal}, clock.Options{Log: zerolog.Nop()})
	d.now = func() time.Time { return time.Unix(0, clk.Now().WallNS) }
	d.told = make(chan demoTold, 1024)
	d.world, err = sim.New(sim.Config{Seed: d.seed, Now: d.now, Told: func(h sim.Happening) {
		d.told <- demoTold{event: &demoEvent{Kind: demoMachine, At: h.At, Series: h.Machine.Asset, Words: h.What, Fold: h.What}}
	}})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			d.world.Close()
		}
	}()
	cfg, err := d.config()
	if err != nil {
		return err
	}
	err = d.world.Broker.Watch(cfg.Uplinks[0].Prefix+"/v1/#", func(_ string, payload []byte) {
		d.told <- demoTold{record: payload}
	})
	if err != nil {
		return err
	}
	d.gw = gateway.New(cfg, gateway.Options{Log: log, Version: version})
	return nil
}

// config writes the shipped configuration with the addresses of this world beside
// the store, and loads it from there.
func (d *demo) config() (*configs.Config, error) {
	data, err := configs.Files.ReadFile("demo.yaml")
	if err != nil {
		return nil, err
	}
	shipped := []string{"127.0.0.1:18830", "opc.tcp://127.0.0.1:14840", "127.0.0.1:11231", "127.0.0.1:11232", "127.0.0.1:11233", "127.0.0.1:11234"}
	var pairs []string
	for i, actual := range append([]string{d.world.Broker.Addr(), d.world.Controller.URL()}, d.world.TimeServers()...) {
		if !strings.Contains(string(data), shipped[i]) {
			return nil, fmt.Errorf("demo.yaml does not name %s", shipped[i])
		}
		pairs = append(pairs, shipped[i], actual)
	}
	path := filepath.Join(d.dir, "demo.yaml")
	if err := os.WriteFile(path, []byte(strings.NewReplacer(pairs...).Replace(string(data))), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the demo's configuration: %w", err)
	}
	return configs.Load(path)
}

// serve runs world, gateway and view until the time is up, ctx ends or something
// fails. The gateway ends first, so that what it still has reaches the view.
func (d *demo) serve(ctx context.Context, view demoView) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if d.limit > 0 {
		ctx, stop = context.WithTimeout(ctx, time.Duration(d.limit))
		defer stop()
	}
	parts, failed := errgroup.WithContext(context.WithoutCancel(ctx))
	gwCtx, stopGateway := context.WithCancel(failed)
	worldCtx, stopWorld := context.WithCancel(failed)
	defer stopGateway()
	defer stopWorld()
	parts.Go(func() error { return d.world.Run(worldCtx) })
	parts.Go(func() error {
		defer stopWorld()
		return d.gw.Run(gwCtx)
	})
	parts.Go(func() error {
		defer stopGateway()
		d.poll(ctx, failed)
		return nil
	})
	seen, over := make(chan error, 1), make(chan struct{})
	go func() { seen <- d.watch(view, stop, over) }()
	err := parts.Wait()
	close(over)
	return errors.Join(err, <-seen)
}

// watch feeds the view until it is over and everything is told. A view that fails
// stops the demo; the rest is then heard and not shown, so that nobody waits for
// it.
func (d *demo) watch(view demoView, stop func(), over <-chan struct{}) error {
	model, begin := newDemoModel(), d.now()
	err := view.begin(model, begin)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if err != nil {
			stop()
		}
		select {
		case t := <-d.told:
			if err == nil {
				err = d.show(view, model, t)
			}
			continue
		default:
		}
		select {
		case t := <-d.told:
			if err == nil {
				err = d.show(view, model, t)
			}
		case <-tick.C:
			if err == nil {
				err = view.tick(model, d.now())
			}
		case <-over:
			if ended := view.end(model, d.now().Sub(begin)); err == nil {
				err = ended
			}
			return err
		}
	}
}

func (d *demo) show(view demoView, model *demoModel, t demoTold) error {
	event := t.event
	switch {
	case t.status != nil:
		model.status = *t.status
		return nil
	case t.record != nil:
		e, ok, err := readDemoRecord(t.record, d.now())
		if err != nil {
			return err
		}
		if ok {
			event = &e
		}
	}
	if event != nil {
		model.apply(event)
	}
	return view.show(t.record, event)
}
