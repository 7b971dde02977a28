package clock_test

import (
	"testing"

	"tidemark/clock"
	"tidemark/reading"
)

// What a server has said all of counts no further than the gateway can vouch for
// itself (SEMANTICS G3), and not at all where it cannot.
func TestVouched(t *testing.T) {
	c := clock.New(clock.Config{Trust: clock.TrustLocal}, clock.Options{})
	now := c.Now()
	past, future := now.WallNS/1e6-60_000, now.WallNS/1e6+60_000
	if got := c.Vouched("in", past); got != past {
		t.Errorf("a minute ago became %d ms later", got-past)
	}
	most := reading.FloorMS(c.Now().WallNS - now.BoundNS)
	if got := c.Vouched("in", future); got > most || got < most-60_000 {
		t.Errorf("in a minute became %d ms after what can be vouched for", got-most)
	}
	// A server whose clock is proven wrong vouches for nothing.
	c.ObserveServer("fast", reading.ServerExchange{SentBootNS: now.BootNS, ReceivedBootNS: now.BootNS + 1e6, ServerNS: now.WallNS + 3600e9, ResolutionNS: 1e6})
	if got := c.Vouched("fast", past); got != reading.NoTime {
		t.Errorf("a server an hour ahead vouches for %d", got)
	}
	unknown := clock.New(clock.Config{}, clock.Options{})
	if got := unknown.Vouched("in", past); got != reading.NoTime {
		t.Errorf("an untrusted gateway vouches for %d", got)
	}
}
