package buffer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tidemark/buffer"
)

func TestOpenToReadChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	for seq := uint64(1); seq <= 6; seq++ {
		c := &buffer.Commit{Block: block(seq, 500), Records: []buffer.Record{{Kind: 1, Data: pattern(seq, 50)}}, Meta: map[string][]byte{"m": {byte(seq)}}}
		if seq == 2 || seq == 4 {
			c.Checkpoint = whole(pattern(seq, 3000))
		}
		commit(t, s, c)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	one, err := buffer.OpenToRead(path)
	if err != nil {
		t.Fatal(err)
	}
	two, err := buffer.OpenToRead(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := one.Blocks(0, func(b buffer.Block) error {
		n++
		if !bytes.Equal(b.Data, pattern(b.Seq, 500)) {
			t.Errorf("block %d is another", b.Seq)
		}
		return nil
	}); err != nil || n != 6 {
		t.Errorf("%d blocks, %v", n, err)
	}
	if held, gaps := two.Held(); held.First != 1 || held.Next != 7 || len(gaps) != 0 || !bytes.Equal(two.Meta("m"), []byte{6}) {
		t.Errorf("holds %+v with gaps %v, m is %v", held, gaps, two.Meta("m"))
	}
	for before, want := range map[uint64]uint64{1: 0, 2: 0, 3: 2, 4: 2, 5: 4, 100: 4} {
		snapshot, seq, err := one.Checkpoint(before)
		if err != nil || seq != want || want == 0 != (snapshot == nil) || want > 0 && !bytes.Equal(snapshot, pattern(want, 3000)) {
			t.Errorf("before block %d: the checkpoint after %d, %d bytes, %v; want that after %d", before, seq, len(snapshot), err, want)
		}
	}
	if err := one.Commit(&buffer.Commit{Block: block(7, 10)}); !errors.Is(err, buffer.ErrReadOnly) {
		t.Errorf("a commit gives %v", err)
	}
	if err := errors.Join(one.Close(), one.Close(), two.Close()); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed (%v)", err)
	}
}
