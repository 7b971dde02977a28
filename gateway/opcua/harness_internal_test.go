package opcua

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"tidemark/reading"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is the host's clock.
type host struct{ began time.Time }

func (h host) Now() reading.Instant {
	n := time.Now()
	return reading.Instant{WallNS: n.UnixNano(), BootNS: int64(n.Sub(h.began)), BoundNS: 1e6}
}

func (host) ObserveServer(reading.ServerExchange) {}

// gateway is a sink that a test looks into, with a disk that it can hold up.
type gateway struct {
	mu       sync.Mutex
	readings []reading.Reading
	marks    []reading.MarkKind
	gaps     []reading.Gap
	rejects  []reading.Reject
	memory   []byte
	open     []reading.Parcel // not committed
	held     bool             // nothing is committed
}

func (g *gateway) Deliver(_ context.Context, p reading.Parcel) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readings, g.gaps, g.rejects = append(g.readings, p.Readings...), append(g.gaps, p.Gaps...), append(g.rejects, p.Rejects...)
	for _, m := range p.Marks {
		if m.Kind != reading.MarkActive {
			g.marks = append(g.marks, m.Kind)
		}
	}
	g.open = append(g.open, p)
	if !g.held {
		g.commit()
	}
	return nil
}

// commit puts everything on disk. The lock is held.
func (g *gateway) commit() {
	for _, p := range g.open {
		if p.Memory != nil {
			g.memory = p.Memory
		}
		if p.Source != nil {
			p.Source.Committed(p.Token)
		}
	}
	g.open = nil
}

func (g *gateway) do(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// values lists what came of a sensor, initial values in brackets, and those that
// were sent again with a star.
func (g *gateway) values(sensor string) (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.readings {
		if r.Tag.Value().Sensor != sensor {
			continue
		}
		s := fmt.Sprint(r.Value.Float())
		if r.Delivery.Has(reading.Redelivered) {
			s += "*"
		}
		if r.Delivery.Has(reading.Initial) {
			s = "(" + s + ")"
		}
		list = append(list, s)
	}
	return list
}

func (g *gateway) reasons() (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, x := range g.gaps {
		list = append(list, x.Reason)
	}
	return list
}

// rejected lists why what came was no reading.
func (g *gateway) rejected() (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, x := range g.rejects {
		list = append(list, x.Reason)
	}
	return list
}

// until waits for something to become true.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// run runs a reader of nodes of p until the test stops it.
func run(t testing.TB, p *peer, g *gateway, change func(*Config), nodes ...string) (r *Reader, stop func()) {
	t.Helper()
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Input: "in", Endpoint: u, Security: "none", Nodes: []Nodes{{Tags: tagged(nodes...)}}, Memory: g.memory, CatchUpMax: time.Minute}
	if change != nil {
		change(&cfg)
	}
	r, err = New(cfg, g, host{time.Now()}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return r, stop
}

func connected(t *testing.T, r *Reader) {
	t.Helper()
	until(t, "the reader is connected", func() bool { return r.Status().State == Connected })
}

func got(t *testing.T, g *gateway, sensor string, want ...string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%s is %q", sensor, g.values(sensor))
		}
	}()
	until(t, fmt.Sprintf("%s is %q", sensor, want), func() bool { return slices.Equal(g.values(sensor), want) })
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// second is a moment that a test's values are measured at.
func second(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }
