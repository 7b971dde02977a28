package interop

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/beevik/ntp"

	"tidemark/test/process"
)

// timeServers are chronyds on loopback ports, and the one above them that they
// follow: a server that follows only its own clock says so in its reference id,
// and would rightly count as a local reference.
type timeServers struct {
	root   *process.Process
	leaves []*process.Process
	addrs  []string
}

func newTimeServers(t *testing.T, n int) *timeServers { return timeServersAhead(t, n, 0) }

// timeServersAhead lie by that much, and agree with each other.
func timeServersAhead(t *testing.T, n int, off time.Duration) *timeServers {
	t.Helper()
	s := &timeServers{}
	port := process.FreePort(t, "udp")
	s.root = chrony(t, port, "local stratum 2", off)
	s.root.Start()
	for range n {
		leaf := process.FreePort(t, "udp")
		s.leaves = append(s.leaves, chrony(t, leaf, fmt.Sprintf("server 127.0.0.1 port %d iburst minpoll -2 maxpoll -2\nacquisitionport 0", port), off))
		s.addrs = append(s.addrs, process.Loopback(leaf))
	}
	return s
}

// chrony serves the time of this machine, or one that is ahead of it.
func chrony(t *testing.T, port int, source string, off time.Duration) *process.Process {
	t.Helper()
	dir := process.Scratch(t)
	conf := filepath.Join(dir, "chrony.conf")
	process.Write(t, conf, fmt.Sprintf(`port %d
bindaddress 127.0.0.1
allow 127.0.0.1
cmdport 0
bindcmdaddress /
pidfile %s/chronyd.pid
%s
`, port, dir, source))
	// -x: leave this machine's clock alone; -d: stay in the foreground.
	args := []string{"-x", "-d", "-u", "root", "-f", conf}
	if off == 0 {
		return process.Prepare(t, dir, "chronyd", args...)
	}
	env := append(fakedTime(t), fmt.Sprintf("FAKETIME=%+.3f", off.Seconds()), "chronyd")
	return process.Prepare(t, dir, "env", append(env, args...)...)
}

// start returns when every server answers as one that is synchronized.
func (s *timeServers) start(t *testing.T) {
	t.Helper()
	for _, l := range s.leaves {
		l.Start()
	}
	for _, addr := range s.addrs {
		process.Eventually(t, 20*time.Second, func() error {
			r, err := ntp.QueryWithOptions(addr, ntp.QueryOptions{Timeout: 500 * time.Millisecond})
			if err != nil {
				return err
			}
			return r.Validate()
		})
	}
}

func (s *timeServers) stop() {
	for _, l := range s.leaves {
		l.End(syscall.SIGTERM)
	}
}

// fakedTime is the environment in which libfaketime shows a program another wall
// clock, and nothing else.
func fakedTime(t *testing.T) []string {
	t.Helper()
	libs, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(libs) == 0 {
		t.Fatalf("libfaketime is needed for this suite: %v", err)
	}
	return []string{"LD_PRELOAD=" + libs[0], "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1"}
}
