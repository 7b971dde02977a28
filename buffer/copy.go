package buffer

import (
	"io"
	"os"

	bolt "go.etcd.io/bbolt"
)

// Copy writes the store as it is at one moment to the writer that begin returns
// for its size in bytes. Commits go on meanwhile; what they free is not used again
// until the copy is done, so that the file may grow.
func (s *Store) Copy(begin func(size int64) (io.Writer, error)) error {
	return s.view(func(tx *bolt.Tx) error { return copyStore(tx, begin) })
}

// CopyFile is [Store.Copy] of the store in the file path, which is not in use.
func CopyFile(path string, begin func(size int64) (io.Writer, error)) error {
	return atRest(path, func(tx *bolt.Tx) error { return copyStore(tx, begin) })
}

func copyStore(tx *bolt.Tx, begin func(size int64) (io.Writer, error)) error {
	w, err := begin(tx.Size())
	if err != nil {
		return err
	}
	_, err = tx.WriteTo(w)
	return err
}

// Unused returns nil if nobody has the store in the file path open, or else a
// *LockedError.
func Unused(path string) error {
	f, err := lockFile(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// ReadMeta returns a named value of the store in the file path, which is not in
// use, as [Store.Meta] would; nil if there is none. It changes nothing.
func ReadMeta(path, name string) (value []byte, err error) {
	err = atRest(path, func(tx *bolt.Tx) error {
		if _, err := readState(tx); err != nil {
			return err
		}
		meta, err := readMeta(tx)
		value = meta[name]
		return err
	})
	return value, err
}

// atRest runs fn in a read transaction of the store in the file path.
func atRest(path string, fn func(tx *bolt.Tx) error) error {
	f, err := lockToRead(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return guard(path, "reading", func() error { return readRest(path, f, fn) })
}

// readRest runs fn in a read transaction of the locked file. bbolt gets a second
// descriptor of the same open file, which shares the lock, and which it may close.
func readRest(path string, f *os.File, fn func(tx *bolt.Tx) error) error {
	db, err := bolt.Open(path, 0, &bolt.Options{ReadOnly: true, Timeout: lockTimeout, PageSize: pageSize,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return dup(f) }})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(fn)
}
