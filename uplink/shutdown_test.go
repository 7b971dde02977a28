package uplink_test

import (
	"context"
	"slices"
	"testing"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/rs/zerolog"

	"tidemark/uplink"
)

// At the end what is left is sent, the status says goodbye and no will is left.
func TestShutdownDrains(t *testing.T) {
	b := startBroker(t, func(c *mqtt.Capabilities) { c.ReceiveMaximum = 10 })
	src := newOutbox()
	cfg := quick()
	cfg.URL = b.url()
	u, stop := run(t, cfg, src, nil)
	eventually(t, "online", func() bool { return u.Status().State == uplink.StateOnline })
	src.numbered(2000)
	stop()
	inOrder(t, b.records(), 2000)
	if got, want := b.states(), []string{"online ", "offline shutdown"}; !slices.Equal(got, want) {
		t.Errorf("states: %q", got)
	}
	for _, p := range b.filter(func(p published) bool { return p.n < 0 }) {
		checkRecord(t, p.payload)
		if !p.retain {
			t.Errorf("%s is not retained", p.topic)
		}
	}
}

// What came before the end goes, however shortly before.
func TestShutdownDrainsTheLastMinute(t *testing.T) {
	b := startBroker(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := quick()
	cfg.URL = b.url()
	u, err := uplink.New(cfg, &lastMinute{newOutbox(), cancel}, enc, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Run(ctx); err != nil {
		t.Fatal(err)
	}
	inOrder(t, b.records(), 20)
}

// A shutdown while the broker is silent ends with the drain timeout, and the
// broker's will says offline.
func TestShutdownDeadline(t *testing.T) {
	b := startBroker(t, nil)
	p := startProxy(t, b.addr)
	src := newOutbox()
	cfg := quick()
	cfg.URL, cfg.DrainTimeout, cfg.AckTimeout = p.url(), 100*time.Millisecond, time.Minute
	u, stop := run(t, cfg, src, nil)
	eventually(t, "online", func() bool { return u.Status().LastAckNS != 0 })
	p.setHole(true)
	src.numbered(10)
	begin := time.Now()
	stop()
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("took %v", d)
	}
	p.setHole(false)
	eventually(t, "will", func() bool { return slices.Contains(b.states(), "offline connection_lost") })
}

func TestStopWhileBrokerIsAway(t *testing.T) {
	b := startBroker(t, nil)
	b.stop()
	cfg := quick()
	cfg.URL, cfg.BackoffMin, cfg.BackoffMax = b.url(), time.Hour, time.Hour
	u, stop := run(t, cfg, newOutbox(), nil)
	eventually(t, "an attempt", func() bool { return u.Status().Failures == 1 })
	stop()
}
