package sim_test

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beevik/ntp"
	"go.uber.org/goleak"

	"tidemark/gateway/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWorld(t *testing.T) {
	var mu sync.Mutex
	heard := map[string]int{}
	w, err := sim.New(sim.Config{Seed: 1, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan struct{})
	var once sync.Once
	err = w.Broker.Watch("line/#", func(topic string, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		if !json.Valid(payload) {
			t.Errorf("%s: %q is no JSON", topic, payload)
		}
		heard[topic]++
		if len(heard) == len(sim.Cast()) && heard["line/mixer-1/m1/telemetry"] >= 2 {
			once.Do(func() { close(all) })
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()

	t.Run("TimeServers", func(t *testing.T) {
		liars := 0
		defer func() {
			if liars != 1 {
				t.Errorf("%d of the time servers lie, want 1", liars)
			}
		}()
		for _, addr := range w.TimeServers() {
			r := query(t, addr)
			if r.ClockOffset.Abs() > time.Second {
				liars++
			}
			if r.Stratum == 0 || r.Stratum >= 10 {
				t.Errorf("%s: stratum %d would count as a local reference", addr, r.Stratum)
			}
		}
	})
	select {
	case <-all:
	case <-time.After(15 * time.Second):
		mu.Lock()
		t.Errorf("only %v was heard", heard)
		mu.Unlock()
	}
	w.Hush()
	time.Sleep(100 * time.Millisecond) // the machines' goodbyes
	mu.Lock()
	clear(heard)
	mu.Unlock()
	time.Sleep(1200 * time.Millisecond) // longer than between two readings of a machine
	mu.Lock()
	if len(heard) > 0 {
		t.Errorf("hushed machines went on: %v", heard)
	}
	mu.Unlock()
	conn, err := net.Dial("tcp", w.Broker.Addr())
	if err != nil {
		t.Fatalf("the broker ended with the machines: %v", err)
	}
	conn.Close()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", w.Broker.Addr()); err == nil {
		conn.Close()
		t.Error("the broker outlived Run")
	}
}

func TestWorldThatNeverRan(t *testing.T) {
	w, err := sim.New(sim.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := net.Dial("tcp", w.Broker.Addr()); err == nil {
		t.Error("the broker's port is still bound")
	}
}

func TestTimeServer(t *testing.T) {
	f := func(s sim.TimeServer, ask func(t *testing.T, addr string)) func(*testing.T) {
		return func(t *testing.T) {
			if err := s.Listen(time.Now); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			ask(t, s.Addr())
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Run("Offset", f(sim.TimeServer{Stratum: 2, Offset: -3 * time.Second}, func(t *testing.T, addr string) {
		if off := query(t, addr).ClockOffset; off < -3100*time.Millisecond || off > -2900*time.Millisecond {
			t.Errorf("offset %v", off)
		}
	}))
	t.Run("Dispersion", f(sim.TimeServer{Stratum: 2, Dispersion: 50 * time.Millisecond}, func(t *testing.T, addr string) {
		if d := query(t, addr).RootDispersion; d < 49*time.Millisecond || d > 50*time.Millisecond {
			t.Errorf("dispersion %v", d)
		}
	}))
	t.Run("Drift", f(sim.TimeServer{Stratum: 2, DriftPPB: 1e9}, func(t *testing.T, addr string) {
		before := query(t, addr).ClockOffset
		time.Sleep(200 * time.Millisecond)
		if grown := query(t, addr).ClockOffset - before; grown < 150*time.Millisecond {
			t.Errorf("a clock at twice the speed gained %v in 200 ms", grown)
		}
	}))
	t.Run("Unsynchronized", f(sim.TimeServer{Stratum: 16}, func(t *testing.T, addr string) {
		r, err := ntp.Query(addr)
		if err != nil {
			t.Fatal(err)
		}
		if r.Validate() == nil {
			t.Error("stratum 16 passed")
		}
	}))
	t.Run("Loss", f(sim.TimeServer{Stratum: 2, Loss: 1}, func(t *testing.T, addr string) {
		if _, err := ntp.QueryWithOptions(addr, ntp.QueryOptions{Timeout: 50 * time.Millisecond}); err == nil {
			t.Error("an answer came through")
		}
	}))
	t.Run("Garbage", f(sim.TimeServer{Stratum: 2}, func(t *testing.T, addr string) {
		conn, err := net.Dial("udp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(strings.Repeat("x", 47))); err != nil {
			t.Fatal(err)
		}
		query(t, addr)
	}))
}

// query asks until an answer comes, since servers lose some.
func query(t *testing.T, addr string) *ntp.Response {
	t.Helper()
	for range 20 {
		r, err := ntp.QueryWithOptions(addr, ntp.QueryOptions{Timeout: 200 * time.Millisecond})
		if err != nil {
			continue
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		return r
	}
	t.Fatalf("%s does not answer", addr)
	return nil
}
