package gateway

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"tidemark/clock"
	"tidemark/configs"
	"tidemark/gateway/mqtt"
	"tidemark/gateway/opcua"
	"tidemark/reading"
	"tidemark/uplink"
)

// Probed is what was found by connecting to everything that a configuration names.
type Probed struct {
	OK      bool           `json:"ok"`
	Clock   clock.Status   `json:"clock"` // the gateway's own and, in its sources, those of the inputs
	Inputs  []ProbedInput  `json:"inputs"`
	Uplinks []ProbedUplink `json:"uplinks"`
}

// ProbedInput is an input that was read for a while.
type ProbedInput struct {
	Name     string         `json:"name"`
	OK       bool           `json:"ok"`
	Reader   *ReaderStatus  `json:"reader"`
	Readings map[string]int `json:"readings"` // by disposition
	Reasons  map[string]int `json:"reasons"`  // why readings would be in quarantine
	Rejects  map[string]int `json:"rejects"`  // what is no reading, by reason
	// WhenWrong fits what was measured of the input's sources; empty if nothing is
	// wrong with them.
	WhenWrong string `json:"when_wrong"`
}

// ProbedUplink is an uplink's broker, asked whether it would have us.
type ProbedUplink struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem"` // and the remedy
}

// clockFirst is how long the inputs wait for the gateway's clock: what comes before
// it is trusted measures no source.
const clockFirst = 6 * time.Second

// Probe connects to the NTP servers, inputs and uplinks of a configuration for some
// time, and measures every clock. It reads beside a gateway that is running: its
// sessions have names of their own and leave nothing behind, it takes no share of a
// shared subscription and it publishes no record. It is over when ctx is, at the
// latest.
func Probe(ctx context.Context, cfg *configs.Config, length time.Duration, log zerolog.Logger) (*Probed, error) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	ccfg := clockConfig(cfg)
	if err := ccfg.Validate(); err != nil {
		return nil, err
	}
	p := &probe{clk: clock.New(ccfg, clock.Options{Log: log}), policies: map[string]clock.InputPolicy{}, found: map[string]*ProbedInput{}}
	var readers []reader
	for i := range cfg.Inputs {
		in := &cfg.Inputs[i]
		p.policies[in.Name] = inputPolicy(cfg, in)
		p.found[in.Name] = &ProbedInput{Name: in.Name, Readings: map[string]int{}, Reasons: map[string]int{}, Rejects: map[string]int{}}
		r, err := p.reader(cfg, in, log)
		if err != nil {
			return nil, err
		}
		readers = append(readers, r)
	}
	out := &Probed{OK: true}
	clockCtx, stopClock := context.WithCancel(context.WithoutCancel(ctx))
	defer stopClock()
	var clocks, rest errgroup.Group
	clocks.Go(func() error { return p.clk.Run(clockCtx) })
	for i := range cfg.Uplinks {
		out.Uplinks = append(out.Uplinks, ProbedUplink{})
		rest.Go(func() error { out.Uplinks[i] = p.knock(ctx, &cfg.Uplinks[i]); return nil })
	}
	p.awaitClock(ctx)
	standings := make([]*ReaderStatus, len(readers))
	for i, r := range readers {
		rest.Go(func() error { return p.read(ctx, r, &standings[i]) })
	}
	err := rest.Wait()
	out.Clock = p.clk.Status()
	stopClock()
	if cerr := clocks.Wait(); err == nil {
		err = cerr
	}
	for i, r := range readers {
		out.Inputs = append(out.Inputs, p.conclude(r.input(), standings[i], out.Clock.Sources))
	}
	out.OK = p.clk.Trusted() && !slices.ContainsFunc(out.Inputs, func(in ProbedInput) bool { return !in.OK }) &&
		!slices.ContainsFunc(out.Uplinks, func(u ProbedUplink) bool { return !u.OK })
	return out, err
}

// probe is a gateway that only listens.
type probe struct {
	clk      *clock.Clock
	policies map[string]clock.InputPolicy
	mu       sync.Mutex // guards what follows, and judging
	found    map[string]*ProbedInput
}

// reader makes the reader of one input, whichever protocol it speaks.
func (p *probe) reader(cfg *configs.Config, in *configs.Input, log zerolog.Logger) (reader, error) {
	if in.OPCUA != nil {
		r, err := opcua.New(OPCUAConfig(cfg, in), p, serverArrivals{p.clk, in.Name}, log)
		return opcuaReader{r}, err
	}
	c := mqttConfig(cfg, in)
	c.ClientID += fmt.Sprintf("-check-%d", os.Getpid())
	c.SessionExpiry = time.Second
	c.SparkplugHost = ""
	for i := range c.Subscriptions {
		c.Subscriptions[i].Share = ""
	}
	r, err := mqtt.New(c, p, p.clk, log)
	return mqttReader{r}, err
}

// awaitClock waits until the clock is trusted, for a while.
func (p *probe) awaitClock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, clockFirst)
	defer cancel()
	for !p.clk.Trusted() {
		select {
		case <-p.clk.Changed():
		case <-ctx.Done():
			return
		}
	}
}

// read reads until ctx ends, and tells how the connection stood then.
func (p *probe) read(ctx context.Context, r reader, standing **ReaderStatus) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	over := make(chan error, 1)
	go func() { over <- r.Run(running) }()
	select {
	case err := <-over:
		*standing = r.standing()
		return err
	case <-ctx.Done():
		*standing = r.standing()
		stop()
		return <-over
	}
}

// Deliver judges what a reader brings, and lets it go.
func (p *probe) Deliver(_ context.Context, pc reading.Parcel) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.found[pc.Input]
	for i := range pc.Readings {
		r := &pc.Readings[i]
		p.clk.JudgeReading(r, p.policies[pc.Input])
		in.Readings[r.Stamp.Disposition.String()]++
		if r.Stamp.Disposition == reading.Quarantine {
			in.Reasons[r.Stamp.Reason.String()]++
		}
	}
	for _, j := range pc.Rejects {
		in.Rejects[j.Reason]++
	}
	if pc.Source != nil {
		pc.Source.Committed(pc.Token)
	}
	return nil
}

// conclude says whether the input would work, and by which policy.
func (p *probe) conclude(name string, r *ReaderStatus, sources []clock.SourceStatus) ProbedInput {
	in := *p.found[name]
	in.Reader = r
	in.OK = r != nil && r.State == "connected" && r.Problem == ""
	for _, s := range sources { // the worst first
		if s.Input == name && s.Policy != "" {
			in.WhenWrong = cmp.Or(in.WhenWrong, s.Policy)
		}
	}
	return in
}

// knock asks an uplink's broker.
func (p *probe) knock(ctx context.Context, u *configs.Uplink) ProbedUplink {
	c := uplinkConfig(u, p.clk)
	c.ClientID += fmt.Sprintf("-check-%d", os.Getpid())
	if err := uplink.Knock(ctx, c); err != nil {
		return ProbedUplink{Name: u.Name, Problem: err.Error()}
	}
	return ProbedUplink{Name: u.Name, OK: true}
}
