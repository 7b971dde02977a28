package buffer_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tidemark/buffer"
)

// lanes drives one uplink's outbox through connections, outages and crashes, and
// holds what arrives against what was committed.
type lanes struct {
	path    string
	s       *buffer.Store
	o       *buffer.Outbox
	block   uint64
	chains  map[int]uint64 // open chain → the block that began it
	made    []made         // record n is made[n-1]
	ordered bool

	flight []sent      // in the order of sending, not answered
	got    map[int]int // chain → how many of its records have arrived
	seen   map[uint64]bool
	again  int
	since  uint64 // the last record that waited at the connection's begin

	sure, written map[uint64]bool // confirmed, and that on disk
}

type made struct{ chain, n int }

type sent struct {
	lane buffer.Lane
	upTo uint64
	seq  uint64 // 0 for a position only
}

func (x *lanes) open(t *rapid.T) {
	var err error
	x.s, _, err = buffer.Open(x.path, buffer.Options{Quota: 64 << 20, Uplinks: []string{"plant"}})
	if err != nil {
		t.Fatal(err)
	}
	x.o = x.s.Outbox("plant")
	x.Connect(t)
}

// Connect begins a connection; what was in flight over the last one is not
// answered any more.
func (x *lanes) Connect(*rapid.T) {
	x.flight = nil
	x.o.Begin(x.ordered)
	x.since = uint64(len(x.made))
}

// Commit commits records of some chains, old ones and new ones, and of none.
func (x *lanes) Commit(t *rapid.T) {
	x.block++
	c := &buffer.Commit{Block: block(x.block, 1)}
	for range rapid.IntRange(0, 6).Draw(t, "records") {
		chain := rapid.IntRange(0, 5).Draw(t, "chain")
		r := buffer.Record{Kind: 1}
		m := made{chain: -1}
		if chain > 0 {
			if x.chains[chain] == 0 || rapid.IntRange(0, 5).Draw(t, "new") == 0 {
				x.chains[chain] = x.block
			}
			r.Since = x.chains[chain]
			m.chain = int(r.Since)*10 + chain
		}
		for _, old := range x.made {
			if old.chain == m.chain {
				m.n++
			}
		}
		r.Data = fmt.Append(nil, m.chain, m.n)
		x.made = append(x.made, m)
		c.Records = append(c.Records, r)
	}
	if err := x.s.Commit(c); err != nil {
		t.Fatal(err)
	}
	x.written = maps.Clone(x.sure)
}

// Send reads from a lane and sends what it gives.
func (x *lanes) Send(t *rapid.T) {
	lane := rapid.SampledFrom([]buffer.Lane{buffer.Live, buffer.Backlog}).Draw(t, "lane")
	x.send(t, lane, rapid.IntRange(1, 5).Draw(t, "max"))
}

func (x *lanes) send(t *rapid.T, lane buffer.Lane, most int) int {
	rs, upTo, err := x.o.Next(lane, nil, most, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if lane == buffer.Live && r.Seq <= x.since {
			t.Fatalf("record %d waited and is live", r.Seq)
		}
		x.flight = append(x.flight, sent{lane, r.Seq, r.Seq})
		x.arrive(t, r)
	}
	x.flight = append(x.flight, sent{lane, upTo, 0})
	return len(rs)
}

// arrive is the broker's side: whatever is sent arrives at once, answered or not.
func (x *lanes) arrive(t *rapid.T, r buffer.StoredRecord) {
	m := x.made[r.Seq-1]
	if string(r.Data) != string(fmt.Append(nil, m.chain, m.n)) {
		t.Fatalf("record %d is %s", r.Seq, r.Data)
	}
	if x.seen[r.Seq] {
		x.again++
		return
	}
	x.seen[r.Seq] = true
	if m.chain < 0 {
		return
	}
	if x.got[m.chain] != m.n {
		t.Fatalf("record %d of chain %d came when %d of them had", m.n, m.chain, x.got[m.chain])
	}
	x.got[m.chain]++
}

// Answer confirms some of what is in flight, from the oldest on.
func (x *lanes) Answer(t *rapid.T) {
	if len(x.flight) == 0 {
		return
	}
	n := rapid.IntRange(1, len(x.flight)).Draw(t, "answers")
	x.confirm(x.flight[:n])
	x.flight = x.flight[n:]
}

func (x *lanes) confirm(all []sent) {
	for _, f := range all {
		x.o.Delivered(f.lane, f.upTo)
		x.sure[f.seq] = true
	}
	delete(x.sure, 0)
}

// Check compares the count of what waits.
func (x *lanes) Check(t *rapid.T) {
	w, err := x.o.Waiting()
	if want := int64(len(x.made) - len(x.sure)); err != nil || w.Records != want {
		t.Fatalf("%+v wait (%v), want %d", w, err, want)
	}
}

// Refuse has the uplink read again over the same connection.
func (x *lanes) Refuse(*rapid.T) {
	x.flight = nil
	x.o.Rewind()
}

// Flush writes the marks.
func (x *lanes) Flush(t *rapid.T) {
	if err := x.s.FlushCursors(); err != nil {
		t.Fatal(err)
	}
	x.written = maps.Clone(x.sure)
}

// Crash goes on with the file as it is.
func (x *lanes) Crash(t *rapid.T) {
	file, err := os.ReadFile(x.path)
	if err != nil {
		t.Fatal(err)
	}
	x.s.Close()
	if err := os.WriteFile(x.path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	x.sure = maps.Clone(x.written)
	x.open(t)
}

// Exhaust sends all that there is, over the same connection.
func (x *lanes) Exhaust(t *rapid.T) {
	for idle := 0; idle < 2; idle++ {
		for _, lane := range []buffer.Lane{buffer.Live, buffer.Backlog} {
			if x.send(t, lane, 100) > 0 {
				idle = 0
			}
		}
	}
}

// drain sends everything that is left and checks that nothing is missing, then
// that nothing is sent again by a new connection.
func (x *lanes) drain(t *rapid.T) {
	x.Connect(t)
	x.Exhaust(t)
	x.confirm(x.flight)
	for i := range x.made {
		if !x.seen[uint64(i+1)] {
			t.Fatalf("record %d of %d never came", i+1, len(x.made))
		}
	}
	if w, err := x.o.Waiting(); err != nil || w.Records != 0 {
		t.Fatalf("%+v still waits (%v)", w, err)
	}
	x.Connect(t)
	for _, lane := range []buffer.Lane{buffer.Live, buffer.Backlog} {
		if rs, _, err := x.o.Next(lane, nil, 1, 1); err != nil || len(rs) > 0 {
			t.Fatalf("record %d is sent again (%v)", rs[0].Seq, err)
		}
	}
}

// Whatever comes between, nothing is lost and every chain arrives in order; what
// was confirmed and written is never sent again.
func TestLanes(t *testing.T) {
	rapidChecks(t, "60")
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		x := &lanes{
			path: filepath.Join(dir, fmt.Sprintf("%d.db", n)), chains: map[int]uint64{}, got: map[int]int{}, seen: map[uint64]bool{},
			sure: map[uint64]bool{}, written: map[uint64]bool{},
			ordered: rapid.Bool().Draw(t, "ordered"),
		}
		x.open(t)
		defer func() { x.s.Close(); os.Remove(x.path) }()
		t.Repeat(map[string]func(*rapid.T){
			"": x.Check, "connect": x.Connect, "commit": x.Commit, "send": x.Send, "exhaust": x.Exhaust, "commit more": x.Commit, "answer": x.Answer,
			"refuse": x.Refuse, "flush": x.Flush, "crash": x.Crash,
		})
		x.drain(t)
	})
}

// seqs are the numbers of the lane's next records.
func seqs(t *testing.T, o *buffer.Outbox, lane buffer.Lane) (out []uint64) {
	t.Helper()
	rs, upTo, err := o.Next(lane, nil, 1000, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		out = append(out, r.Seq)
	}
	if n := len(out); n > 0 && upTo < out[n-1] {
		t.Errorf("the position is %d behind record %d", upTo, out[n-1])
	}
	return out
}

func put(t *testing.T, s *buffer.Store, n uint64, since ...uint64) {
	t.Helper()
	c := &buffer.Commit{Block: block(n, 1)}
	for _, b := range since {
		c.Records = append(c.Records, buffer.Record{Kind: 1, Since: b})
	}
	commit(t, s, c)
}

// What comes after a connection goes ahead of what waited; what continues a chain
// that waited keeps its place behind it.
func TestLiveGoesFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	put(t, s, 1, 1, 1, 0) // records 1 to 3
	o := s.Outbox("plant")
	o.Begin(false)
	put(t, s, 2, 2, 1, 0, 1) // 4 to 7
	if got := seqs(t, o, buffer.Live); !slices.Equal(got, []uint64{4, 6}) {
		t.Errorf("live: %v", got)
	}
	o.Delivered(buffer.Live, 7)
	s.Close()

	s = open(t, path, opts()) // what went ahead is known
	o = s.Outbox("plant")
	o.Begin(false)
	if w, err := o.Waiting(); err != nil || w.Records != 5 || w.OldestSeq != 1 {
		t.Errorf("waiting: %+v, %v", w, err)
	}
	put(t, s, 3, 3, 2, 1) // 8 to 10: block 2 lies before this connection
	if got := seqs(t, o, buffer.Live); !slices.Equal(got, []uint64{8}) {
		t.Errorf("live: %v", got)
	}
	if got := seqs(t, o, buffer.Backlog); !slices.Equal(got, []uint64{1, 2, 3, 5, 7, 9, 10}) {
		t.Errorf("backlog: %v", got)
	}
	seqs(t, o, buffer.Backlog) // finds nothing more: the lanes are one from here on
	put(t, s, 4, 1)
	if got := seqs(t, o, buffer.Live); !slices.Equal(got, []uint64{11}) {
		t.Errorf("live after the backlog: %v", got)
	}
	o.Delivered(buffer.Live, 10)
	o.Delivered(buffer.Backlog, 10)
	o.Delivered(buffer.Live, 11)
	if err := s.FlushCursors(); err != nil {
		t.Fatal(err)
	}
	if v := stats(t, s); v.Outbox.First != 12 {
		t.Errorf("held from %d, want from 12", v.Outbox.First)
	}
}

// What Backlog gave may not be sent yet: only when it is asked for more are the
// lanes one.
func TestLanesStayApartUntilTheBacklogIsSent(t *testing.T) {
	s := newStore(t, opts())
	put(t, s, 1, 1)
	o := s.Outbox("plant")
	o.Begin(false)
	if got := seqs(t, o, buffer.Backlog); !slices.Equal(got, []uint64{1}) {
		t.Errorf("backlog: %v", got)
	}
	seqs(t, o, buffer.Live)
	put(t, s, 2, 1) // of the same chain
	if got := seqs(t, o, buffer.Live); got != nil {
		t.Errorf("live: %v", got)
	}
	if got := seqs(t, o, buffer.Backlog); !slices.Equal(got, []uint64{2}) {
		t.Errorf("backlog: %v", got)
	}
	seqs(t, o, buffer.Backlog)
	put(t, s, 3, 1)
	if got := seqs(t, o, buffer.Live); !slices.Equal(got, []uint64{3}) {
		t.Errorf("live after the backlog: %v", got)
	}
}

// In order, nothing new is read before all that waited was.
func TestOrderedBacklog(t *testing.T) {
	s := newStore(t, opts())
	put(t, s, 1, 0, 0)
	o := s.Outbox("plant")
	o.Begin(true)
	put(t, s, 2, 0, 0)
	if got := seqs(t, o, buffer.Live); got != nil {
		t.Errorf("live: %v", got)
	}
	if got := seqs(t, o, buffer.Backlog); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("backlog: %v", got)
	}
	seqs(t, o, buffer.Backlog)
	if got := seqs(t, o, buffer.Live); !slices.Equal(got, []uint64{3, 4}) {
		t.Errorf("live: %v", got)
	}
}

// Outages while a backlog is being sent are remembered up to a bound.
func TestManyOutagesDuringABacklog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path, opts())
	put(t, s, 1, 1)
	o := s.Outbox("plant")
	want := map[uint64]bool{1: true}
	for n := uint64(2); n <= 100; n++ {
		o.Begin(false)
		put(t, s, n, n)
		for _, seq := range seqs(t, o, buffer.Live) {
			if want[seq] {
				t.Fatalf("record %d came twice", seq)
			}
			want[seq] = true
			o.Delivered(buffer.Live, seq)
		}
	}
	s.Close()
	s = open(t, path, opts())
	o = s.Outbox("plant")
	o.Begin(false)
	if got := seqs(t, o, buffer.Backlog); !slices.Equal(got, []uint64{1}) {
		t.Errorf("backlog: %v", got)
	}
	if len(want) != 100 {
		t.Errorf("%d records, want 100: %v", len(want), slices.Sorted(maps.Keys(want)))
	}
}
