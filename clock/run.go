package clock

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// lookEvery is how often the clocks are compared for steps and sleeps.
const lookEvery = time.Second

// Run polls, watches for steps and lets the bound grow until ctx ends; then it
// returns nil after its goroutines have. It is called once.
func (c *Clock) Run(ctx context.Context) error {
	c.logStart()
	c.tellEarly()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { c.dev.watchSteps(ctx, c.notice); return nil })
	g.Go(func() error { c.watch(ctx); return nil })
	g.Go(func() error { c.poll(ctx); return nil })
	return g.Wait()
}

func (c *Clock) logStart() {
	if len(c.cfg.Servers) == 0 && c.cfg.Trust == TrustChecked {
		c.log.Warn().Msg("no NTP servers are configured: readings wait as pending unless chronyd or the kernel vouches for the clock; set clock.servers (four recommended)")
	}
	if c.cfg.Trust == TrustLocal {
		c.log.Warn().Dur("bound_ms", c.cfg.LocalBound).Msg("clock.trust is local: the host's clock is believed unchecked; for benches only")
	}
}

// watch looks at the clocks every second.
func (c *Clock) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.notice()
		}
	}
}

// poll runs the rounds.
func (c *Clock) poll(ctx context.Context) {
	s := newSchedule(c.cfg)
	for {
		answered := c.round(ctx)
		wait := time.NewTimer(s.next(c.Now().State.Trusted(), answered))
		c.mu.Lock()
		c.interval = s.interval
		c.mu.Unlock()
		earliest := time.NewTimer(s.floor)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-wait.C:
				waiting = false
			case <-c.soon: // a step: ask as soon as the floor allows
				s.out = true
				select {
				case <-ctx.Done():
					return
				case <-wait.C:
				case <-earliest.C:
				}
				waiting = false
			}
		}
		wait.Stop()
		earliest.Stop()
	}
}
