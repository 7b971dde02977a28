package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/buffer"
)

// opts are the options of most tests.
func opts() buffer.Options {
	return buffer.Options{Quota: 32 << 20, Uplinks: []string{"plant"}, NowMS: 1_767_225_600_000}
}

func open(t testing.TB, path string, o buffer.Options) *buffer.Store {
	t.Helper()
	s, _, err := buffer.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newStore(t testing.TB, o buffer.Options) *buffer.Store {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "t.db"), o)
}

func commit(t testing.TB, s *buffer.Store, c *buffer.Commit) {
	t.Helper()
	if err := s.Commit(c); err != nil {
		t.Fatal(err)
	}
}

// pattern is n bytes that tell where they belong.
func pattern(seq uint64, n int) []byte {
	b := make([]byte, n)
	x := seq*0x9E3779B97F4A7C15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

func block(seq uint64, n int) *buffer.Block {
	ms := int64(seq) * 1000
	return &buffer.Block{Seq: seq, MinMS: ms, MaxMS: ms + 999, Digest: [8]byte(pattern(seq, 8)), Readings: n / 10, Data: pattern(seq, n)}
}

func blocks(t testing.TB, s *buffer.Store, from uint64) (bs []buffer.Block) {
	t.Helper()
	if err := s.Blocks(from, func(b buffer.Block) error { bs = append(bs, b); return nil }); err != nil {
		t.Fatal(err)
	}
	return bs
}

func TestCommitIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s, did, err := buffer.Open(path, opts())
	if err != nil || *did != (buffer.Opened{Created: true}) {
		t.Fatal(did, err)
	}
	var want []buffer.Block
	for i, n := range []int{0, 1, 1900, 1902, 1903, 1904, 1944, 3000, 100_000} {
		b := block(uint64(i+1), n)
		b.Index = pattern(b.Seq, i*100)
		if i == 0 {
			b.MinMS, b.MaxMS = math.MinInt64, math.MinInt64
			b.Index = nil
		}
		commit(t, s, &buffer.Commit{
			Block:    b,
			Records:  []buffer.Record{{Kind: 1, Data: pattern(b.Seq, n)}, {Kind: 2}},
			Evidence: []buffer.Evidence{{Kind: 3, AtMS: 77, Data: pattern(b.Seq, 50)}},
			Meta:     map[string][]byte{"small": pattern(b.Seq, 10), "large": pattern(b.Seq, n), "gone": {1}},
			AtMS:     int64(5000 + i),
		})
		b.AtMS = int64(5000 + i)
		want = append(want, *b)
	}
	commit(t, s, &buffer.Commit{Meta: map[string][]byte{"gone": nil, "empty": {}}})

	verify := func(s *buffer.Store) {
		t.Helper()
		got := blocks(t, s, 0)
		for i := range got {
			if len(got[i].Data) == 0 {
				got[i].Data = []byte{}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(want[3:], blocks(t, s, 4)); d != "" {
			t.Fatal(d)
		}
		i := 0
		if err := s.Headers(1, func(b buffer.Block) error {
			if b.Data != nil || b.MinMS != want[i].MinMS || !bytes.Equal(b.Index, want[i].Index) || b.Digest != want[i].Digest {
				return fmt.Errorf("header %d is %+v", i, b)
			}
			i++
			return nil
		}); err != nil || i != len(want) {
			t.Fatal(i, err)
		}
		if !bytes.Equal(s.Meta("small"), pattern(9, 10)) || !bytes.Equal(s.Meta("large"), pattern(9, 100_000)) {
			t.Error("meta differs")
		}
		if s.Meta("gone") != nil || s.Meta("empty") == nil || s.Meta("never") != nil {
			t.Errorf("gone %v, empty %v, never %v", s.Meta("gone"), s.Meta("empty"), s.Meta("never"))
		}
		out := s.Outbox("plant")
		out.Rewind()
		recs, _, err := out.Next(buffer.Live, nil, 100, 1<<20)
		if err != nil || len(recs) != 18 {
			t.Fatalf("%d records, %v", len(recs), err)
		}
		for i, r := range recs {
			b := want[i/2]
			if r.Seq != uint64(i+1) || r.AtMS != b.AtMS || r.Kind != byte(1+i%2) || i%2 == 0 && !bytes.Equal(r.Data, b.Data) {
				t.Errorf("record %d: seq %d at %d kind %d", i, r.Seq, r.AtMS, r.Kind)
			}
		}
		n := 0
		if err := s.Evidence(0, func(e buffer.StoredEvidence) error {
			n++
			if e.Seq != uint64(n) || e.Kind != 3 || e.AtMS != 77 || !bytes.Equal(e.Data, pattern(e.Seq, 50)) {
				return fmt.Errorf("evidence %d is %+v", n, e)
			}
			return nil
		}); err != nil || n != 9 {
			t.Fatal(n, err)
		}
	}
	verify(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, did, err = buffer.Open(path, opts())
	if err != nil || *did != (buffer.Opened{}) {
		t.Fatal(did, err)
	}
	verify(s)
	s.Close()
}

func TestRefusedCommitChangesNothing(t *testing.T) {
	for name, c := range map[string]*buffer.Commit{
		"block out of sequence": {Block: block(3, 1)},
		"block again":           {Block: block(1, 1)},
		"index too long":        {Block: &buffer.Block{Seq: 2, Index: make([]byte, 1025)}},
		"negative readings":     {Block: &buffer.Block{Seq: 2, Readings: -1}},
		"nameless value":        {Meta: map[string][]byte{"": {1}}},
		"name with NUL":         {Meta: map[string][]byte{"a\x00b": {1}}},
		"record too long":       {Records: []buffer.Record{{Data: make([]byte, 128<<20)}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, opts())
			commit(t, s, &buffer.Commit{Block: block(1, 10)})
			if err := s.Commit(c); err == nil || errors.Is(err, buffer.ErrFull) || errors.As(err, new(*buffer.BrokenError)) {
				t.Fatalf("error is %v", err)
			}
			commit(t, s, &buffer.Commit{Block: block(2, 10)})
		})
	}
}

func TestClosed(t *testing.T) {
	s := newStore(t, opts())
	out := s.Outbox("plant")
	waited := make(chan error)
	go func() { waited <- out.Wait(context.Background()) }()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, buffer.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
	_, _, _, recoverErr := s.Recover()
	_, _, nextErr := out.Next(buffer.Live, nil, 1, 1)
	_, statsErr := s.Stats()
	_, backlogErr := out.Waiting()
	for name, err := range map[string]error{
		"Commit": s.Commit(&buffer.Commit{}), "FlushCursors": s.FlushCursors(), "Recover": recoverErr,
		"Next": nextErr, "Stats": statsErr, "Backlog": backlogErr,
		"Blocks": s.Blocks(0, func(buffer.Block) error { return nil }),
	} {
		if !errors.Is(err, buffer.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestTwoOpens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	commit(t, s, &buffer.Commit{Block: block(1, 10)})
	var locked *buffer.LockedError
	if _, _, err := buffer.Open(path, opts()); !errors.As(err, &locked) {
		t.Fatalf("second open: %v", err)
	}
	if locked.PID != os.Getpid() {
		t.Errorf("holder is %d, want %d", locked.PID, os.Getpid())
	}
	commit(t, s, &buffer.Commit{Block: block(2, 10)})
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("files left behind: %v", files)
	}
}

// whole is a snapshot that is there in one piece.
func whole(data []byte) buffer.Snapshot {
	return func(put func([]byte) error) error { return put(data) }
}
