package buffer_test

import (
	"context"
	"path/filepath"
	"testing"

	"tidemark/buffer"
)

func rawOpts() buffer.Options {
	o := opts()
	o.Raw = []string{"plant"}
	return o
}

// A cursor over the journal knows the reading, survives a restart, and begins with
// the next block where readings were not taken before.
func TestReadingsCursor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	commit(t, s, &buffer.Commit{Block: block(1, 100)})
	if _, _, _, ok, err := s.Outbox("plant").NextBlock(); ok || err != nil {
		t.Errorf("an uplink that takes no readings got some (%v)", err)
	}
	s.Close()

	s = open(t, path, rawOpts())
	o := s.Outbox("plant")
	o.Begin(false)
	for n := uint64(2); n < 5; n++ {
		commit(t, s, &buffer.Commit{Block: block(n, 100)})
	}
	next := func(want uint64, index int, waiting bool) {
		t.Helper()
		b, from, waited, ok, err := o.NextBlock()
		if err != nil || ok != (want > 0) || b.Seq != want || from != index || waited != waiting {
			t.Errorf("block %d from %d (waited %t, %v), want %d from %d (%t)", b.Seq, from, waited, err, want, index, waiting)
		}
	}
	next(2, 0, false)
	next(3, 0, false)
	o.DeliveredReadings(buffer.Position{Block: 3, Index: 4})
	o.DeliveredReadings(buffer.Position{Block: 2, Index: 9}) // never back
	o.Rewind()
	next(3, 4, false)
	if n := o.WaitingBlocks(); n != 2 {
		t.Errorf("%d blocks wait, want 2", n)
	}
	s.Close()

	s = open(t, path, rawOpts())
	o = s.Outbox("plant")
	o.Begin(false)
	next(3, 4, true)
	next(4, 0, true)
	next(0, 0, false)
	done := make(chan error)
	go func() { done <- o.Wait(context.Background()) }()
	commit(t, s, &buffer.Commit{Block: block(5, 100)})
	if err := <-done; err != nil {
		t.Error(err)
	}
	next(5, 0, false)
	s.Close()

	s = open(t, path, opts()) // it takes none any more
	commit(t, s, &buffer.Commit{Block: block(6, 100)})
	s.Close()
	o = open(t, path, rawOpts()).Outbox("plant")
	next(0, 0, false)
}

// Blocks whose readings are not delivered outlive their retention, and no longer.
func TestRetentionWaitsForReadings(t *testing.T) {
	o := rawOpts()
	o.RetainMS = 10_000
	s := newStore(t, o)
	next, err := feed(t, s, 1, 300, func(uint64) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	if v := stats(t, s); v.Journal.First != 1 {
		t.Errorf("blocks before %d are gone and were not delivered", v.Journal.First)
	}
	s.Outbox("plant").DeliveredReadings(buffer.Position{Block: 200, Index: 3})
	if _, err = feed(t, s, next, 20, func(uint64) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if v := stats(t, s); v.Journal.First < 100 || v.Journal.First > 200 {
		t.Errorf("held from block %d, want at most 200 and not much less", v.Journal.First)
	}
	if l := s.Losses(); len(l) > 0 {
		t.Errorf("losses: %+v", l)
	}
}

// The quota passes readings that are not delivered, and says whose they were.
func TestQuotaTakesUndeliveredReadings(t *testing.T) {
	o := rawOpts()
	o.Quota = 8 << 20
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, o)
	s.Outbox("plant").DeliveredReadings(buffer.Position{Block: 1, Index: 5})
	unsent, raw := map[uint64]int64{}, map[uint64]int64{}
	seen := uint64(0)
	last, err := feed(t, s, 1, 800, func(uint64) bool {
		for _, l := range s.Losses() {
			if l.ID <= seen {
				continue
			}
			seen = l.ID
			to := raw
			if l.Kind == buffer.LossUnsent {
				if to = unsent; l.Uplink != "plant" {
					t.Errorf("loss: %+v", l)
				}
			}
			to[l.First] = l.Readings
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(unsent) == 0 || len(unsent) != len(raw) {
		t.Errorf("%d losses of the uplink, %d of the journal", len(unsent), len(raw))
	}
	for first, n := range raw {
		if unsent[first] != n {
			t.Errorf("from block %d on %d readings were dropped, %d of them not sent", first, n, unsent[first])
		}
	}
	first := stats(t, s).Journal.First
	b, from, _, ok, err := s.Outbox("plant").NextBlock()
	if err != nil || !ok || b.Seq != first || from != 0 {
		t.Errorf("next is block %d from %d (%t, %v), want %d of %d", b.Seq, from, ok, err, first, last)
	}
	s.Close()
	s = open(t, path, o)
	if b, _, _, _, err := s.Outbox("plant").NextBlock(); err != nil || b.Seq != first {
		t.Errorf("after a restart next is block %d (%v), want %d", b.Seq, err, first)
	}
}

// What went ahead of a backlog is no loss when the quota takes the backlog.
func TestQuotaCountsWhatWentAhead(t *testing.T) {
	t.Parallel()
	o := opts()
	o.Quota = 4 << 20
	s := newStore(t, o)
	out := s.Outbox("plant")
	seq := uint64(0)
	record := func(n int) { // chains of their own
		seq++
		c := &buffer.Commit{Block: block(seq, 1), KeepFrom: seq + 1}
		for range n {
			c.Records = append(c.Records, buffer.Record{Kind: 1, Data: pattern(seq, 900)})
		}
		commit(t, s, c)
	}
	record(1000)
	out.Begin(false)
	record(500)
	if rs, _, err := out.Next(buffer.Live, nil, 500, 1<<20); err != nil || len(rs) != 500 {
		t.Fatalf("%d live records, %v", len(rs), err)
	}
	out.Delivered(buffer.Live, 1500)
	var lost int64
	for {
		for _, l := range s.Losses() {
			if l.Next > 1500 {
				if lost != 1000 {
					t.Errorf("%d records lost before the first that was never read, want 1000", lost)
				}
				return
			}
			lost += l.Records
		}
		var reported uint64
		if l := s.Losses(); len(l) > 0 {
			reported = l[len(l)-1].ID
		}
		commit(t, s, &buffer.Commit{Reported: reported})
		record(100)
	}
}
