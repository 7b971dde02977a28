package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// ForeignError says that the file was never a store: somebody else's stands where
// a store is looked for. It is left alone.
type ForeignError struct{ Path string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%q is no store: nothing in it was written by this program, so it was left as it is; name another store.path, or move the file away", e.Path)
}

// orForeign is err, or a *ForeignError if err is damage to a file that was never a
// store.
func orForeign(path string, err error) error {
	if !errors.As(err, new(*DamageError)) {
		return err
	}
	f, openErr := os.Open(path)
	if openErr != nil {
		return err
	}
	defer f.Close()
	if foreign(f) {
		return &ForeignError{Path: path}
	}
	return err
}

// foreignScan bounds how much of a file is looked through for a sign that it is a
// store. Of a store that lost all of that a person has to decide.
const foreignScan = 256 << 20

// foreign tells a file that was never a store from a damaged store, which may have
// lost both of its beginnings:
//
//   - It is a store if a page of it holds a value with our checksum, which covers
//     the value's key and kind: in nobody else's file is there one.
//   - It is taken for one, too, if there is nothing in it to be lost: it is empty,
//     or all zeros, or has the beginning of a bbolt file and no entry that can be
//     read. A file system leaves such files after a fault.
//   - Everything else is foreign, and so is another program's bbolt file.
//
// What the disk does not give back speaks for damage.
func foreign(r io.ReaderAt) bool {
	bolt, entries, zeros := false, false, true
	data := make([]byte, pageSize)
	for at := int64(0); at < foreignScan; at += pageSize {
		n, err := r.ReadAt(data, at)
		if err != nil && err != io.EOF {
			return false
		}
		page := data[:n]
		if at < 2*pageSize {
			bolt = bolt || beginsLikeBolt(page, uint64(at/pageSize))
		}
		for _, b := range page {
			zeros = zeros && b == 0
		}
		if n == pageSize {
			mine, any := entriesOf(parsePage(page))
			if mine {
				return false
			}
			entries = entries || any
		}
		if err == io.EOF {
			break
		}
	}
	return !zeros && (entries || !bolt)
}

// entriesOf reports whether a leaf has an entry with a checksum of ours, and whether
// it has any at all. The names of our buckets are none: others may have them.
func entriesOf(p *page) (mine, any bool) {
	for i := 0; p.flags == flagLeaf && i < p.count && !mine; i++ {
		e, ok := p.element(i)
		_, known := buckets[string(e.key)]
		switch {
		case !ok:
			return mine, any
		case e.bucket && len(e.value) >= bucketHeadLen+pageHeadLen: // a small one, in its place
			var inside bool
			mine, inside = entriesOf(parsePage(e.value[bucketHeadLen:]))
			any = any || inside || !known
		default:
			mine, any = isOurs(e), any || !e.bucket || !known
		}
	}
	return mine, any
}

// isOurs reports whether an entry has a checksum of ours.
func isOurs(e element) bool {
	if len(e.key) < 3 {
		return false
	}
	for _, t := range buckets {
		if _, err := openChunk(t, e.key, e.value); err == nil {
			return true
		}
	}
	return false
}

// beginsLikeBolt reports whether page id, which may be cut off anywhere, begins as
// bbolt's meta pages do.
func beginsLikeBolt(page []byte, id uint64) bool {
	le := binary.LittleEndian
	want := le.AppendUint64(nil, id)
	want = le.AppendUint64(want, flagMeta) // no entries, no pages more
	want = le.AppendUint32(want, boltMagic)
	want = le.AppendUint32(want, boltVersion)
	want = le.AppendUint32(want, pageSize)
	n := min(len(page), len(want))
	return n > 0 && string(page[:n]) == string(want[:n])
}
