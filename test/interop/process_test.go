package interop

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// process is a program that a test starts and stops, more than once if it likes.
// What it says is shown if the test fails.
type process struct {
	t    *testing.T
	name string
	args []string
	log  string
	cmd  *exec.Cmd
	done chan error
}

// prepare makes a process that is not started yet. Its program must be there.
func prepare(t *testing.T, dir, program string, args ...string) *process {
	t.Helper()
	found, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is needed for this suite: %v", program, err)
	}
	p := &process{t: t, name: filepath.Base(program), args: append([]string{found}, args...), log: filepath.Join(dir, filepath.Base(program)+".log")}
	t.Cleanup(func() {
		if p.running() {
			p.end(syscall.SIGTERM)
		}
		if t.Failed() {
			t.Logf("%s %s said last:\n%s", p.name, dir, tail(p.log, 6000))
		}
	})
	return p
}

func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-n):])
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
		p.t.Fatalf("%s: %v", p.name, err)
	}
	p.done = make(chan error, 1)
	go func() { p.done <- p.cmd.Wait() }()
}

func (p *process) running() bool { return p.cmd != nil }

// end sends a signal, waits for the process to be gone and returns its exit code,
// -1 if the signal ended it.
func (p *process) end(sig syscall.Signal) int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("%s: %v", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.t.Errorf("%s ignored %v for 20 s", p.name, sig)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	code := p.cmd.ProcessState.ExitCode()
	p.cmd = nil
	return code
}

// freePort returns a loopback port that nobody listens on.
func freePort(t *testing.T, network string) int {
	t.Helper()
	if network == "udp" {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.LocalAddr().(*net.UDPAddr).Port
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
