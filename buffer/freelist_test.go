package buffer_test

import (
	"os"
	"path/filepath"
	"testing"

	"tidemark/buffer"
)

// A store full of free pages does not write the list of them with each commit.
// Whether it was closed or crashed, it opens, and uses these pages again.
func TestManyFreePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	o := opts()
	o.Quota = 64 << 20
	s := open(t, path, o)
	var records []buffer.Record
	for i := range uint64(1000) {
		records = append(records, buffer.Record{Kind: 1, Data: pattern(i, 3000)})
	}
	for range 10 {
		commit(t, s, &buffer.Commit{Records: records})
	}
	s.Outbox("plant").Delivered(buffer.Live, 10_000)
	for range 3 {
		commit(t, s, &buffer.Commit{Block: block(stats(t, s).Journal.Next, 3000)})
	}
	before := stats(t, s)
	if before.UsedBytes > 1<<20 || before.FileBytes < 30<<20 {
		t.Fatalf("%d of %d bytes are used", before.UsedBytes, before.FileBytes)
	}
	crashed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again := func(name string) {
		s := open(t, path, o)
		defer s.Close()
		if got := blocks(t, s, 0); len(got) != 3 {
			t.Errorf("%s: %d blocks", name, len(got))
		}
		for i := range uint64(5) {
			commit(t, s, &buffer.Commit{Block: block(4+i, 1<<20)})
		}
		if v := stats(t, s); v.FileBytes != before.FileBytes {
			t.Errorf("%s: the file grew from %d to %d", name, before.FileBytes, v.FileBytes)
		}
		if got := blocks(t, s, 0); len(got) != 8 {
			t.Errorf("%s: %d blocks", name, len(got))
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again("closed")
	if err := os.WriteFile(path, crashed, 0o600); err != nil {
		t.Fatal(err)
	}
	again("crashed")
}
