// Package process runs what the tests of the whole have beside them: the command
// under test and its peers, on loopback ports and in directories of their own. A
// program that is missing fails the test that needs it.
package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// patience is how long a program may take to obey a signal.
const patience = 30 * time.Second

// Process is a program that a test starts and ends, more than once if it likes. It
// ends with the test at the latest, and what it says is shown if the test fails.
type Process struct {
	T    *testing.T
	Args []string // the program's path first
	Log  string   // the file to which its output goes, of every run
	cmd  *exec.Cmd
	gone chan struct{} // closed when the present run has ended
}

// Prepare makes a process that is not started yet.
func Prepare(t *testing.T, dir, program string, args ...string) *Process {
	t.Helper()
	found, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is needed for this suite: %v", program, err)
	}
	p := &Process{T: t, Args: append([]string{found}, args...), Log: filepath.Join(dir, filepath.Base(program)+".log")}
	t.Cleanup(func() {
		if p.cmd != nil {
			p.End(syscall.SIGTERM)
		}
		if t.Failed() {
			t.Logf("%s %s said last:\n%s", filepath.Base(program), dir, Tail(p.Log, 8000))
		}
	})
	return p
}

// Start runs the program. It must not be running.
func (p *Process) Start() {
	p.T.Helper()
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		p.T.Fatal(err)
	}
	defer out.Close()
	cmd, gone := exec.Command(p.Args[0], p.Args[1:]...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		p.T.Fatalf("%s: %v", p.Args[0], err)
	}
	p.cmd, p.gone = cmd, gone
	go func() {
		_ = cmd.Wait() // its exit code stands in the state
		close(gone)
	}()
}

// PID is the number of the process that was started last.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// End sends a signal, waits for the process to be gone and returns its exit code,
// -1 if the signal ended it. A process that had ended by itself is a fault.
func (p *Process) End(sig syscall.Signal) int {
	p.T.Helper()
	switch err := p.cmd.Process.Signal(sig); {
	case errors.Is(err, os.ErrProcessDone):
		p.T.Errorf("%s had ended by itself", p.Args[0])
	case err != nil:
		p.T.Errorf("%s: %v", p.Args[0], err)
	}
	select {
	case <-p.gone:
	case <-time.After(patience):
		p.T.Errorf("%s ignored %v for %v", p.Args[0], sig, patience)
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
	return p.exited()
}

// EndsItself waits until the process has ended without a signal of ours, and returns
// its exit code.
func (p *Process) EndsItself(limit time.Duration) int {
	p.T.Helper()
	select {
	case <-p.gone:
	case <-time.After(limit):
		p.T.Fatalf("%s has not ended within %v", p.Args[0], limit)
	}
	return p.exited()
}

func (p *Process) exited() int {
	code := p.cmd.ProcessState.ExitCode()
	p.cmd = nil
	return code
}

// Eventually waits until check finds nothing to say any more.
func Eventually(t *testing.T, limit time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v still: %v", limit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
