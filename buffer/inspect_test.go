package buffer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tidemark/buffer"
)

func TestCheckOfASoundStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	for seq := uint64(1); seq <= 20; seq++ {
		commit(t, s, &buffer.Commit{Block: block(seq, 5000), Records: []buffer.Record{{Data: pattern(seq, 3000)}},
			Checkpoint: whole(pattern(seq, 4000)), Meta: map[string][]byte{"large": pattern(seq, 9000)}, AtMS: 5})
	}
	if _, err := buffer.Check(path, nil); !errors.As(err, new(*buffer.LockedError)) {
		t.Errorf("while it is in use: %v", err)
	}
	s.Outbox("plant").Delivered(buffer.Live, 7)
	s.Close()
	r, err := buffer.Check(path, nil)
	if err != nil || r.FaultCount != 0 {
		t.Fatal(err, r.Faults)
	}
	if r.Journal.Len() != 20 || r.Readings != 20*500 || r.Outbox.Len() != 13 || r.Cursors["plant"] != 7 ||
		len(r.Checkpoints) != 2 || r.Checkpoints[0] != 20 || r.Checkpoints[1] != 19 || r.LatestMS != 5 || r.CreatedMS != 1_767_225_600_000 {
		t.Errorf("report %+v", r)
	}
	if b := r.Buckets["journal"]; b.Values != 20*6 || b.Bytes < 100_000 {
		t.Errorf("journal %+v", b)
	}
}

// The check names the offset of a single wrong byte.
func TestCheckNamesTheOffset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	commit(t, s, &buffer.Commit{Block: block(1, 500)})
	commit(t, s, &buffer.Commit{Block: block(2, 500)})
	s.Close()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(file, pattern(2, 500))
	file[at+100] ^= 1
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := buffer.Check(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.FaultCount != 2 || r.Faults[0].Bucket != "journal" || r.Faults[0].Key != "2" || r.Faults[0].Offset > int64(at) || r.Faults[0].Offset < int64(at)-100 {
		t.Errorf("faults %+v, want block 2 just before offset %d, and that it is missing", r.Faults, at)
	}
}

func TestSalvageOfASoundStoreIsTheStore(t *testing.T) {
	dir := t.TempDir()
	file, _, want := victim(t)
	src, dst := filepath.Join(dir, "src.db"), filepath.Join(dir, "dst.db")
	if err := os.WriteFile(src, file, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := buffer.Salvage(src, dst, nil)
	if err != nil || !found.Complete || !found.State || found.Blocks != 60 || len(found.Gaps) != 0 || found.LostRecords != 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	if r, err := buffer.Check(dst, nil); err != nil || r.FaultCount != 0 {
		t.Error(err, r.Faults)
	}
	if _, err := buffer.Salvage(src, dst, nil); err == nil {
		t.Error("an existing file was overwritten")
	}
	s := open(t, dst, opts())
	got, faults := read(s)
	if len(faults) != 0 {
		t.Fatal(faults)
	}
	if got.last != want.last || got.seq != want.seq || got.checkpoint != want.checkpoint || len(got.records) != len(want.records) || len(got.blocks) != 60 {
		t.Errorf("recovery from %d to %d, %d blocks, %d records", got.seq, got.last, len(got.blocks), len(got.records))
	}
	if len(s.Losses()) != 0 {
		t.Error(s.Losses())
	}
	if after, _ := os.ReadFile(src); !bytes.Equal(after, file) {
		t.Error("the source was changed")
	}
}

// A journal with a hole: what is around it is read, and the gateway that opens the
// file hears of the loss.
func TestSalvageLeavesGaps(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src.db"), filepath.Join(dir, "dst.db")
	s := open(t, src, opts())
	for seq := uint64(1); seq <= 30; seq++ {
		commit(t, s, &buffer.Commit{Block: block(seq, 3000)})
	}
	s.Close()
	file, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	hole := pattern(15, 3000)[1200:1260]
	for at := bytes.Index(file, hole); at >= 0; at = bytes.Index(file, hole) {
		file[at] ^= 0x40
	}
	if err := os.WriteFile(src, file, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := buffer.Salvage(src, dst, nil)
	if err != nil || !found.Complete || found.Blocks != 29 || len(found.Gaps) != 1 || found.Gaps[0] != (buffer.Gap{First: 15, Next: 16}) {
		t.Fatalf("%+v, %v", found, err)
	}
	s = open(t, dst, opts())
	if got := blocks(t, s, 0); len(got) != 29 {
		t.Errorf("%d blocks", len(got))
	}
	if _, from, to, err := s.Recover(); err != nil || from != 0 || to != 30 {
		t.Errorf("recovery from %d to %d: %v", from, to, err)
	}
	if l := s.Losses(); len(l) != 1 || l[0].Kind != buffer.LossRaw || l[0].Damaged != 1 || l[0].First != 15 {
		t.Errorf("losses %+v", l)
	}
}

func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	o := opts()
	o.Quota = 128 << 20
	s := open(t, path, o)
	var records []buffer.Record
	for i := range uint64(1000) {
		records = append(records, buffer.Record{Kind: 1, Data: pattern(i, 9000)})
	}
	for range 8 {
		commit(t, s, &buffer.Commit{Records: records})
	}
	s.Outbox("plant").Delivered(buffer.Live, 8000)
	commit(t, s, &buffer.Commit{Block: block(1, 3000)})
	s.Close()

	// At start, if that is wanted.
	full, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o.Compact = true
	s, did, err := buffer.Open(path, o)
	if err != nil || !did.Compacted {
		t.Fatal(did, err)
	}
	if got := blocks(t, s, 0); len(got) != 1 || stats(t, s).FileBytes > 4<<20 {
		t.Errorf("%d blocks in %d bytes", len(got), stats(t, s).FileBytes)
	}
	commit(t, s, &buffer.Commit{Block: block(2, 3000)})
	s.Close()

	// At rest.
	if err := os.WriteFile(path, full, 0o600); err != nil {
		t.Fatal(err)
	}
	before, after, err := buffer.Compact(path, nil)
	if err != nil || before != int64(len(full)) || after > 4<<20 {
		t.Fatal(before, after, err)
	}
	s = open(t, path, opts())
	if got := blocks(t, s, 0); len(got) != 1 {
		t.Errorf("%d blocks", len(got))
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("files left behind: %v", files)
	}
}

// What is full of long values has four chunks to a page before and after.
func TestCompactDoesNotGrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	for seq := uint64(1); seq <= 100; seq++ {
		commit(t, s, &buffer.Commit{Block: block(seq, 20_000)})
	}
	s.Close()
	before, after, err := buffer.Compact(path, nil)
	if err != nil || after > before || after > 100*20_000*12/10 {
		t.Errorf("%d bytes became %d, %v", before, after, err)
	}
}
