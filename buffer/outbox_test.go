package buffer_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tidemark/buffer"
)

func send(t *testing.T, s *buffer.Store, n int) {
	t.Helper()
	c := &buffer.Commit{}
	for i := range n {
		c.Records = append(c.Records, buffer.Record{Kind: 1, Data: pattern(uint64(i), 100)})
	}
	commit(t, s, c)
}

// next returns the numbers of the next records.
func next(t *testing.T, o *buffer.Outbox, n, bytes int) (seqs []uint64) {
	t.Helper()
	recs, _, err := o.Next(buffer.Live, nil, n, bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		seqs = append(seqs, r.Seq)
	}
	return seqs
}

func TestNextIsBounded(t *testing.T) {
	s := newStore(t, opts())
	send(t, s, 10)
	o := s.Outbox("plant")
	for _, step := range []struct {
		n, bytes int
		want     int
	}{{0, 1000, 0}, {3, 1000, 3}, {10, 250, 2}, {10, 1, 1}, {10, 0, 1}, {10, 10_000, 3}, {10, 10_000, 0}} {
		if got := next(t, o, step.n, step.bytes); len(got) != step.want {
			t.Errorf("at most %d records and %d bytes: got %d, want %d", step.n, step.bytes, len(got), step.want)
		}
	}
}

func TestWaitWakes(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := newStore(t, opts())
	defer s.Close()
	o := s.Outbox("plant")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	if err := o.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with nothing there: %v", err)
	}
	cancel()
	done := make(chan error)
	go func() { done <- o.Wait(context.Background()) }()
	commit(t, s, &buffer.Commit{Block: block(1, 10)}) // is nothing for the outbox
	select {
	case err := <-done:
		t.Fatalf("woken for nothing: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	send(t, s, 2)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := o.Wait(context.Background()); err != nil {
		t.Error(err)
	}
	if got := next(t, o, 10, 1000); len(got) != 2 {
		t.Errorf("got %d", len(got))
	}
	// After a rewind there is something again.
	o.Rewind()
	if err := o.Wait(context.Background()); err != nil {
		t.Error(err)
	}
}

// The mark of what was delivered survives a restart; what was only read is sent
// again.
func TestCursorIsPersisted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	send(t, s, 10)
	o := s.Outbox("plant")
	next(t, o, 8, 10_000)
	o.Delivered(buffer.Live, 5)
	o.Delivered(buffer.Live, 3)  // never back
	o.Delivered(buffer.Live, 99) // there are only ten
	if b, err := o.Waiting(); err != nil || b.Records != 0 {
		t.Errorf("backlog %+v, %v", b, err)
	}
	s.Close()
	s = open(t, path, opts())
	send(t, s, 1)
	if got := next(t, s.Outbox("plant"), 10, 10_000); len(got) != 1 || got[0] != 11 {
		t.Errorf("got %v", got)
	}
}

func TestUplinksComeAndGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	with := func(names ...string) *buffer.Store {
		o := opts()
		o.Uplinks = names
		return open(t, path, o)
	}
	s := with("a", "b")
	send(t, s, 600)
	s.Outbox("a").Delivered(buffer.Live, 600)
	s.Outbox("b").Delivered(buffer.Live, 100)
	s.Close()

	s = with("a", "c") // b no longer holds anything back, c begins with what is there
	if b, _ := s.Outbox("c").Waiting(); b.Records != 500 || b.OldestSeq != 101 {
		t.Errorf("a new uplink has %+v before it", b)
	}
	s.Outbox("c").Delivered(buffer.Live, 590)
	if err := s.FlushCursors(); err != nil {
		t.Fatal(err)
	}
	if v := stats(t, s); v.Outbox.First != 591 {
		t.Errorf("held from %d, want from 591", v.Outbox.First)
	}
	s.Close()

	s = with() // nobody reads: nothing is kept
	send(t, s, 10)
	if v := stats(t, s); v.Outbox.Len() != 0 && v.Outbox.Next != 601 {
		t.Errorf("outbox is %+v", v.Outbox)
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown uplink got an outbox")
		}
	}()
	s.Outbox("a")
}

// Delivered records go in batches with the commits, and at once with a flush;
// a flush with nothing to write writes nothing.
func TestDeliveredRecordsGo(t *testing.T) {
	s := newStore(t, opts())
	send(t, s, 700)
	o := s.Outbox("plant")
	o.Delivered(buffer.Live, 100)
	commit(t, s, &buffer.Commit{})
	if v := stats(t, s); v.Outbox.First != 1 {
		t.Errorf("held from %d: a few are not worth it", v.Outbox.First)
	}
	o.Delivered(buffer.Live, 600)
	commit(t, s, &buffer.Commit{})
	if v := stats(t, s); v.Outbox.First != 601 {
		t.Errorf("held from %d, want from 601", v.Outbox.First)
	}
	o.Delivered(buffer.Live, 610)
	for range 2 {
		if err := s.FlushCursors(); err != nil {
			t.Fatal(err)
		}
	}
	if v := stats(t, s); v.Outbox.First != 611 || v.Commits != 4 {
		t.Errorf("held from %d after %d commits, want from 611 after 4", v.Outbox.First, v.Commits)
	}
}
