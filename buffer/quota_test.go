package buffer_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"tidemark/buffer"
)

func stats(t testing.TB, s *buffer.Store) buffer.Stats {
	t.Helper()
	v, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// feed commits blocks of 20 KB from seq on until stop returns true or a commit
// fails, a checkpoint with every tenth and wherever the store wants one.
func feed(t *testing.T, s *buffer.Store, seq uint64, most int, stop func(seq uint64) bool) (uint64, error) {
	t.Helper()
	var reported uint64
	for range most {
		c := &buffer.Commit{Block: block(seq, 20_000), KeepFrom: seq + 1, AtMS: int64(seq) * 1000, Reported: reported}
		c.Records = []buffer.Record{{Kind: 1, Data: pattern(seq, 200)}}
		if seq%10 == 0 || s.WantsCheckpoint() {
			c.Checkpoint = whole(pattern(seq, 3000))
		}
		if err := s.Commit(c); err != nil {
			return seq, err
		}
		seq++
		if stop(seq) {
			return seq, nil
		}
		if l := s.Losses(); len(l) > 0 {
			reported = l[len(l)-1].ID
		}
	}
	return seq, nil
}

func TestDropOldestRaw(t *testing.T) {
	t.Parallel()
	o := opts()
	o.Quota = 8 << 20
	path := filepath.Join(t.TempDir(), "q.db")
	s := open(t, path, o)
	lost := map[uint64]bool{}
	seen := uint64(0)
	last, err := feed(t, s, 1, 1200, func(seq uint64) bool {
		for _, l := range s.Losses() {
			if l.ID <= seen {
				continue
			}
			seen = l.ID
			if l.Kind != buffer.LossRaw || l.Readings != int64(l.Next-l.First)*2000 ||
				l.MinMS != int64(l.First)*1000 || l.MaxMS != int64(l.Next-1)*1000+999 || l.Damaged != 0 {
				t.Fatalf("loss %+v", l)
			}
			for b := l.First; b < l.Next; b++ {
				lost[b] = true
			}
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	v := stats(t, s)
	if v.FileBytes > o.Quota || v.Journal.Len() < 100 {
		t.Errorf("file %d of %d, %d blocks", v.FileBytes, o.Quota, v.Journal.Len())
	}
	if len(s.Losses()) > 2 {
		t.Errorf("%d losses are not forgotten", len(s.Losses()))
	}
	for b := uint64(1); b < v.Journal.First; b++ {
		if !lost[b] {
			t.Fatalf("block %d went without a loss", b)
		}
	}
	if lost[v.Journal.First] {
		t.Error("a block that is held is called lost")
	}
	_, from, to, err := s.Recover()
	if err != nil || to != last-1 || from < v.Journal.First-1 {
		t.Errorf("recovery from %d to %d, %v; the journal begins at %d", from, to, err, v.Journal.First)
	}
	if got := blocks(t, s, 0); got[0].Seq != v.Journal.First || len(got) != int(v.Journal.Len()) {
		t.Errorf("%d blocks from %d", len(got), got[0].Seq)
	}
	if v.Outbox.Len() != 1200 {
		t.Errorf("%d records left, want all", v.Outbox.Len())
	}
}

// What recovery or undecided readings need is never dropped: the store is full
// before.
func TestQuotaNeverPassesWhatIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		keep       func(seq uint64) uint64
		checkpoint bool
		wants      bool
	}{
		"without checkpoints":     {func(seq uint64) uint64 { return seq + 1 }, false, true},
		"with undecided readings": {func(uint64) uint64 { return 1 }, true, false},
		"with all wanted":         {func(uint64) uint64 { return 0 }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := opts()
			o.Quota, o.Uplinks = 4<<20, nil
			s := newStore(t, o)
			var err error
			seq := uint64(0)
			for err == nil && seq < 1000 {
				seq++
				k := &buffer.Commit{Block: block(seq, 20_000), KeepFrom: c.keep(seq)}
				if c.checkpoint {
					k.Checkpoint = whole(pattern(seq, 100))
				}
				err = s.Commit(k)
			}
			var full *buffer.FullError
			if !errors.Is(err, buffer.ErrFull) || !errors.As(err, &full) || full.Reason != buffer.FullQuota {
				t.Fatal(seq, err)
			}
			if s.WantsCheckpoint() != c.wants {
				t.Errorf("WantsCheckpoint is %t", s.WantsCheckpoint())
			}
			if got := blocks(t, s, 0); len(got) != int(seq)-1 || got[0].Seq != 1 {
				t.Errorf("%d blocks, want %d", len(got), seq-1)
			}
			if len(s.Losses()) != 0 {
				t.Error(s.Losses())
			}
		})
	}
}

// A checkpoint lets a full store go on. It takes no part in the commit that was
// refused.
func TestCheckpointMakesRoom(t *testing.T) {
	o := opts()
	o.Quota = 4 << 20
	s := newStore(t, o)
	var err error
	var c *buffer.Commit
	for seq := uint64(1); err == nil; seq++ {
		c = &buffer.Commit{Block: block(seq, 20_000), KeepFrom: seq + 1}
		err = s.Commit(c)
	}
	if !errors.Is(err, buffer.ErrFull) {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Commit(&buffer.Commit{Checkpoint: whole(pattern(1, 100)), KeepFrom: c.Block.Seq}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(c); err != nil {
		t.Errorf("the same commit again: %v", err)
	}
	if len(s.Losses()) != 1 {
		t.Error(s.Losses())
	}
}

func TestHoldSources(t *testing.T) {
	o := opts()
	o.Quota, o.WhenFull, o.RetainMS = 8<<20, buffer.HoldSources, 100_000
	s := newStore(t, o)
	// All blocks are of one time, so that none is old.
	seq := uint64(1)
	var err error
	var c *buffer.Commit
	for ; err == nil; seq++ {
		c = &buffer.Commit{Block: block(seq, 20_000), KeepFrom: seq + 1, AtMS: 1000, Checkpoint: whole(pattern(seq, 10))}
		err = s.Commit(c)
	}
	var full *buffer.FullError
	if !errors.As(err, &full) || full.Reason != buffer.FullHold {
		t.Fatal(err)
	}
	if len(s.Losses()) != 0 || stats(t, s).Journal.First != 1 {
		t.Errorf("dropped: %v", s.Losses())
	}
	// The reserve still takes what is no raw reading.
	commit(t, s, &buffer.Commit{Records: []buffer.Record{{Kind: 1, Data: pattern(1, 5000)}}, KeepFrom: c.KeepFrom})
	if err := s.Commit(c); !errors.Is(err, buffer.ErrFull) {
		t.Errorf("held no longer: %v", err)
	}
	// Time makes room.
	c.AtMS = 101_001
	if err := s.Commit(c); err != nil {
		t.Errorf("after the retention: %v", err)
	}
	if len(s.Losses()) != 0 {
		t.Errorf("retention is no loss: %v", s.Losses())
	}
}

// With the uplink away for ever, the oldest records go, each with evidence, and
// the store lives on.
func TestOutboxOverflow(t *testing.T) {
	o := opts()
	o.Quota, o.Uplinks = 4<<20, []string{"cloud", "plant"}
	path := filepath.Join(t.TempDir(), "o.db")
	s := open(t, path, o)
	lost := map[string]uint64{}
	next := uint64(1)
	for i := range uint64(600) {
		c := &buffer.Commit{KeepFrom: 1}
		for range 20 {
			c.Records = append(c.Records, buffer.Record{Kind: 1, Data: pattern(next, 1000)})
			next++
		}
		if i == 300 {
			s.Outbox("cloud").Delivered(buffer.Live, next-30)
		}
		for _, l := range s.Losses() {
			if l.Kind != buffer.LossOutbox || l.First < lost[l.Uplink]+1 {
				t.Fatalf("loss %+v after %d", l, lost[l.Uplink])
			}
			lost[l.Uplink] = l.Next - 1
			c.Reported = l.ID
		}
		commit(t, s, c)
	}
	if lost["plant"] == 0 || lost["cloud"] == 0 {
		t.Fatalf("lost %v", lost)
	}
	v := stats(t, s)
	if v.FileBytes > o.Quota {
		t.Errorf("file has %d bytes", v.FileBytes)
	}
	recs, _, err := s.Outbox("plant").Next(buffer.Live, nil, 10, 1<<20)
	if err != nil || len(recs) != 10 || recs[0].Seq != v.Outbox.First || recs[0].Seq < lost["plant"]+1 {
		t.Errorf("%d records from %d, %v; lost up to %d, held from %d", len(recs), recs[0].Seq, err, lost["plant"], v.Outbox.First)
	}
	if got := v.Backlog["plant"]; got != int64(v.Outbox.Len()) {
		t.Errorf("backlog %d of %d", got, v.Outbox.Len())
	}
}

func TestRetention(t *testing.T) {
	o := opts()
	o.RetainMS = 10_000
	s := newStore(t, o)
	ev := func(ms int64) []buffer.Evidence { return []buffer.Evidence{{Kind: 1, AtMS: ms, Data: pattern(1, 10)}} }
	at := func(seq uint64, ms, evMS int64) {
		commit(t, s, &buffer.Commit{Block: block(seq, 100), KeepFrom: seq + 1, AtMS: ms, Evidence: ev(evMS), Checkpoint: whole([]byte{1})})
	}
	seq := uint64(1)
	for ; seq <= 100; seq++ { // the clock is not trusted: nothing has an age
		at(seq, 0, 100_000)
	}
	if v := stats(t, s); v.Journal.First != 1 {
		t.Fatalf("journal begins at %d with the time unknown", v.Journal.First)
	}
	for ; seq <= 200; seq++ { // it is: what was before is as old as this
		at(seq, 100_000, 100_000)
	}
	if v := stats(t, s); v.Journal.First != 1 || v.Evidence.First != 1 {
		t.Fatalf("journal begins at %d, evidence at %d before the retention", v.Journal.First, v.Evidence.First)
	}
	for ; seq <= 300; seq++ {
		at(seq, 110_001, 110_001)
	}
	v := stats(t, s)
	if v.Journal.First < 129 || v.Journal.First > 201 || v.Evidence.First < 129 || v.Evidence.First > 201 {
		t.Errorf("journal begins at %d, evidence at %d after the retention", v.Journal.First, v.Evidence.First)
	}
	if len(s.Losses()) != 0 {
		t.Error(s.Losses())
	}
	if got := blocks(t, s, 0); got[0].Seq != v.Journal.First || v.OldestMS != 100_000 {
		t.Errorf("first block %d, oldest %d", got[0].Seq, v.OldestMS)
	}
}

func TestEvidenceIsBounded(t *testing.T) {
	o := opts()
	o.EvidenceMax = 200_000
	s := newStore(t, o)
	lost := uint64(0)
	for range 400 {
		c := &buffer.Commit{Evidence: []buffer.Evidence{{Kind: 1, Data: pattern(1, 2000)}}}
		for _, l := range s.Losses() {
			if l.Kind != buffer.LossEvidence || l.First != lost+1 {
				t.Fatalf("loss %+v after %d", l, lost)
			}
			lost, c.Reported = l.Next-1, l.ID
		}
		commit(t, s, c)
		if v := stats(t, s); v.Evidence.Bytes > o.EvidenceMax || v.Evidence.Bytes < 0 {
			t.Fatalf("%d bytes of evidence", v.Evidence.Bytes)
		}
	}
	if lost == 0 {
		t.Error("nothing was dropped")
	}
}

// Losses survive until they are reported, whatever happens in between.
func TestLossOutlivesCrash(t *testing.T) {
	o := opts()
	o.EvidenceMax = 50_000
	path := filepath.Join(t.TempDir(), "l.db")
	s := open(t, path, o)
	for len(s.Losses()) == 0 {
		commit(t, s, &buffer.Commit{Evidence: []buffer.Evidence{{Data: pattern(1, 2000)}}})
	}
	want := s.Losses()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, o)
	if got := s.Losses(); len(got) != 1 || got[0] != want[0] {
		t.Fatalf("losses %+v, want %+v", got, want)
	}
	commit(t, s, &buffer.Commit{Reported: want[0].ID})
	if got := s.Losses(); len(got) != 0 {
		t.Errorf("reported losses are still there: %+v", got)
	}
}

func TestQuotaBounds(t *testing.T) {
	for name, o := range map[string]buffer.Options{
		"too small":         {Quota: buffer.MinQuota - 1},
		"reserve too large": {Quota: buffer.MinQuota, Reserve: buffer.MinQuota/2 + 1},
		"nameless uplink":   {Quota: buffer.MinQuota, Uplinks: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "b.db")
			if _, _, err := buffer.Open(path, o); err == nil {
				t.Error("opened")
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("created")
			}
		})
	}
}

// How long raw readings fit follows from the rate of those that are held.
func TestRoomLeft(t *testing.T) {
	o := opts()
	o.Quota = 16 << 20
	s := open(t, filepath.Join(t.TempDir(), "t.db"), o)
	for seq := uint64(1); seq <= 120; seq++ {
		commit(t, s, &buffer.Commit{Block: block(seq, 9000), AtMS: 1000 * int64(seq), KeepFrom: seq})
		st, err := s.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if seq <= 60 && st.RoomMS != -1 {
			t.Fatalf("after %d s it is said that %d ms fit", seq, st.RoomMS)
		}
		if perMS := float64(st.Journal.Bytes) / float64(st.LatestMS-st.OldestMS); seq > 60 {
			if want := float64(st.RawBytes-st.UsedBytes) / perMS; math.Abs(float64(st.RoomMS)-want) > want/50 {
				t.Fatalf("after %d s %d ms fit, want %.0f", seq, st.RoomMS, want)
			}
		}
	}
}
