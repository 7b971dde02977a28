// Package powercut cuts the power of a machine, which is a guest of qemu with the
// store on a real file system and a disk whose cache does not survive: whatever the
// guest said was on disk is there when it starts again.
//
// It runs with TIDEMARK_INTEROP=1 only, and then what it needs must be there: qemu,
// mke2fs, and a kernel below TIDEMARK_GUEST (boot/vmlinuz-* and its lib/modules), or
// that of this machine. TIDEMARK_GUEST_CUTS is how often it cuts.
package powercut

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cuts is how often the power is cut if nobody says otherwise.
const cuts = 20

func TestMain(m *testing.M) {
	if os.Getpid() == 1 {
		guest()
	}
	os.Exit(m.Run())
}

func TestPowerCutOfAGuest(t *testing.T) {
	h := newHost(t)
	n := cuts
	if v := os.Getenv("TIDEMARK_GUEST_CUTS"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatalf("TIDEMARK_GUEST_CUTS: %v", err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("%d cuts, seed %d", n, seed)
	dice := rand.New(rand.NewPCG(seed, 2))
	acked, lost := uint64(0), 0
	for i := range n {
		g := h.boot(t)
		found := g.number("found")
		if found < acked || found > acked+1 {
			t.Fatalf("cut %d: %d commits were acknowledged and %d are there", i, acked, found)
		}
		acked = max(acked, found)
		// A commit takes about nine of them.
		h.disk.cutAfter(1 + dice.IntN(200))
		h.gone(t)
		acked = max(acked, g.kill())
		lost += h.disk.cut(dice)
	}
	t.Logf("%d commits, %d writes lost or torn, %d writes and flushes in all", acked, lost, h.disk.served)
	if acked < uint64(n) || lost == 0 {
		t.Error("that was no test: hardly anything was written")
	}
}

// A disk that fails its writes, and the file system that the kernel then makes
// read-only, break the store and no more than that; when the disk is well again
// everything acknowledged is there.
func TestDiskThatFails(t *testing.T) {
	h := newHost(t)
	g := h.boot(t)
	g.number("found")
	acked := uint64(0)
	g.wait("acked", &acked)
	h.disk.breaks()
	line := g.wait("broken", &acked)
	acked = max(acked, g.kill())
	h.gone(t)
	h.disk.cut(rand.New(rand.NewPCG(1, 1)))
	if !strings.Contains(line, "input/output error") || !strings.Contains(line, "read-only: ") {
		t.Errorf("the store said: %s", line)
	}
	g = h.boot(t)
	if found := g.number("found"); found < acked || found > acked+1 {
		t.Errorf("%d commits were acknowledged and %d are there", acked, found)
	}
	g.kill()
}

// host has what a guest needs.
type host struct {
	kernel, initrd string
	socket         string
	disk           *disk
	served         chan error // from each connection to the disk when it ends
}

func newHost(t *testing.T) *host {
	t.Helper()
	if os.Getenv("TIDEMARK_INTEROP") == "" {
		t.Skip("set TIDEMARK_INTEROP=1 to run guests of qemu")
	}
	dir, err := os.MkdirTemp("", "tm-") // short enough for a Unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	root := cmp.Or(os.Getenv("TIDEMARK_GUEST"), "/")
	h := &host{kernel: only(t, root, "boot/vmlinuz-*"), initrd: filepath.Join(dir, "initrd"), socket: filepath.Join(dir, "nbd"), served: make(chan error, 8)}
	if err := os.WriteFile(h.initrd, archive(t, root), 0o600); err != nil {
		t.Fatal(err)
	}
	h.disk = newDisk(format(t, filepath.Join(dir, "disk")))
	l, err := net.Listen("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { h.served <- h.disk.serve(conn) }()
		}
	}()
	return h
}

// gone returns when the disk answers no more, and all that the guest asked of it
// has come through.
func (h *host) gone(t *testing.T) {
	t.Helper()
	select {
	case err := <-h.served:
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) { // as the guest ends, before or after all was read
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the guest has stopped writing")
	}
}

// patience is how long a guest on a busy machine may take.
const patience = 90 * time.Second

// only returns the newest file that the pattern names below root.
func only(t *testing.T, root, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("there is no %s: install a kernel, or name where one was unpacked in TIDEMARK_GUEST", filepath.Join(root, pattern))
	}
	return found[len(found)-1]
}

// format makes an empty file system.
func format(t *testing.T, path string) []byte {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 48<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mke2fs", "-q", "-t", "ext4", path).CombinedOutput(); err != nil {
		t.Fatalf("mke2fs: %v: %s", err, out)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// archive is the guest's first file system: this test as its init, and modules.
func archive(t *testing.T, root string) []byte {
	t.Helper()
	var b bytes.Buffer
	add := func(name, path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		entry(&b, name, 0o100755, data)
	}
	init := filepath.Join(t.TempDir(), "init")
	build := exec.Command("go", "test", "-c", "-ldflags", "-s -w", "-o", init, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the guest's program: %v: %s", err, out)
	}
	add("init", init)
	entry(&b, "dev", 0o040755, nil)
	entry(&b, "modules", 0o040755, nil)
	version := strings.TrimPrefix(filepath.Base(only(t, root, "boot/vmlinuz-*")), "vmlinuz-")
	for _, m := range modules {
		found, err := exec.Command("find", filepath.Join(root, "lib/modules", version), "-name", m+".ko").Output()
		path := strings.TrimSpace(string(found))
		if err != nil || path == "" {
			t.Fatalf("the kernel has no module %s", m)
		}
		add("modules/"+m+".ko", path)
	}
	entry(&b, "TRAILER!!!", 0, nil)
	return b.Bytes()
}

// entry appends a file in the format of cpio that kernels read ("newc").
func entry(b *bytes.Buffer, name string, mode int, data []byte) {
	fmt.Fprintf(b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", b.Len()+1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	b.WriteString(name + "\x00")
	pad := func() { b.Write(make([]byte, -b.Len()&3)) }
	pad()
	b.Write(data)
	pad()
}

// machine is a guest that runs.
type machine struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // of the console; closed when the guest is gone
}

func (h *host) boot(t *testing.T) *machine {
	t.Helper()
	// Without KVM: it is not to be had everywhere, and nothing here needs its speed.
	cmd := exec.Command("qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "256", "-nodefaults", "-nographic", "-no-reboot",
		"-kernel", h.kernel, "-initrd", h.initrd, "-append", "console=ttyS0 quiet panic=-1", "-serial", "stdio",
		"-drive", "if=virtio,format=raw,cache=writeback,file.driver=nbd,file.server.type=unix,file.server.path="+h.socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatalf("qemu is needed for this test: %v", err)
	}
	g := &machine{t: t, cmd: cmd, lines: make(chan string, 1<<16)}
	t.Cleanup(func() { g.kill() })
	go func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			g.lines <- strings.TrimSpace(in.Text())
		}
		close(g.lines)
	}()
	return g
}

// kill takes the power away and returns the last commit that the guest had said
// is on disk and nobody had heard of.
func (g *machine) kill() (acked uint64) {
	if g.cmd.ProcessState != nil {
		return 0
	}
	_ = g.cmd.Process.Kill()
	for line := range g.lines {
		note(line, &acked)
	}
	_ = g.cmd.Wait()
	return acked
}

// wait returns the first line that begins with word; on the way it notes commits.
func (g *machine) wait(word string, acked *uint64) string {
	g.t.Helper()
	timeout := time.After(patience)
	var heard []string
	for {
		select {
		case line, more := <-g.lines:
			switch {
			case !more:
				g.t.Fatalf("the guest is gone before it says %q", word)
			case strings.HasPrefix(line, "fault "):
				g.t.Fatalf("the guest says: %s", line)
			case strings.HasPrefix(line, word+" "):
				return line
			}
			heard = append(heard, line)
			note(line, acked)
		case <-timeout:
			g.t.Fatalf("the guest has not said %q within %v, but: %q", word, patience, heard[max(0, len(heard)-20):])
		}
	}
}

// number waits for a word and its number.
func (g *machine) number(word string) uint64 {
	g.t.Helper()
	var ignored uint64
	n, err := strconv.ParseUint(strings.TrimPrefix(g.wait(word, &ignored), word+" "), 10, 64)
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

func note(line string, acked *uint64) {
	var n uint64
	if k, _ := fmt.Sscanf(line, "acked %d", &n); k == 1 {
		*acked = max(*acked, n)
	}
}
