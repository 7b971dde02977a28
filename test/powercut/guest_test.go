package powercut

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tidemark/buffer"
)

// This file is what runs in the guest, as its first and only process.

// modules make the disk appear. The file system is part of the kernel.
var modules = []string{"virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"}

const mounted = "/disk"

// guest does what a gateway does with its store, and says so on the console: what
// it found, then the number of every commit that is on disk.
func guest() {
	if err := live(); err != nil {
		fmt.Println("\nfault", err)
	}
	time.Sleep(time.Minute) // until the power is cut
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}

func live() error {
	if err := prepareGuest(); err != nil {
		return err
	}
	s, did, err := buffer.Open(filepath.Join(mounted, "t.db"), options())
	if err != nil {
		return fmt.Errorf("cannot open: %w", err)
	}
	if did.SetAside != "" {
		return fmt.Errorf("set aside: %s", did.Reason)
	}
	last, err := verify(s)
	if err != nil {
		return err
	}
	fmt.Printf("\nfound %d\n", last) // the firmware leaves its line open
	for n := last + 1; ; n++ {
		if err := s.Commit(commit(n)); err != nil {
			return refused(s, n, err)
		}
		s.Outbox("plant").Delivered(buffer.Live, n/2)
		fmt.Printf("acked %d\n", n)
	}
}

// refused tells what a store does on a disk that takes nothing any more. It is
// broken and says so from then on; opened again it breaks again, also when the
// kernel has made the file system read-only. What it holds can be read all the
// time, and nothing is taken for damaged.
func refused(s *buffer.Store, n uint64, err error) error {
	var broken *buffer.BrokenError
	again := s.Commit(commit(n))
	if !errors.As(err, &broken) || !errors.As(again, &broken) {
		return fmt.Errorf("commit %d: %w, then %w", n, err, again)
	}
	_ = s.Close()
	for readOnly := false; ; readOnly = isReadOnly() {
		refusal := openBroken()
		if refusal == nil {
			return errors.New("a commit on a broken disk")
		}
		if readOnly {
			fmt.Printf("broken %d: %v; read-only: %v\n", n, again, refusal)
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// isReadOnly reports whether the kernel has given the file system up, which it does
// with the next change of a directory.
func isReadOnly() bool {
	f, err := os.Create(filepath.Join(mounted, "x"))
	if err == nil {
		err = f.Sync()
		f.Close()
	}
	return errors.Is(err, syscall.EROFS)
}

// openBroken opens the store on a broken disk and returns why it takes no commit;
// anything else that is wrong is a panic.
func openBroken() (refusal error) {
	s, did, err := buffer.Open(filepath.Join(mounted, "t.db"), options())
	if err != nil {
		return err
	}
	defer s.Close()
	if did.SetAside != "" {
		panic("a broken disk taken for a damaged file: " + did.Reason)
	}
	last, err := verify(s)
	if err != nil {
		panic(err)
	}
	return s.Commit(commit(last + 1))
}

func prepareGuest() error {
	if err := load(modules); err != nil {
		return err
	}
	for _, dir := range []string{"/dev", mounted} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("dev", "/dev", "devtmpfs", 0, ""); err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := unix.Mount("/dev/vda", mounted, "ext4", 0, "errors=remount-ro")
		if err == nil {
			return nil
		}
		if try > 50 {
			return fmt.Errorf("mount: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// load loads modules; which needs which is not the same in all kernels, so those
// that lack another are tried again after it.
func load(names []string) error {
	for len(names) > 0 {
		var left []string
		var lacking error
		for _, m := range names {
			f, err := os.Open("/modules/" + m + ".ko")
			if err != nil {
				return err
			}
			err = unix.FinitModule(int(f.Fd()), "", 0)
			f.Close()
			switch {
			case errors.Is(err, syscall.ENOENT):
				left, lacking = append(left, m), err
			case err != nil:
				return fmt.Errorf("module %s: %w", m, err)
			}
		}
		if len(left) == len(names) {
			return fmt.Errorf("modules %v: %w", left, lacking)
		}
		names = left
	}
	return nil
}

func options() buffer.Options {
	return buffer.Options{Quota: 8 << 20, Uplinks: []string{"plant"}, RetainMS: 300_000, NowMS: 1}
}

// snapshotLen makes checkpoints of two parts.
const snapshotLen = 600_000

// commit is commit number n: everything in it follows from n.
func commit(n uint64) *buffer.Commit {
	c := &buffer.Commit{
		Block:    &buffer.Block{Seq: n, MinMS: int64(n), MaxMS: int64(n) + 9, Readings: int(n % 100), Data: pattern(n, int(n*977%9000))},
		KeepFrom: n, AtMS: int64(n) * 1000, Meta: map[string][]byte{"ledger": pattern(n, 900)},
	}
	for range n % 4 {
		c.Records = append(c.Records, buffer.Record{Kind: byte(n), Data: pattern(n, int(n*31%500))})
	}
	if n%8 == 0 {
		c.Checkpoint = func(put func([]byte) error) error { return put(pattern(n, snapshotLen)) }
	}
	return c
}

func pattern(n uint64, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		n = n*6364136223846793005 + 1442695040888963407
		b[i] = byte(n >> 56)
	}
	return b
}

// verify checks that all that the store holds belongs to its last commit or one
// before it, and that nothing it should hold is missing.
func verify(s *buffer.Store) (last uint64, err error) {
	snapshot, seq, last, err := s.Recover()
	if err != nil {
		return 0, err
	}
	if want := last / 8 * 8; seq != want || seq > 0 && string(snapshot) != string(pattern(seq, snapshotLen)) {
		return 0, fmt.Errorf("the checkpoint is that of %d, want %d", seq, want)
	}
	if last > 0 && string(s.Meta("ledger")) != string(pattern(last, 900)) {
		return 0, fmt.Errorf("the ledger is not that of commit %d", last)
	}
	held := uint64(0)
	err = s.Blocks(1, func(b buffer.Block) error {
		if want := commit(b.Seq).Block; string(b.Data) != string(want.Data) || b.Readings != want.Readings {
			return fmt.Errorf("block %d is not what was committed", b.Seq)
		}
		held++
		return nil
	})
	if err == nil && held < min(last, 128) {
		err = fmt.Errorf("%d blocks are held of %d", held, last)
	}
	return last, err
}
