package buffer_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tidemark/buffer"
)

// child runs this test binary as another process doing what the environment
// names.
const childEnv = "TIDEMARK_BUFFER_CHILD"

func TestMain(m *testing.M) {
	switch path := os.Getenv("TIDEMARK_BUFFER_PATH"); os.Getenv(childEnv) {
	case "hold":
		holdStore(path)
	case "write":
		writeStore(path)
	}
	os.Exit(m.Run())
}

// holdStore has the store open until its input ends.
func holdStore(path string) {
	s, _, err := buffer.Open(path, opts())
	if err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString("open\n")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	s.Close()
	os.Exit(0)
}

func TestLockedByAnotherProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=hold", "TIDEMARK_BUFFER_PATH="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatal(line, err)
	}
	_, _, err = buffer.Open(path, opts())
	var locked *buffer.LockedError
	if !errors.As(err, &locked) || locked.PID != cmd.Process.Pid || !strings.Contains(err.Error(), path) {
		t.Errorf("open: %v, holder is %d", err, cmd.Process.Pid)
	}
	if _, _, err := buffer.Compact(path, nil); !errors.As(err, &locked) {
		t.Errorf("compact: %v", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	open(t, path, opts())
}

// A file that is cut while it is open faults in mapped memory. That is an error,
// the store is broken, and the next opening sets the file aside.
func TestFileCutWhileOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	for seq := uint64(1); seq <= 50; seq++ {
		commit(t, s, &buffer.Commit{Block: block(seq, 9000)})
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	err := s.Blocks(1, func(buffer.Block) error { return nil })
	if !errors.As(err, new(*buffer.DamageError)) {
		t.Errorf("Blocks: %v", err)
	}
	err = s.Commit(&buffer.Commit{Block: block(51, 10)})
	if !errors.As(err, new(*buffer.BrokenError)) {
		t.Errorf("Commit: %v", err)
	}
	if err := s.FlushCursors(); !errors.As(err, new(*buffer.BrokenError)) {
		t.Errorf("FlushCursors: %v", err)
	}
	s.Close() // must return, whatever it says
	s, did, err := buffer.Open(path, opts())
	if err != nil || !did.Created || did.SetAside != path+".damaged-1" {
		t.Fatal(did, err)
	}
	commit(t, s, &buffer.Commit{Block: block(1, 10)})
	s.Close()
}

// Damage that only a read meets: its finder sets the file aside.
func TestSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	if err := os.WriteFile(path+".damaged-1", []byte("of an earlier year"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, opts())
	commit(t, s, &buffer.Commit{Block: block(1, 10)})
	name, _, err := s.SetAside(errors.New("a reader did not like it"), 1_767_225_600_000)
	if err != nil || name != path+".damaged-2" {
		t.Fatal(name, err)
	}
	reason, err := os.ReadFile(name + ".reason")
	if err != nil || !strings.Contains(string(reason), "a reader did not like it") || !strings.Contains(string(reason), "2026-01-01T00:00:00Z") {
		t.Errorf("reason %q, %v", reason, err)
	}
	if err := s.Commit(&buffer.Commit{}); !errors.Is(err, buffer.ErrClosed) {
		t.Errorf("commit afterwards: %v", err)
	}
	s, did, err := buffer.Open(path, opts())
	if err != nil || did.SetAside != "" {
		t.Fatal(did, err)
	}
	if got := blocks(t, s, 0); len(got) != 0 {
		t.Errorf("%d blocks in the new store", len(got))
	}
	s.Close()
	s = open(t, name, opts())
	if got := blocks(t, s, 0); len(got) != 1 {
		t.Errorf("%d blocks in the one set aside", len(got))
	}
}

// A file whose structure is damaged costs the journal and what recovery needs, not
// what waits to go upstream.
func TestWhatWaitsGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	for seq := uint64(1); seq <= 300; seq++ {
		c := &buffer.Commit{Block: block(seq, 3000), Meta: map[string][]byte{"ledger": pattern(seq, 100)}}
		if seq%10 == 0 {
			c.Records = []buffer.Record{{Kind: 3, Data: pattern(seq, 200)}}
			c.Evidence = []buffer.Evidence{{Kind: 4, AtMS: 7, Data: pattern(seq, 50)}}
			c.Checkpoint = whole(pattern(seq, 2000))
		}
		commit(t, s, c)
	}
	s.Outbox("plant").Delivered(buffer.Live, 4)
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	readings := st.Readings
	s.Close()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spoiled := 0
	for at := 0; at+4096 <= len(file); at += 4096 { // branch pages
		if file[at+8] == 1 && file[at+9] == 0 && file[at+10] > 2 {
			file[at+40] ^= 0xff
			spoiled++
		}
	}
	if err := os.WriteFile(path, file, 0o600); err != nil || spoiled == 0 {
		t.Fatal(spoiled, err)
	}
	s, did, err := buffer.Open(path, opts())
	if err != nil || did.SetAside == "" || did.Kept == nil {
		t.Fatalf("%+v, %v", did, err)
	}
	if k := did.Kept; k.Records < 26 || k.LostRecords != 0 || k.Evidence != 30 || k.LeftBlocks != 300 || k.LeftReadings != readings {
		t.Errorf("kept %+v", did.Kept)
	}
	got, _, err := s.Outbox("plant").Next(buffer.Live, nil, 1000, 1<<20)
	if err != nil || len(got) != 26 || string(got[0].Data) != string(pattern(50, 200)) {
		t.Errorf("%d records wait, %v", len(got), err)
	}
	if cp, from, last, err := s.Recover(); cp != nil || from != 0 || last != 0 || err != nil {
		t.Errorf("recovery from %d to %d: %v", from, last, err)
	}
	if s.Meta("ledger") != nil {
		t.Error("a named value goes on without the journal that it belongs to")
	}
	if l := s.Losses(); len(l) != 1 || l[0].Kind != buffer.LossRaw || l[0].Readings != readings || l[0].Damaged != 300 {
		t.Errorf("losses %+v", l)
	}
	commit(t, s, &buffer.Commit{Block: block(1, 10)})
	s.Close()
	if r, err := buffer.Check(path, nil); err != nil || r.FaultCount > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSystemFaultsAreNoDamage(t *testing.T) {
	dir := t.TempDir()
	for name, path := range map[string]string{
		"no directory": filepath.Join(dir, "missing", "t.db"),
		"a directory":  dir,
	} {
		t.Run(name, func(t *testing.T) {
			s, did, err := buffer.Open(path, opts())
			if err == nil || errors.As(err, new(*buffer.DamageError)) {
				t.Error(s, did, err)
			}
		})
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("files left behind: %v", files)
	}
}

// What a power cut left of a file in the making is swept up; what only looks
// like it is not.
func TestLeftoversAreSweptUp(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "t[1].db")
	for _, name := range []string{"t[1].db.new-123", "t[1].db.damaged-1", "t1.db.new-5"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, path, opts())
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	if want := []string{"t1.db.new-5", "t[1].db", "t[1].db.damaged-1"}; !slices.Equal(names, want) {
		t.Errorf("left are %q, want %q", names, want)
	}
}

// tmpfs mounts a small file system, which takes an installed system and its
// administrator.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	if os.Getenv("TIDEMARK_INTEROP") != "1" {
		t.Skip("set TIDEMARK_INTEROP=1 to run what needs installed programs and rights")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	return dir
}

// A disk that fills up refuses commits cleanly, at whichever write it happens,
// and the same commit goes through when there is room.
func TestDiskFull(t *testing.T) {
	dir := tmpfs(t, "1m")
	path := filepath.Join(dir, "t.db")
	s := open(t, path, opts())
	refused := 0
	for seq := uint64(1); seq <= 400; seq++ {
		c := &buffer.Commit{Block: block(seq, 3000+int(seq)*377%40_000), KeepFrom: 1}
		for try := 0; ; try++ {
			err := s.Commit(c)
			if err == nil {
				break
			}
			var full *buffer.FullError
			if !errors.As(err, &full) || full.Reason != buffer.FullDisk || try > 0 {
				t.Fatalf("block %d, try %d: %v", seq, try, err)
			}
			refused++
			if got := blocks(t, s, 0); len(got) != int(seq)-1 {
				t.Fatalf("%d blocks, want %d", len(got), seq-1)
			}
			if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%dk", 1024+refused*400)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if refused < 3 {
		t.Errorf("refused only %d times", refused)
	}
	s.Close()
	s = open(t, path, opts())
	if got := blocks(t, s, 0); len(got) != 400 {
		t.Errorf("%d blocks", len(got))
	}
}

// What is no regular file is left where it is: as root, a device would be renamed.
func TestOnlyRegularFilesAreStores(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	for _, path := range []string{fifo, dir, "/dev/null"} {
		_, _, err := buffer.Open(path, buffer.Options{Quota: 64 << 20})
		if err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", path, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
			t.Errorf("%s was touched: %v, %v", path, info, err)
		}
	}
}
