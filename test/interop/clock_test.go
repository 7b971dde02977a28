package interop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/test/process"
)

// What chronyd can be as a server, beside one that is well.

// unsynchronised wait for a server that is not there.
func unsynchronised(t *testing.T, n int) (addrs []string) {
	return serving(t, n, "server 127.0.0.1 port 9 iburst")
}

// alone have nothing but their own clocks.
func alone(t *testing.T, n int) (addrs []string) { return serving(t, n, "local stratum 10") }

// lying are 90 s ahead, and sure of it.
func lying(t *testing.T, n int) (addrs []string) {
	s := timeServersAhead(t, n, 90*time.Second)
	s.start(t)
	return s.addrs
}

func serving(t *testing.T, n int, source string) (addrs []string) {
	t.Helper()
	for range n {
		port := process.FreePort(t, "udp")
		chrony(t, port, source, 0).Start()
		addrs = append(addrs, process.Loopback(port))
	}
	return addrs
}

// TestKindsOfTimeServers: what chronyd is, the gateway sees, and its readings wait
// where no majority vouches for the time.
func TestKindsOfTimeServers(t *testing.T) {
	for name, tc := range map[string]struct {
		good    int
		others  func(t *testing.T, n int) []string
		n       int
		state   string
		verdict string // of the others
	}{
		"all are well":          {4, alone, 0, "synchronized", ""},
		"unsynchronised":        {0, unsynchronised, 3, "unknown", "leap_alarm"},
		"local stratum 10":      {0, alone, 3, "unknown", "local"},
		"one of four lies":      {3, lying, 1, "synchronized", "falseticker"},
		"two of four lie":       {2, lying, 2, "unreliable", "no_majority"},
		"one is unsynchronised": {3, unsynchronised, 1, "synchronized", "leap_alarm"},
	} {
		t.Run(name, func(t *testing.T) {
			begin(t)
			times := newTimeServers(t, tc.good)
			times.start(t)
			servers := append(slices.Clone(times.addrs), tc.others(t, tc.n)...)
			in := process.NewMosquitto(t)
			g := newService(t, servers, in, process.NewMosquitto(t))
			g.Start()
			process.Eventually(t, 30*time.Second, func() error {
				if err := g.clockIs(tc.state)(); err != nil {
					return err
				}
				st, err := g.status()
				if err != nil {
					return err
				}
				for i, s := range st.Clock.Servers {
					if want := verdictOf(i < tc.good, tc.state, tc.verdict); s.Verdict != want {
						return fmt.Errorf("server %d is %s, want %s: %+v", i, s.Verdict, want, s)
					}
				}
				return nil
			})
			device := newPublisher(t, in, "device")
			if err := device.send(t.Context(), time.Now(), send{sensor: "s", id: "1", value: 1}); err != nil {
				t.Fatal(err)
			}
			process.Eventually(t, 10*time.Second, func() error {
				st, err := g.status()
				if err != nil {
					return err
				}
				c := st.Inputs[0].Counts
				if tc.state == "synchronized" && c.Accepted == 1 || tc.state != "synchronized" && c.Pending == 1 && st.Clock.Advice != "" {
					return nil
				}
				return fmt.Errorf("%s: %+v, %q", tc.state, c, st.Clock.Advice)
			})
			g.stop()
		})
	}
}

func verdictOf(good bool, state, others string) string {
	switch {
	case good && state == "unreliable":
		return "no_majority"
	case good:
		return "truechimer"
	}
	return others
}

// wallClock is a wall clock that one process sees and that can be set: its system
// calls go through a user-mode emulator whose C library asks libfaketime. Its other
// clocks run as they do. A time namespace moves those only, and setting the host's
// clock is no test's business.
type wallClock struct {
	t    *testing.T
	file string
}

// under makes the gateway see a wall clock that is off by that much.
func (s *service) under(off time.Duration) *wallClock {
	s.T.Helper()
	dir := filepath.Dir(s.config)
	w := &wallClock{s.T, filepath.Join(dir, "wall-clock")}
	w.set(off)
	emulator := map[string]string{"amd64": "qemu-x86_64", "arm64": "qemu-aarch64"}[runtime.GOARCH]
	env := append(fakedTime(s.T), "FAKETIME_TIMESTAMP_FILE="+w.file, "FAKETIME_NO_CACHE=1", emulator)
	s.Process = process.Prepare(s.T, dir, "env", append(env, s.Args...)...)
	return w
}

// set puts the clock that much ahead of true time.
func (w *wallClock) set(off time.Duration) {
	w.t.Helper()
	next := w.file + ".next"
	process.Write(w.t, next, fmt.Sprintf("%+.3f\n", off.Seconds()))
	if err := os.Rename(next, w.file); err != nil { // never half of it
		w.t.Fatal(err)
	}
}

// pending checks that n readings wait.
func (s *service) pending(n int64) func() error {
	return func() error {
		st, err := s.status()
		if err == nil && st.Inputs[0].PendingNow != n {
			err = fmt.Errorf("%d readings are pending, want %d: %+v", st.Inputs[0].PendingNow, n, st.Inputs[0].Counts)
		}
		return err
	}
}

// sendSome publishes n readings and returns when the broker has them.
func (p *publisher) sendSome(prefix string, n int) {
	p.t.Helper()
	for i := range n {
		r := send{sensor: "s", id: fmt.Sprint(prefix, i), value: 1}
		if err := p.send(p.t.Context(), time.Now(), r); err != nil {
			p.t.Fatal(err)
		}
	}
}

// TestStepOfTheGatewaysClock: the host's clock is set an hour ahead and, once it is
// known to be wrong, back. What arrives in between waits and is then judged by the
// time that it was; nobody is accused.
func TestStepOfTheGatewaysClock(t *testing.T) {
	begin(t)
	w := newWorld(t)
	w.times.start(t)
	wall := w.gateway.under(0)
	w.gateway.ready()
	device := newPublisher(t, w.in, "device")
	device.sendSome("before-", 10)
	process.Eventually(t, 20*time.Second, w.gateway.conserved(10, 0))

	wall.set(time.Hour)
	device.sendSome("between-", 10)
	// Polls lead out of disrupted; an hour off is then known, and not believed.
	process.Eventually(t, 30*time.Second, w.gateway.clockIs("unknown"))
	process.Eventually(t, 20*time.Second, w.gateway.pending(10))
	st, err := w.gateway.status()
	if err != nil {
		t.Fatal(err)
	}
	if c := st.Clock; c.OffsetHiNS > -3599e9 || c.OffsetLoNS < -3601e9 || !strings.Contains(c.Advice, "more than a minute off") {
		t.Errorf("an hour ahead: %+v", c)
	}

	wall.set(0)
	process.Eventually(t, 30*time.Second, w.gateway.clockIs("synchronized"))
	device.sendSome("after-", 10)
	process.Eventually(t, 30*time.Second, w.gateway.conserved(30, 0))
	process.Eventually(t, 10*time.Second, w.out.toldOf("clock", `"step":"STEP_UNEXPLAINED"`, `"step":"STEP_EXPLAINED"`))
	process.Eventually(t, 10*time.Second, w.out.toldOf("epoch_correction", `"corrected_epoch"`))
	if err := w.out.sound(); err != nil {
		t.Error(err)
	}
	w.gateway.stop()
}

// TestBootIn1970: a gateway without a clock of its own starts in 1970. Its readings
// wait, over a kill too, and are judged right when its clock is set.
func TestBootIn1970(t *testing.T) {
	begin(t)
	w := newWorld(t)
	w.times.start(t)
	wall := w.gateway.under(-time.Duration(time.Now().Unix()-100) * time.Second)
	w.gateway.Start()
	process.Eventually(t, 30*time.Second, w.gateway.clockIs("unknown"))
	device := newPublisher(t, w.in, "device")
	process.Eventually(t, 30*time.Second, w.gateway.connected)
	device.sendSome("first-", 10)
	process.Eventually(t, 20*time.Second, w.gateway.pending(10))
	w.gateway.End(syscall.SIGKILL)
	w.gateway.Start()
	process.Eventually(t, 30*time.Second, w.gateway.connected)
	device.sendSome("second-", 10)
	process.Eventually(t, 20*time.Second, w.gateway.pending(20))
	if st, err := w.gateway.status(); err != nil || st.Clock.State != "unknown" || st.Generation != 0 || !strings.HasPrefix(st.At, "1970") {
		t.Errorf("in 1970: %+v, %v", st, err)
	}

	wall.set(0)
	process.Eventually(t, 30*time.Second, w.gateway.clockIs("synchronized"))
	device.sendSome("third-", 10)
	process.Eventually(t, 30*time.Second, w.gateway.conserved(30, 0))
	process.Eventually(t, 10*time.Second, w.out.toldOf("epoch_correction", `"corrected_epoch"`))
	if err := w.out.sound(); err != nil {
		t.Error(err)
	}
	w.gateway.stop()
}

// connected checks that the input's broker has the gateway's session.
func (s *service) connected() error {
	st, err := s.status()
	if err == nil && (st.Inputs[0].Reader == nil || st.Inputs[0].Reader.State != "connected") {
		err = fmt.Errorf("the input is not connected: %+v", st.Inputs[0].Reader)
	}
	return err
}

// toldOf checks that events of a kind were heard that hold each of some texts.
func (c *consumer) toldOf(kind string, texts ...string) func() error {
	return func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		var errs []error
		for _, text := range texts {
			if !slices.ContainsFunc(c.events, func(e string) bool { return strings.Contains(e, `"kind":"`+kind+`"`) && strings.Contains(e, text) }) {
				errs = append(errs, fmt.Errorf("no event %s with %s among %d", kind, text, len(c.events)))
			}
		}
		return errors.Join(errs...)
	}
}
