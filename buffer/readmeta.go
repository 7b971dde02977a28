package buffer

import (
	bolt "go.etcd.io/bbolt"
)

// ReadMeta returns a named value of the store in the file path, which is not in
// use, as [Store.Meta] would; nil if there is none. It changes nothing.
func ReadMeta(path, name string) (value []byte, err error) {
	f, err := lockToRead(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = guard(path, "reading", func() error {
		db, err := bolt.Open(path, 0, &bolt.Options{ReadOnly: true, Timeout: lockTimeout, PageSize: pageSize})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bolt.Tx) error {
			if _, err := readState(tx); err != nil {
				return err
			}
			meta, err := readMeta(tx)
			value = meta[name]
			return err
		})
	})
	return value, err
}
