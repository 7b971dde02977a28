package crash

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/test/process"
)

// A file system that is full stops acknowledgements and nothing else; when there is
// room again the gateway goes on by itself, with every reading.
func TestFullDisk(t *testing.T) {
	begin(t)
	dir := process.Scratch(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=700k"); err != nil {
		t.Fatalf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	up := process.NewMosquitto(t)
	d := newDevices(t, 3)
	w := newWitness(t, up)
	g := newGateway(t, dir, build(t), up, d)
	g.Start()
	process.Eventually(t, 20*time.Second, g.connected)
	d.begin()
	for range 3 {
		process.Eventually(t, 60*time.Second, func() error { return g.fault("disk", true) })
		time.Sleep(1500 * time.Millisecond) // it stays refused, and alive
		resize(t, dir, 200<<10)
		process.Eventually(t, 30*time.Second, func() error { return g.fault("disk", false) })
		resize(t, dir, 100)
	}
	resize(t, dir, 200<<10)
	settle(t, g, w, d)
}

// resize leaves so many KB free on a tmpfs.
func resize(t *testing.T, dir string, freeKB uint64) {
	t.Helper()
	var fs syscall.Statfs_t
	err := syscall.Statfs(dir, &fs)
	if err == nil {
		used := (fs.Blocks - fs.Bfree) * uint64(fs.Bsize) >> 10
		err = syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%dk", used+freeKB))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A second gateway on the same store ends at once, with the exit code of storage,
// and names the first, which does not notice.
func TestTwoGatewaysOnOneStore(t *testing.T) {
	begin(t)
	up := process.NewMosquitto(t)
	g := newGateway(t, process.Scratch(t), build(t), up, newDevices(t, 4))
	g.Start()
	process.Eventually(t, 20*time.Second, g.connected)
	second := exec.Command(g.binary, "run", "-c", g.config)
	var said bytes.Buffer
	second.Stderr = &said
	err := second.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(said.String(), "in use by process "+strconv.Itoa(g.PID())) {
		t.Errorf("the second ended with %v: %s", err, said.String())
	}
	if err := g.connected(); err != nil {
		t.Errorf("the first no longer answers: %v", err)
	}
	if code := g.End(syscall.SIGTERM); code != 0 {
		t.Errorf("the first ended with exit code %d", code)
	}
}

// fault checks whether the gateway shows the named fault.
func (s *service) fault(name string, want bool) error {
	st, err := s.status()
	if err != nil {
		return err
	}
	for _, f := range st.Because {
		if f.Name == name {
			if want {
				return nil
			}
			return fmt.Errorf("still: %s", f.Detail)
		}
	}
	if want {
		return fmt.Errorf("no fault %q among %+v", name, st.Because)
	}
	return nil
}

// Pages that are overwritten under a running gateway make bbolt panic. That costs
// the store, which is set aside, and not the process: it goes on with a new one.
func TestPagesSpoiledUnderRun(t *testing.T) {
	begin(t)
	up := process.NewMosquitto(t)
	d := newDevices(t, 5)
	g := newGateway(t, process.Scratch(t), build(t), up, d)
	g.Start()
	process.Eventually(t, 20*time.Second, g.connected)
	d.begin()
	time.Sleep(3 * time.Second)
	spoilPages(t, g.store)
	process.Eventually(t, 60*time.Second, func() error {
		if _, err := os.Stat(g.store + ".damaged-1"); err != nil {
			return err
		}
		st, err := g.status()
		if err == nil && (st.Inputs[0].Counts.Accepted == 0 || st.Generation == 0) {
			err = fmt.Errorf("nothing is taken: %+v", st.Because)
		}
		return err
	})
	d.rest()
	d.end()
	if code := g.End(syscall.SIGTERM); code != 0 {
		t.Errorf("stopped in order, it ended with exit code %d", code)
	}
	t.Log(g.checkStore())
}

// spoilPages overwrites the entries of every page of the database but the first
// two, which name the root.
func spoilPages(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(2 * 4096); at+4096 <= info.Size(); at += 4096 {
		if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, 600), at+16); err != nil {
			t.Fatal(err)
		}
	}
}
