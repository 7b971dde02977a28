package clock_test

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tidemark/clock"
	"tidemark/reading"
)

// The real device against servers on loopback, as the demo has them: one of four
// lies. Nothing is left behind when it ends.
func TestRealDeviceAgainstLoopbackServers(t *testing.T) {
	good := func(a []byte) []byte { return a }
	cfg := clock.Config{PollMin: 250 * time.Millisecond, Servers: []string{
		ntpServer(t, good), ntpServer(t, good), ntpServer(t, good),
		ntpServer(t, func(a []byte) []byte { shift(a, 32, 90*time.Second); shift(a, 40, 90*time.Second); return a }),
	}}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	c := clock.New(cfg, clock.Options{Log: zerolog.Nop()})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	for c.Now().State != reading.ClockSynchronized && ctx.Err() == nil {
		<-c.Changed()
	}
	s := c.Status()
	if s.State != "synchronized" || s.BoundNS > int64(time.Second) || s.Servers[3].Verdict != "falseticker" {
		t.Errorf("%+v", s)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Now is given out to every reader at once, and a step is noticed by one of them.
func TestNowIsSafeForConcurrentUse(t *testing.T) {
	run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(10 * time.Second)
		epoch := c.Now().Segment.Epoch
		w.step(time.Hour)
		got := make(chan reading.Instant)
		for range 8 {
			go func() { got <- c.Now() }()
		}
		for range 8 {
			if now := <-got; now.State != reading.ClockDisrupted || now.Segment.Epoch != epoch+1 {
				t.Errorf("after a step: %v in epoch %d, want one new epoch after %d", now.State, now.Segment.Epoch, epoch)
			}
		}
	})
}
