package main

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
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
		limited(t, 1000, func() {
			if _, _, err := runInit(t, "-o", file); err == nil {
				t.Errorf("%s was written", file)
			}
		})
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
	if now, err := os.ReadFile(packaged); err != nil || !bytes.Equal(now, reference) {
		t.Errorf("of the package's file %d bytes are left, %v", len(now), err)
	}
}

// limited runs f while no file can grow above size bytes.
func limited(t *testing.T, size uint64, f func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) }()
	f()
}
