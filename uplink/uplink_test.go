package uplink_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/rs/zerolog"

	"tidemark/uplink"
)

// The broker may be slow, go away and come back, drop connections and swallow
// what it is sent: nothing is missing and the order holds.
func TestChaos(t *testing.T) {
	const n = 12000
	b := startBroker(t, func(c *mqtt.Capabilities) { c.ReceiveMaximum = 200 })
	p := startProxy(t, b.addr)
	src := newOutbox()
	cfg := quick()
	cfg.URL, cfg.AckTimeout = p.url(), time.Second // a loaded machine answers later than a quiet one
	u, stop := run(t, cfg, src, nil)
	faults := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-faults:
				return
			case <-time.After(time.Duration(20+rand.IntN(60)) * time.Millisecond):
			}
			switch i % 5 {
			case 0, 1, 2:
				p.drop()
			case 3:
				p.setHole(true)
				time.Sleep(1200 * time.Millisecond)
				p.drop()
				p.setHole(false)
			case 4:
				b.stop()
				b.start()
			}
		}
	})
	for range n / 100 {
		src.numbered(100)
		time.Sleep(40 * time.Millisecond)
	}
	close(faults)
	wg.Wait()
	eventually(t, "everything delivered", func() bool { return src.Waiting() == 0 })
	stop()
	again := inOrder(t, b.records(), n)
	s := u.Status()
	t.Logf("%d records over %d connections, %d sent again, %d came again", n, s.Connects, s.Resent, again)
	if s.Connects < 5 || s.State != uplink.StateStopped || s.InFlight != 0 {
		t.Errorf("status: %+v", s)
	}
}

// The broker's Receive Maximum is kept: mochi ends a connection that exceeds it.
func TestReceiveMaximum(t *testing.T) {
	for _, most := range []uint16{1, 20} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			b := startBroker(t, func(c *mqtt.Capabilities) { c.ReceiveMaximum = most })
			src := newOutbox()
			src.numbered(1000)
			cfg := quick()
			cfg.URL = b.url()
			u, stop := run(t, cfg, src, nil)
			eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
			if s := u.Status(); s.Connects != 1 || s.ReceiveMax != int(most) || s.State != uplink.StateOnline || s.LastAckNS == 0 {
				t.Errorf("status: %+v", s)
			}
			stop()
			if again := inOrder(t, b.records(), 1000); again != 0 {
				t.Errorf("%d records came again", again)
			}
		})
	}
}

// What waited is marked as replayed, what comes live is not.
func TestReplayedSaysBacklog(t *testing.T) {
	b := startBroker(t, nil)
	src := newOutbox()
	src.numbered(300)
	cfg := quick()
	cfg.URL = b.url()
	run(t, cfg, src, nil)
	eventually(t, "backlog", func() bool { return src.Waiting() == 0 })
	src.numbered(10)
	eventually(t, "live", func() bool { return src.Waiting() == 0 })
	for _, p := range b.records() {
		if want := fmt.Sprint(p.n <= 300); p.replayed != want {
			t.Fatalf("record %d: replayed is %s", p.n, p.replayed)
		}
	}
}

// A connection whose other end is gone without a word is given up and replaced.
func TestHalfOpenConnection(t *testing.T) {
	b := startBroker(t, nil)
	p := startProxy(t, b.addr)
	src := newOutbox()
	cfg := quick()
	cfg.URL, cfg.AckTimeout = p.url(), 300*time.Millisecond
	u, stop := run(t, cfg, src, nil)
	eventually(t, "online", func() bool { return u.Status().LastAckNS != 0 })
	p.setHole(true)
	src.numbered(50)
	eventually(t, "given up", func() bool { return u.Status().State == uplink.StateWaiting })
	if s := u.Status(); !strings.Contains(s.Reason, "PUBACK") && !strings.Contains(s.Reason, "cannot be made") {
		t.Errorf("reason: %s", s.Reason)
	}
	p.drop()
	p.setHole(false)
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	inOrder(t, b.records(), 50)
}

// A broker that is away at the start is no error, and is logged once.
func TestBrokerAwayAtStart(t *testing.T) {
	b := startBroker(t, nil)
	b.stop()
	src := newOutbox()
	src.numbered(5)
	cfg := quick()
	cfg.URL = b.url()
	var log bytes.Buffer
	u, stop := run(t, cfg, src, &log)
	eventually(t, "some attempts", func() bool { return u.Status().Failures > 5 })
	if s := u.Status(); s.State != uplink.StateWaiting || !strings.Contains(s.Reason, "connection refused") {
		t.Errorf("status: %+v", s)
	}
	b.start()
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	if n := strings.Count(log.String(), `"state":"waiting"`); n != 1 {
		t.Errorf("said %d times that the broker is away:\n%s", n, &log)
	}
	if strings.Contains(log.String(), `"level":"warn"`) || strings.Count(log.String(), "the uplink is online") != 1 {
		t.Errorf("a state is for the status, but that it works is said once:\n%s", &log)
	}
}

func TestConfigurationRefused(t *testing.T) {
	for want, change := range map[string]func(*uplink.Config, *uplink.Encoder){
		"scheme":       func(c *uplink.Config, _ *uplink.Encoder) { c.URL.Scheme = "http" },
		"client_id":    func(c *uplink.Config, _ *uplink.Encoder) { c.ClientID = "" },
		"url":          func(c *uplink.Config, _ *uplink.Encoder) { c.URL = nil },
		"no clock":     func(c *uplink.Config, _ *uplink.Encoder) { c.Clock = nil },
		"wildcards":    func(_ *uplink.Config, e *uplink.Encoder) { e.Prefix = "a/+" },
		"begin or end": func(_ *uplink.Config, e *uplink.Encoder) { e.Prefix = "a/" },
	} {
		cfg, e := quick(), enc
		cfg.URL = (&broker{addr: "127.0.0.1:1"}).url()
		change(&cfg, &e)
		if _, err := uplink.New(cfg, newOutbox(), e, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
