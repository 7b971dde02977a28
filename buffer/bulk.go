package buffer

import (
	"errors"

	bolt "go.etcd.io/bbolt"
)

// bulk fills a new file in transactions of a size that bounds the memory.
type bulk struct {
	db   *bolt.DB
	tx   *bolt.Tx
	size int // of what tx holds
}

// bulkBytes is how much one transaction carries.
const bulkBytes = 4 << 20

// fill has fn fill the file path, which is empty.
func fill(path string, fn func(*bulk) error) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout, PageSize: pageSize, NoSync: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return err
	}
	db.AllocSize = 64 << 10 // beyond what is needed
	b := &bulk{db: db}
	if b.tx, err = db.Begin(true); err == nil {
		err = fn(b)
	}
	if err == nil {
		err = errors.Join(b.tx.Commit(), db.Sync())
	} else if b.tx != nil {
		err = errors.Join(err, b.tx.Rollback())
	}
	return errors.Join(err, db.Close())
}

// added counts bytes that were put. What was got of the transaction before, its
// buckets and cursors, may have ended with it.
func (b *bulk) added(bytes int) (err error) {
	if b.size += bytes; b.size < bulkBytes {
		return nil
	}
	b.size = 0
	if err = b.tx.Commit(); err != nil {
		b.tx = nil
		return err
	}
	b.tx, err = b.db.Begin(true)
	return err
}
