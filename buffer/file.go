package buffer

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"

	"tidemark/internal/owner"
)

const (
	lockTimeout = 2 * time.Second
	lockRetry   = 50 * time.Millisecond
)

// lockFile opens the file for writing and takes the lock that bbolt takes too, so
// that nobody writes to what is being judged. The file that is locked is the one
// that path names.
func lockFile(path string) (*os.File, error) { return lock(path, os.O_RDWR, syscall.LOCK_EX) }

// lockToRead is lockFile for those who only read; they may be several.
func lockToRead(path string) (*os.File, error) { return lock(path, os.O_RDONLY, syscall.LOCK_SH) }

func lock(path string, flag, how int) (*os.File, error) {
	for waited := time.Duration(0); ; waited += lockRetry {
		// A device or a pipe is never a damaged store, and must not be opened like one.
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("cannot open store %q: it is no regular file (%v); name another store.path", path, info.Mode().Type())
		}
		f, err := os.OpenFile(path, flag, 0)
		if err != nil {
			return nil, fmt.Errorf("cannot open store: %w%s", err, remedy(err))
		}
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil && isAt(f, path) {
			return f, nil
		}
		pid := holder(f)
		f.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("cannot lock store %q: %w", path, err)
		}
		if waited >= lockTimeout {
			return nil, &LockedError{Path: path, PID: pid}
		}
		time.Sleep(lockRetry)
	}
}

// remedy is what helps against an error of opening a store; empty if nothing is known.
func remedy(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "; use the user that owns it, or set store.path to where this one may write"
	}
	return ""
}

// dup returns a second descriptor of the same open file, which has the lock too.
func dup(f *os.File) (*os.File, error) {
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// isAt reports whether f is what path names.
func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(mine, named)
}

// holder returns the process that holds the lock on f, 0 if the system does not
// tell.
func holder(f *os.File) int {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	inode := ":" + strconv.FormatUint(uint64(stat.Ino), 10)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
		w := strings.Fields(lines.Text())
		if len(w) > 5 && w[1] == "FLOCK" && strings.HasSuffix(w[5], inode) {
			pid, _ := strconv.Atoi(w[4])
			return pid
		}
	}
	return 0
}

// create makes a new store at path: whole or not at all, and never over another.
// A file that was cut off while bbolt lays it out could not be opened again.
func create(path string, nowMS int64) error {
	err := createAt(path, nowMS)
	if err != nil {
		return fmt.Errorf("cannot create store %q: %w", path, err)
	}
	return nil
}

func createAt(path string, nowMS int64) error {
	tmp, err := tempName(path)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	db, err := bolt.Open(tmp, 0o600, &bolt.Options{Timeout: lockTimeout, PageSize: pageSize})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error { return layOut(tx, newState(nowMS)) })
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return publish(tmp, path)
}

// layOut creates the buckets and writes the state.
func layOut(tx *bolt.Tx, st *state) error {
	for name := range buckets {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return writeState(tx, &arena{}, st)
}

// sweep removes what creating or compacting left behind when the power was cut.
// The lock on the file that path names is held: nobody is doing either.
func sweep(path string) {
	left, err := filepath.Glob(globEscape.Replace(path) + newSuffix)
	if err != nil {
		return
	}
	for _, name := range left {
		os.Remove(name)
	}
}

// newSuffix is what the names of unfinished files end in.
const newSuffix = ".new-*"

var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// tempName reserves a name beside path for a file that will take its place.
func tempName(path string) (string, error) {
	f, err := owner.CreateTemp(filepath.Dir(path), filepath.Base(path)+newSuffix)
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// publish gives the finished file tmp the name path, unless that is taken: then
// another process was faster, which is as good.
func publish(tmp, path string) error {
	if err := syncFile(tmp); err != nil {
		return err
	}
	err := os.Link(tmp, path)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EOPNOTSUPP) { // no links on this file system
		err = os.Rename(tmp, path)
	}
	if err != nil {
		if _, there := os.Lstat(path); there != nil {
			return err
		}
	}
	return syncFile(filepath.Dir(path))
}

// syncFile syncs a file or a directory.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SetAside closes the store and sets its file aside, for whoever met a
// *DamageError while reading. It returns the file's new name and what was brought
// over into a new store in its place, as Opened.Kept; if that is nil the next Open
// creates one.
func (s *Store) SetAside(reason error, nowMS int64) (string, *Salvaged, error) {
	was, err := s.file.Stat()
	if err != nil {
		return "", nil, ErrClosed
	}
	_ = s.Close() // what cannot be written any more does not matter now
	name, err := setAside(s.path, was, reason.Error(), nowMS)
	if err != nil || name == "" {
		return name, nil, err
	}
	kept, err := bringOver(name, s.path)
	if err != nil {
		return name, nil, nil // as after a set-aside by Open
	}
	return name, kept, nil
}

// setAside renames the file to the first free name of NAME.damaged-1, -2 and so
// on, and writes the reason beside it, in that name with .reason added. It does
// nothing if the file is not the one that was judged any more: another process
// was faster.
func setAside(path string, was os.FileInfo, reason string, nowMS int64) (string, error) {
	f, err := lockFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(was, now) {
		return "", err
	}
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.damaged-%d", path, n)
		if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.Rename(path, name); err != nil {
			return "", fmt.Errorf("cannot set the damaged store %q aside: %w", path, err)
		}
		text := fmt.Sprintf("%s\nset aside at %s\nlook inside with: tidemark store check %s\nbring back what is whole with: tidemark store salvage %s NEW\n", reason, stamp(nowMS), name, name)
		// Without its reason the file is as safe, on a full disk for example.
		_ = os.WriteFile(name+".reason", []byte(text), 0o600)
		return name, syncFile(filepath.Dir(path))
	}
}

func stamp(ms int64) string {
	if ms == 0 {
		return "a time that was not known"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}
