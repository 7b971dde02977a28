package buffer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// Compact rewrites the store in the file path without the pages that are free,
// and returns its size before and after. It needs the room for a copy. The file
// must not be in use, and is left as it was if anything fails.
func Compact(path string) (before, after int64, err error) {
	f, err := lockFile(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	pages, err := verify(path, f)
	if err != nil {
		return 0, 0, err
	}
	if err := rewrite(path, f); err != nil {
		return 0, 0, fmt.Errorf("cannot compact store %q: %w", path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return pages.size, info.Size(), nil
}

// rewrite replaces the locked and verified file by a compact copy. The lock stays
// on the old one, which has no name any more: lockFile sees that.
func rewrite(path string, f *os.File) error {
	tmp, err := tempName(path)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	if err := guard(path, "compacting", func() error { return copyPages(tmp, path, f) }); err != nil {
		return err
	}
	if err := syncFile(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncFile(filepath.Dir(path))
}

// txBytes is how much one transaction of the copy carries, which bounds its
// memory.
const txBytes = 4 << 20

func copyPages(tmp, path string, f *os.File) error {
	// A second descriptor of the same open file: it shares the lock, and bbolt
	// may close it.
	src, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockTimeout, OpenFile: func(string, int, os.FileMode) (*os.File, error) {
		return dup(f)
	}})
	if err != nil {
		return err
	}
	dst, err := bolt.Open(tmp, 0o600, &bolt.Options{Timeout: lockTimeout, PageSize: pageSize, NoSync: true})
	if err != nil {
		return errors.Join(err, src.Close())
	}
	dst.AllocSize = 1 << 20
	err = bolt.Compact(dst, src, txBytes)
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close(), src.Close())
}
