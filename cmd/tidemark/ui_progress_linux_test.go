package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal: what is written to tty comes out of master.
func terminal(t *testing.T) (master, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return master, tty
}

// A bar is drawn on a terminal, once the work has taken a while, and cleared at its
// end. Elsewhere, and among lines on a terminal, there is none.
func TestProgressBarIsOnTerminalsOnly(t *testing.T) {
	master, tty := terminal(t)
	cmd := newRootCmd()
	cmd.SetOut(io.Discard)
	cmd.SetErr(tty)
	bar := newProgressBarBeside(cmd, "")
	bar.show("reading", 1, 2) // too soon
	bar.next = 0
	bar.show("reading", 1, 2)
	bar.show("reading", 2, 2) // too soon after the one before
	bar.end()
	const want = "\r\x1b[Kreading [███████████████               ]  50 %, about 0s to go\r\x1b[K"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(master, got); err != nil || string(got) != want {
		t.Errorf("drawn: %q, %v", got, err)
	}
	cmd.SetOut(tty)
	if newProgressBarBeside(cmd, "") != nil || newProgressBarBeside(cmd, "trace.jsonl") == nil {
		t.Error("a bar among lines, or none beside them")
	}
	var errOut bytes.Buffer
	cmd.SetErr(&errOut)
	bar = newProgressBar(cmd)
	bar.show("reading", 1, 2)
	bar.end()
	if bar != nil || errOut.Len() > 0 {
		t.Errorf("on no terminal: %q", errOut.String())
	}
}
