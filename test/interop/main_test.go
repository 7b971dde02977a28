// Package interop runs the real binary against real peers: mosquitto as the
// broker of the devices and of the uplink, chrony as NTP servers. It asserts on
// what a real MQTT client receives.
//
// It runs with TIDEMARK_INTEROP=1 only, and then a peer that is missing fails it.
package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// binary is the command under test, built once.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv("TIDEMARK_INTEROP") == "" {
		os.Exit(m.Run()) // every test skips
	}
	os.Exit(built(m.Run))
}

func built(run func() int) int {
	dir, err := os.MkdirTemp("", "tidemark-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "tidemark")
	build := exec.Command("go", "build", "-o", binary, "tidemark/cmd/tidemark")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot build the command:", err)
		return 1
	}
	return run()
}

// begin skips a test of the suite where it is not asked for. Tests run beside
// each other: they mostly wait.
func begin(t *testing.T) {
	t.Helper()
	if binary == "" {
		t.Skip("set TIDEMARK_INTEROP=1 to run against mosquitto and chrony")
	}
	t.Parallel()
}

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

// eventually waits until check finds nothing to say any more.
func eventually(t *testing.T, limit time.Duration, check func() error) {
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
		time.Sleep(50 * time.Millisecond)
	}
}
