package gateway

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/buffer"
	"tidemark/clock"
	"tidemark/reading"
	"tidemark/windowing"
)

const dayNS = 24 * int64(time.Hour)

// groups lists what is in quarantine, without times and words.
func (b *bench) groups(sel Selection) map[string]uint64 {
	b.t.Helper()
	q, err := b.quarantine(context.Background(), sel)
	if err != nil {
		b.t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, g := range q.Groups {
		got[g.Input+" "+g.Device+" "+g.Reason] = g.Count
		if g.NextStep == "" || g.Oldest > g.Newest {
			b.t.Errorf("%+v", g)
		}
	}
	return got
}

// letOut releases a selection and waits for its end.
func (b *bench) letOut(sel Selection) *Release {
	b.t.Helper()
	if _, err := b.beginRelease(context.Background(), sel); err != nil {
		b.t.Fatal(err)
	}
	return b.releaseEnds()
}

func (b *bench) releaseEnds() *Release {
	b.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		q, _, _, err := b.released(context.Background())
		if err != nil {
			b.t.Fatal(err)
		}
		if !q.Releasing {
			return q.Release
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the release does not end: %+v", q.Release)
		}
		time.Sleep(time.Millisecond)
	}
}

// What is too old is history once somebody says so; what is wrong stays wrong.
func TestReleaseJudgesAgainAsHistorical(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	now := b.clk.Now().WallNS
	b.bring(now-30*dayNS, now-20*dayNS)
	b.bring(now+dayNS, now)
	want := map[string]uint64{"in a TOO_OLD": 2, "in a FUTURE": 1}
	if diff := cmp.Diff(want, b.groups(Selection{})); diff != "" {
		t.Fatal(diff)
	}
	if _, err := b.beginRelease(context.Background(), Selection{Reason: "FROZEN"}); !errors.Is(err, errNothingKept) {
		t.Errorf("a release of nothing: %v", err)
	}
	if r := b.letOut(Selection{Reason: "TOO_OLD"}); r.Accepted != 2 || r.Quarantined != 0 {
		t.Errorf("released: %+v", r)
	}
	if diff := cmp.Diff(map[string]uint64{"in a FUTURE": 1}, b.groups(Selection{})); diff != "" {
		t.Error(diff)
	}
	if r := b.letOut(Selection{}); r.Accepted != 0 || r.Quarantined != 1 {
		t.Errorf("released: %+v", r)
	}
	check := func(when string) {
		if diff := cmp.Diff(map[string]uint64{"in a FUTURE": 1}, b.groups(Selection{Input: "in"})); diff != "" {
			t.Error(when, diff)
		}
		c := b.counts()
		if c.Received != 4 || c.Quarantined != 3 || c.ReleasedAccepted != 2 || c.ReleasedQuarantined != 1 || c.QuarantinedNow() != 1 {
			t.Errorf("%s: %+v", when, c)
		}
	}
	check("at once")
	b.end()
	b = start(t, store, "local")
	check("after a restart")
}

// A crash in the middle of a release: the next start goes on where it was.
func TestReleaseGoesOnAfterACrash(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	now := b.clk.Now().WallNS
	for i := range int64(5) {
		b.bring(now - 30*dayNS + i*1e9)
	}
	b.end()

	// The release is in the ledger and the first two blocks are done with.
	s, _, err := buffer.Open(store, buffer.Options{Quota: 64 << 20, Uplinks: []string{"up"}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := decodeLedger(s.Meta(metaLedger))
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	l.Release = &Release{Next: l.QuarantineFrom + 2, To: st.Journal.Next - 1}
	if err := s.Commit(&buffer.Commit{Meta: map[string][]byte{metaLedger: l.encode()}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	b = start(t, store, "local")
	if r := b.releaseEnds(); r.Accepted != 3 {
		t.Errorf("after the crash: %+v, want the other three", r)
	}
	if got := b.groups(Selection{}); len(got) != 0 {
		t.Errorf("still there: %v", got)
	}
}

// A flood leaves a bounded number of records; the counts and the journal have all.
func TestAFloodIsCountedInRanges(t *testing.T) {
	b := start(t, filepath.Join(t.TempDir(), "s.db"), "local")
	now := b.clk.Now().WallNS
	const n = 1000
	var old []int64
	for i := range int64(n) {
		old = append(old, now-30*dayNS+i*1e6)
	}
	b.bring(old[:n/2]...)
	b.bring(old[n/2:]...)
	if got := b.groups(Selection{})["in a TOO_OLD"]; got != n {
		t.Errorf("%d in quarantine, want %d", got, n)
	}
	kinds := func() map[byte]int {
		kinds := map[byte]int{}
		if err := b.store.Evidence(0, func(e buffer.StoredEvidence) error { kinds[e.Kind]++; return nil }); err != nil {
			t.Fatal(err)
		}
		return kinds
	}
	if got := kinds()[byte(windowing.EmitQuarantine)]; got != floodFull {
		t.Errorf("%d pieces of evidence, want the first %d", got, floodFull)
	}
	var f flood
	minuteOver := func() {
		f = *b.pipe.ledger.Floods["in"]["TOO_OLD"]
		b.pipe.ledger.Floods["in"]["TOO_OLD"].FromMS -= floodEvery
	}
	if err := b.pipe.ask(context.Background(), minuteOver); err != nil {
		t.Fatal(err)
	}
	if f.Full != floodFull || f.More != n-floodFull || f.First == 0 || f.Last <= f.First {
		t.Errorf("the flood is %+v", f)
	}
	b.bring(now)
	b.bring()
	if got := kinds()[evidenceRange]; got != 1 {
		t.Errorf("%d ranges, want one", got)
	}
	if r := b.letOut(Selection{Input: "in", Device: "a"}); r.Accepted != n {
		t.Errorf("released over the range: %+v", r)
	}
}

// What a stream proved, a second verdict keeps; the policy of then stands in for it.
func TestReleaseByAnotherPolicy(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	policy := func(wrong reading.Policy) {
		use := func() { b.pipe.policies["in"] = clock.InputPolicy{Ordered: true, WhenWrong: wrong} }
		if err := b.pipe.ask(context.Background(), use); err != nil {
			t.Fatal(err)
		}
	}
	policy(reading.PolicyReject)
	now := b.clk.Now().WallNS
	b.bring(now-100e9, now-3700e9)
	if got := b.groups(Selection{}); got["in a REGRESSION"] != 1 {
		t.Fatalf("in quarantine: %v", got)
	}
	if r := b.letOut(Selection{}); r.Accepted != 0 || r.Quarantined == 0 {
		t.Errorf("under reject: %+v", r)
	}
	policy(reading.PolicyUseIngest)
	if r := b.letOut(Selection{Reason: "REGRESSION"}); r.Accepted == 0 || r.Quarantined != 0 {
		t.Errorf("under use_ingest: %+v", r)
	}
}

// What a broker sends again after a crash is in quarantine once.
func TestRedeliveredReadingsAreInQuarantineOnce(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	now := b.clk.Now().WallNS
	old := now - 30*dayNS
	b.bring(old, old) // the same twice is two
	b.end()

	b = start(t, store, "local")
	again := func(ns ...int64) {
		b.delivery = reading.Redelivered
		b.bring(ns...)
		b.delivery = 0
	}
	again(old, now, old+1)
	again(old)
	again(old)   // one more than there were
	b.bring(old) // and one that is new
	if got := b.groups(Selection{})["in a TOO_OLD"]; got != 5 {
		t.Errorf("%d in quarantine, want 2 of before and 3 new ones", got)
	}
	if c := b.counts(); c.Received != 8 || c.Duplicate != 2 || c.Accepted != 1 || c.Quarantined != 5 {
		t.Errorf("%+v", c)
	}
}
