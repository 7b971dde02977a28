package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// asMain has this test program be the command instead.
const asMain = "TIDEMARK_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// A closed terminal, of which kernel and shell both tell, ends a command as Ctrl-C
// does: nothing half done is left.
func TestHangupEndsACommandInOrder(t *testing.T) {
	dir, err := os.MkdirTemp("", "tm-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, trace := filepath.Join(dir, "s"), filepath.Join(dir, "trace.jsonl")
	gateway, err := net.Listen("unix", socket) // one that never answers
	if err != nil {
		t.Fatal(err)
	}
	defer gateway.Close()
	_ = gateway.(*net.UnixListener).SetDeadline(time.Now().Add(patience))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "record", "--socket", socket, "-o", trace)
	cmd.Env = append(os.Environ(), asMain+"=1")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	asked, err := gateway.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	if _, err := os.Stat(trace + ".part"); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Log(err) // it has ended
		}
	}
	_ = cmd.Wait()
	if code, text := cmd.ProcessState.ExitCode(), errOut.String(); code != exitRuntime || text != "tidemark: interrupted before the end\n" {
		t.Errorf("%v: %q", cmd.ProcessState, text)
	}
	if left, _ := filepath.Glob(trace + "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
