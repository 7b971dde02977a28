package buffer_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"tidemark/buffer"
)

// model is what a store should hold.
type model struct {
	blocks     map[uint64]string
	records    map[uint64]string
	evidence   map[uint64]string
	meta       map[string]string
	checkpoint string
	cpSeq      uint64
	last       uint64
	nextRecord uint64
	nextEv     uint64
	atMS       int64
	delivered  map[string]uint64 // as on disk
}

// machine drives a store and its model by the same steps.
type machine struct {
	path  string
	o     buffer.Options
	s     *buffer.Store
	m     model
	marks map[string]uint64 // delivered, not on disk yet
	held  map[string][]buffer.StoredRecord
}

func (x *machine) open(t *rapid.T) {
	s, did, err := buffer.Open(x.path, x.o)
	if err != nil || did.SetAside != "" || did.Torn {
		t.Fatal(err, did)
	}
	x.s = s
	x.marks = maps.Clone(x.m.delivered)
	x.held = map[string][]buffer.StoredRecord{}
}

// Commit writes a random commit.
func (x *machine) Commit(t *rapid.T) {
	c := &buffer.Commit{KeepFrom: x.m.last + 1, AtMS: x.m.atMS + int64(rapid.IntRange(0, 5000).Draw(t, "ms"))}
	x.m.atMS = max(x.m.atMS, c.AtMS)
	size := rapid.IntRange(0, 5000)
	if rapid.Bool().Draw(t, "block") {
		b := block(x.m.last+1, size.Draw(t, "size"))
		c.Block = b
		x.m.last = b.Seq
		x.m.blocks[b.Seq] = fmt.Sprintf("%d %d %d %x %d %x", b.MinMS, b.MaxMS, x.m.atMS, b.Digest, b.Readings, b.Data)
	}
	for range rapid.IntRange(0, 300).Draw(t, "records") {
		x.m.nextRecord++
		data := pattern(x.m.nextRecord, int(x.m.nextRecord*7%300))
		if x.m.nextRecord%50 == 0 {
			data = pattern(x.m.nextRecord, 4000)
		}
		c.Records = append(c.Records, buffer.Record{Kind: 1, Data: data})
		x.m.records[x.m.nextRecord] = fmt.Sprintf("1 %d %x", x.m.atMS, data)
	}
	for range rapid.IntRange(0, 3).Draw(t, "evidence") {
		x.m.nextEv++
		data := pattern(x.m.nextEv, 100)
		c.Evidence = append(c.Evidence, buffer.Evidence{Kind: 2, AtMS: x.m.atMS, Data: data})
		x.m.evidence[x.m.nextEv] = fmt.Sprintf("2 %d %x", x.m.atMS, data)
	}
	if rapid.Bool().Draw(t, "meta") {
		name := rapid.SampledFrom(metaNames).Draw(t, "name")
		v := pattern(uint64(c.AtMS), size.Draw(t, "value"))
		c.Meta = map[string][]byte{name: v}
		x.m.meta[name] = string(v)
	}
	if rapid.IntRange(0, 3).Draw(t, "checkpoint") == 0 {
		snapshot := pattern(x.m.last, size.Draw(t, "snapshot"))
		if rapid.IntRange(0, 39).Draw(t, "large") == 0 {
			snapshot = pattern(x.m.last, rapid.IntRange(0, 1_700_000).Draw(t, "snapshot in parts"))
		}
		c.Checkpoint = whole(snapshot)
		x.m.checkpoint, x.m.cpSeq = string(snapshot), x.m.last
	}
	if err := x.s.Commit(c); err != nil {
		t.Fatal(err)
	}
	x.m.delivered = maps.Clone(x.marks)
}

// Read takes records from one uplink's outbox, in order and without a gap.
func (x *machine) Read(t *rapid.T) {
	name := rapid.SampledFrom(x.o.Uplinks).Draw(t, "uplink")
	held := x.held[name]
	got, _, err := x.s.Outbox(name).Next(buffer.Live, held, rapid.IntRange(1, 200).Draw(t, "max"), rapid.IntRange(0, 20_000).Draw(t, "bytes"))
	if err != nil {
		t.Fatal(err)
	}
	want := x.marks[name] + 1
	if len(held) > 0 {
		want = held[len(held)-1].Seq + 1
	}
	if len(got) == len(held) && want <= x.m.nextRecord {
		t.Fatalf("nothing, but record %d waits", want)
	}
	for _, r := range got[len(held):] {
		if r.Seq != want || x.m.records[r.Seq] != fmt.Sprintf("%d %d %x", r.Kind, r.AtMS, r.Data) {
			t.Fatalf("record %d, want %d", r.Seq, want)
		}
		want++
	}
	x.held[name] = got
}

// Deliver confirms some of what was read.
func (x *machine) Deliver(t *rapid.T) {
	name := rapid.SampledFrom(x.o.Uplinks).Draw(t, "uplink")
	held := x.held[name]
	if len(held) == 0 {
		return
	}
	n := rapid.IntRange(1, len(held)).Draw(t, "n")
	x.s.Outbox(name).Delivered(buffer.Live, held[n-1].Seq)
	x.marks[name] = held[n-1].Seq
	x.held[name] = held[n:]
}

// Rewind goes back to what is not delivered.
func (x *machine) Rewind(t *rapid.T) {
	name := rapid.SampledFrom(x.o.Uplinks).Draw(t, "uplink")
	x.s.Outbox(name).Rewind()
	x.held[name] = nil
}

// Flush writes the marks.
func (x *machine) Flush(t *rapid.T) {
	if err := x.s.FlushCursors(); err != nil {
		t.Fatal(err)
	}
	x.m.delivered = maps.Clone(x.marks)
}

// Reopen closes in order.
func (x *machine) Reopen(t *rapid.T) {
	if err := x.s.Close(); err != nil {
		t.Fatal(err)
	}
	x.m.delivered = maps.Clone(x.marks)
	x.open(t)
}

// Crash goes on with a copy of the file as it is: whatever was only in memory is
// lost.
func (x *machine) Crash(t *rapid.T) {
	file, err := os.ReadFile(x.path)
	if err != nil {
		t.Fatal(err)
	}
	x.s.Close()
	if err := os.WriteFile(x.path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	x.open(t)
}

// Check compares everything but what was read and not confirmed.
func (x *machine) Check(t *rapid.T) {
	var backlogs = map[string]buffer.Waiting{}
	for _, name := range x.o.Uplinks {
		b, err := x.s.Outbox(name).Waiting()
		if err != nil {
			t.Fatal(err)
		}
		backlogs[name] = b
		if want := int64(x.m.nextRecord - x.marks[name]); b.Records != want || want > 0 && b.OldestSeq != x.marks[name]+1 {
			t.Fatalf("backlog %+v, want %d after %d", b, want, x.marks[name])
		}
	}
	blocks := map[uint64]string{}
	if err := x.s.Blocks(0, func(b buffer.Block) error {
		blocks[b.Seq] = fmt.Sprintf("%d %d %d %x %d %x", b.MinMS, b.MaxMS, b.AtMS, b.Digest, b.Readings, b.Data)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(blocks, x.m.blocks) {
		t.Fatalf("%d blocks, want %d", len(blocks), len(x.m.blocks))
	}
	for _, name := range metaNames {
		v, known := x.m.meta[name]
		if got := x.s.Meta(name); string(got) != v || (got != nil) != known {
			t.Fatalf("value %q differs", name)
		}
	}
	cp, seq, last, err := x.s.Recover()
	if err != nil || string(cp) != x.m.checkpoint || seq != x.m.cpSeq || last != x.m.last {
		t.Fatalf("recovery from %d to %d (%v), want %d to %d", seq, last, err, x.m.cpSeq, x.m.last)
	}
}

// rapidChecks lowers rapid's default number of checks, since each one syncs.
func rapidChecks(t *testing.T, n string) {
	f := flag.Lookup("rapid.checks")
	if f == nil || f.Value.String() != f.DefValue {
		return
	}
	old := f.Value.String()
	if err := flag.Set("rapid.checks", n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", old) })
}

// TestStoreFollowsItsModel runs random commits, deliveries, restarts and crashes.
func TestStoreFollowsItsModel(t *testing.T) {
	rapidChecks(t, "10")
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		x := &machine{
			path: filepath.Join(dir, fmt.Sprintf("%d.db", n)),
			o:    buffer.Options{Quota: 256 << 20, Uplinks: []string{"plant", "cloud"}},
			m: model{
				blocks: map[uint64]string{}, records: map[uint64]string{}, evidence: map[uint64]string{},
				meta: map[string]string{}, delivered: map[string]uint64{"plant": 0, "cloud": 0},
			},
		}
		x.open(t)
		defer func() { x.s.Close(); os.Remove(x.path) }()
		t.Repeat(map[string]func(*rapid.T){
			"": x.Check, "commit": x.Commit, "read": x.Read, "deliver": x.Deliver,
			"rewind": x.Rewind, "flush": x.Flush, "reopen": x.Reopen, "crash": x.Crash,
		})
	})
}
