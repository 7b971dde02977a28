// Package interop runs the real binary against real peers: mosquitto as the
// broker of the devices and of the uplink, chrony as NTP servers. It asserts on
// what a real MQTT client receives.
//
// It runs with TIDEMARK_INTEROP=1 only, and then a peer that is missing fails it.
package interop

import (
	"fmt"
	"os"
	"testing"

	"tidemark/test/process"
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
	if binary, err = process.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
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
