package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tidemark/configs"
)

// A disk that is full costs no file that was there, and leaves none that is only begun:
// that one would stand in the way of the next try.
func TestInitWritesAWholeFileOrNone(t *testing.T) {
	reference, err := configs.Files.ReadFile("tidemark.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fresh, packaged := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	if err := os.WriteFile(packaged, reference, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{fresh, packaged} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "init", "-o", file)
		cmd.Env = append(os.Environ(), asMain+"=1", fileLimit+"=1000")
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() < 1 || !strings.Contains(string(out), "file too large") {
			t.Errorf("%s: %v: %s", file, err, out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
	if now, err := os.ReadFile(packaged); err != nil || !bytes.Equal(now, reference) {
		t.Errorf("of the package's file %d bytes are left, %v", len(now), err)
	}
}

// fileLimit has the command find a disk on which no file grows above so many bytes. It
// is a process of its own, for what writes beside it would find that too.
const fileLimit = "TIDEMARK_TEST_FILE_LIMIT"

func init() {
	size, err := strconv.ParseUint(os.Getenv(fileLimit), 10, 64)
	if err != nil {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size}); err != nil {
		panic(err)
	}
}
