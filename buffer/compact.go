package buffer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// Compact rewrites the store in the file path without the pages that are free,
// and returns its size before and after. It needs the room for a copy. The file
// must not be in use, and is left as it was if anything fails.
func Compact(path string, progress Progress) (before, after int64, err error) {
	f, err := lockFile(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	pages, err := verify(path, f)
	if err != nil {
		return 0, 0, orForeign(path, err)
	}
	if err := rewrite(path, f, progress); err != nil {
		return 0, 0, orForeign(path, fmt.Errorf("cannot compact store %q: %w", path, err))
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return pages.size, info.Size(), nil
}

// rewrite replaces the locked and verified file by a compact copy. The lock stays
// on the old one, which has no name any more: lockFile sees that.
func rewrite(path string, f *os.File, progress Progress) error {
	tmp, err := tempName(path)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	if err := guard(path, "compacting", func() error { return copyValues(tmp, path, f, progress) }); err != nil {
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

// copyValues writes all that the locked file holds to the file tmp, in the order of
// the keys.
func copyValues(tmp, path string, f *os.File, progress Progress) error {
	return readRest(path, f, func(from *bolt.Tx) error {
		st, err := readState(from)
		if err != nil {
			return &DamageError{Path: path, What: "state", Err: err}
		}
		done, total := int64(0), st.Journal.Bytes+st.Outbox.Bytes+st.Evidence.Bytes
		return fill(tmp, func(to *bulk) error {
			return from.ForEach(func(name []byte, b *bolt.Bucket) error {
				counted := !bytes.Equal(name, bucketCheckpoint) && !bytes.Equal(name, bucketState)
				if _, err := to.tx.CreateBucket(name); err != nil {
					return err
				}
				return b.ForEach(func(k, v []byte) error {
					into := to.tx.Bucket(name)
					into.FillPercent = 1 // nothing comes between: four chunks to a page
					if err := into.Put(k, v); err != nil {
						return err
					}
					n := len(k) + len(v) + elementLen
					if counted {
						done = min(done+int64(n), total)
					}
					return errors.Join(to.added(n), progress.at(StepCopying, done, total))
				})
			})
		})
	})
}
