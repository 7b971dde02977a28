package buffer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"tidemark/buffer"
)

// othersFile is a bbolt file of another program, with a bucket that has the name of
// one of ours.
func othersFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "o.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("state"))
		if err != nil {
			return err
		}
		return b.Put([]byte("members/1"), pattern(1, 300))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Whose file stands at the store's path is decided by what is in it: only a store's
// own remains, and a file in which nothing can be lost, are set aside for a new one.
func TestWhoseFileItIs(t *testing.T) {
	t.Parallel()
	ours, _, _ := victim(t)
	small := filepath.Join(t.TempDir(), "small.db")
	open(t, small, opts()).Close()
	fresh, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(fn func([]byte)) []byte {
		file := append([]byte(nil), ours...)
		fn(file)
		return file
	}
	for _, x := range []struct {
		name    string
		file    []byte
		foreign bool
	}{
		{"text", []byte("gateway: {id: line-3}\n"), true},
		{"noise", pattern(1, 64<<10), true},
		{"zeros, then text", append(make([]byte, 64<<10), "x"...), true},
		{"another program's bbolt file", othersFile(t), true},
		{"a store all of whose pages are noise", edit(func(f []byte) { copy(f, pattern(7, len(f))) }), true},

		{"empty", nil, false},
		{"zeros", make([]byte, 64<<10), false},
		{"both beginnings lost", edit(func(f []byte) { clear(f[:2*4096]) }), false},
		{"both beginnings of a store that was never used", append(make([]byte, 2*4096), fresh[2*4096:]...), false},
		{"the first half lost", edit(func(f []byte) { copy(f, pattern(7, len(f)/2)) }), false},
		{"cut off in its first page", ours[:100], false},
		{"cut off after its beginnings", ours[:2*4096], false},
		{"a beginning and nothing else", edit(func(f []byte) { copy(f[4096:], pattern(7, len(f)-4096)) }), false},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "t.db")
			if err := os.WriteFile(path, x.file, 0o600); err != nil {
				t.Fatal(err)
			}
			_, checked := buffer.Check(path, nil)
			_, salvaged := buffer.Salvage(path, path+".salvaged", nil)
			_, toRead := buffer.OpenToRead(path)
			_, _, compacted := buffer.Compact(path, nil)
			s, did, opened := buffer.Open(path, opts())
			for what, err := range map[string]error{"check": checked, "salvage": salvaged, "open to read": toRead, "compact": compacted, "open": opened} {
				if errors.As(err, new(*buffer.ForeignError)) != x.foreign {
					t.Errorf("%s: %v", what, err)
				}
			}
			if !x.foreign {
				if opened != nil || did.SetAside == "" {
					t.Fatal(did, opened)
				}
				commit(t, s, &buffer.Commit{Block: block(1, 10)})
				s.Close()
				path = did.SetAside
			} else if files, _ := os.ReadDir(dir); len(files) != 1 {
				t.Errorf("beside a file that is not ours: %v", files)
			}
			if kept, err := os.ReadFile(path); err != nil || string(kept) != string(x.file) {
				t.Errorf("kept %d bytes of %d, %v", len(kept), len(x.file), err)
			}
		})
	}
}
