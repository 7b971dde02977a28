package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/gateway"
)

func contextFor(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// process is a program that is started and ended, more than once. What it says is
// shown if the test fails.
type process struct {
	t    *testing.T
	args []string
	log  string
	cmd  *exec.Cmd // nil while it does not run
}

func prepare(t *testing.T, dir, program string, args ...string) *process {
	t.Helper()
	found, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is needed for this test: %v", program, err)
	}
	p := &process{t: t, args: append([]string{found}, args...), log: filepath.Join(dir, filepath.Base(program)+".log")}
	t.Cleanup(func() {
		if p.cmd != nil {
			p.end(syscall.SIGTERM)
		}
		if said, err := os.ReadFile(p.log); t.Failed() && err == nil {
			t.Logf("%s said last:\n%s", program, said[max(0, len(said)-8000):])
		}
	})
	return p
}

func (p *process) start() {
	p.t.Helper()
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
	defer out.Close()
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// end sends a signal and returns the exit code of the process, -1 if the signal
// ended it. One that ended by itself is a fault of the test.
func (p *process) end(sig syscall.Signal) int {
	p.t.Helper()
	cmd := p.cmd
	p.cmd = nil
	if err := cmd.Process.Signal(sig); errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("%s had ended by itself", p.args[0])
	}
	timer := time.AfterFunc(30*time.Second, func() {
		p.t.Errorf("%s ignored %v for 30 s", p.args[0], sig)
		_ = cmd.Process.Kill()
	})
	defer timer.Stop()
	_ = cmd.Wait()
	if st := cmd.ProcessState; sig == syscall.SIGKILL && st.Exited() {
		p.t.Errorf("%s had ended by itself with exit code %d", p.args[0], st.ExitCode())
	}
	return cmd.ProcessState.ExitCode()
}

// broker is a mosquitto on a loopback port, which keeps a session's messages.
type broker struct {
	*process
	addr string
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	dir := scratch(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	conf := filepath.Join(dir, "mosquitto.conf")
	write(t, conf, fmt.Sprintf("listener %d 127.0.0.1\nallow_anonymous true\nuser root\nmax_inflight_messages 1000\nmax_queued_messages 0\n", port))
	b := &broker{prepare(t, dir, "mosquitto", "-c", conf), net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	b.start()
	eventually(t, 10*time.Second, func() error {
		c, err := net.Dial("tcp", b.addr)
		if err == nil {
			c.Close()
		}
		return err
	})
	return b
}

func (b *broker) url() string { return "mqtt://" + b.addr }

// scratch is a directory with a path short enough for a Unix socket.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tm-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// service is `tidemark run` with its configuration.
type service struct {
	*process
	binary, config, store string
}

// newGateway prepares a gateway whose files lie in dir.
func newGateway(t *testing.T, dir, binary string, up *broker, sources []source) *service {
	t.Helper()
	s := &service{binary: binary, config: filepath.Join(dir, "tidemark.yaml"), store: filepath.Join(dir, "tidemark.db")}
	var inputs strings.Builder
	for _, in := range sources {
		inputs.WriteString(in.config())
	}
	write(t, s.config, fmt.Sprintf(`gateway: {id: crash}
clock: {trust: local, local_bound: 50ms}
store: {path: tidemark.db, quota: 1GiB, retain: 1d, commit_interval: 100ms}
web: {listen: ""}
inputs:
%sfeatures:
  - name: four-seconds
    version: 1
    window: 4s
    out_of_orderness: %v
    allowed_lateness: %v
    idle_after: 1h
    correct_every: 0s
    flush_after: 0s
    functions: [count, sum, min, max]
uplinks:
  - name: plant
    mqtt: {url: "%s"}
`, inputs.String(), order, lateness, up.url()))
	s.process = prepare(t, dir, binary, "run", "-c", s.config)
	return s
}

// command runs another command of the binary and reads the JSON that it prints.
func (s *service) command(into any, args ...string) error {
	ctx, cancel := contextFor(2 * time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.binary, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("tidemark %s: %w: %s\n%s", args[0], err, exit.Stderr, out[:min(len(out), 4000)])
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

func (s *service) status() (*gateway.Status, error) {
	st := &gateway.Status{}
	return st, s.command(st, "status", "-c", s.config, "--json")
}

// connected checks that every input has its session.
func (s *service) connected() error {
	st, err := s.status()
	if err != nil {
		return err
	}
	for _, in := range st.Inputs {
		if in.Reader == nil || in.Reader.State != "connected" {
			return fmt.Errorf("not yet: %+v", st.Because)
		}
	}
	return nil
}

// conserved checks law 5: each distinct reading was accepted once, and nothing is
// missing from any sum.
func (s *service) conserved(sources []source) error {
	st, err := s.status()
	if err != nil {
		return err
	}
	assigned, accepted := uint64(0), uint64(0)
	for i, src := range sources {
		_, distinct := src.known()
		c := st.Inputs[i].Counts
		accepted += c.Accepted
		switch sum := c.Accepted + c.Duplicate + c.Malformed + c.Unmatched + c.Quarantined + c.Pending; {
		case c.Received != sum || !st.Conserved:
			return fmt.Errorf("received %d, but the outcomes sum up to %d: %+v", c.Received, sum, c)
		case c.Accepted != uint64(distinct):
			return fmt.Errorf("%d accepted of %d sent: %+v %v %v", c.Accepted, distinct, c, st.Inputs[i].Quarantine, st.Inputs[i].Rejects)
		}
	}
	for _, f := range st.Features {
		assigned += f.Windowed + f.Late + f.Excluded
	}
	if assigned != accepted {
		return fmt.Errorf("%d readings accepted, %d assigned: %+v", accepted, assigned, st.Features)
	}
	return nil
}

// checkStore looks at the store that lies there: sound, and its journal stepped
// again from the first block gives what was committed with it (law 2).
func (s *service) checkStore() string {
	s.t.Helper()
	var found struct {
		Replay gateway.Restepped
	}
	if err := s.command(&found, "store", "check", s.store, "--replay", "--json"); err != nil {
		s.t.Fatal(err)
	}
	r := found.Replay
	if r.From != 1 || !r.OK() {
		s.t.Fatalf("the journal does not lead to what was committed: %+v", r)
	}
	return fmt.Sprintf("%d blocks with %d readings give the %d results committed with them, also from %d checkpoints", r.Blocks, r.Readings, r.Emissions, r.Checkpoints)
}
