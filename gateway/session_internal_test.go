package gateway

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tidemark/buffer"
	"tidemark/clock"
	"tidemark/configs"
	"tidemark/reading"
	"tidemark/uplink"
)

// bench is a gateway without connections: the pipeline, its store and its clock.
type bench struct {
	*session
	t     *testing.T
	stop  context.CancelFunc
	ended chan error
	acked *acknowledged
	token uint64

	delivery reading.Delivery // of what is brought
}

// acknowledged is a source that remembers what it was told.
type acknowledged struct {
	mu    sync.Mutex
	token uint64
	more  chan struct{}
}

func (a *acknowledged) Committed(token uint64) {
	a.mu.Lock()
	a.token = token
	a.mu.Unlock()
	select {
	case a.more <- struct{}{}:
	default:
	}
}

const benchConfig = `
gateway: {id: bench}
clock: {trust: %s}
store: {path: %s, quota: 64MiB, commit_interval: 10ms, commit_min_gap: 1ms}
web: {listen: ""}
inputs:
  - name: in
    mqtt:
      url: mqtt://127.0.0.1:1
      subscribe: [{topic: "t/{asset}", format: json, sensors: {temp: {}}}]
features:
  - {name: f, version: 1, select: {input: in}, window: 20s, out_of_orderness: 1s, allowed_lateness: 2s, functions: [count, sum]}
uplinks:
  - {name: up, mqtt: {url: "mqtt://127.0.0.1:1"}}
`

func benchGateway(t *testing.T, store, trust string) *Gateway {
	t.Helper()
	cfg, err := configs.Parse("bench.yaml", fmt.Appendf(nil, benchConfig, trust, store), "host")
	if err != nil {
		t.Fatal(err)
	}
	return New(cfg, Options{Log: zerolog.Nop()})
}

// start opens a session and runs its pipeline and clock.
func start(t *testing.T, store, trust string) *bench {
	t.Helper()
	s, err := benchGateway(t, store, trust).open()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{session: s, t: t, stop: cancel, ended: make(chan error, 1), acked: &acknowledged{more: make(chan struct{}, 1)}}
	clocked := make(chan error, 1)
	go func() { clocked <- s.clk.Run(ctx) }()
	go func() {
		err := s.pipe.run(ctx)
		<-clocked
		b.ended <- err
	}()
	t.Cleanup(b.end)
	return b
}

// end stops the session as a shutdown does.
func (b *bench) end() {
	if b.stop == nil {
		return
	}
	b.stop()
	b.stop = nil
	if err := <-b.ended; err != nil {
		b.t.Error(err)
	}
	b.socket.ln.Close()
	if err := b.store.Close(); err != nil {
		b.t.Error(err)
	}
}

// bring delivers readings of one sensor with these source times and waits for
// the acknowledgement.
func (b *bench) bring(sourceNS ...int64) {
	b.t.Helper()
	now := b.clk.Now()
	pc := reading.Parcel{Input: "in", Source: b.acked}
	for _, ns := range sourceNS {
		pc.Readings = append(pc.Readings, reading.Reading{
			Tag: reading.MakeTag(reading.Series{Input: "in", Asset: "a", Sensor: "temp"}), Value: reading.IntValue(1),
			Source: sourceTime(ns), ServerNS: reading.NoTime, IngestNS: now.WallNS, Delivery: b.delivery,
			Stamp: reading.Stamp{Clock: now.Segment, IngestBound: reading.MakeBound(now.BoundNS)},
		})
	}
	b.token++
	pc.Token = b.token
	if err := b.pipe.Deliver(context.Background(), pc); err != nil {
		b.t.Fatal(err)
	}
	deadline := time.After(10 * time.Second)
	for {
		b.acked.mu.Lock()
		done := b.acked.token >= pc.Token
		b.acked.mu.Unlock()
		if done {
			return
		}
		select {
		case <-b.acked.more:
		case <-deadline:
			b.t.Fatal("no acknowledgement came")
		}
	}
}

func sourceTime(ns int64) reading.SourceTime {
	if ns == reading.NoTime {
		return reading.SourceTime{NS: ns, Fault: reading.TimeNull}
	}
	return reading.SourceTime{NS: ns, Zoned: true}
}

func (b *bench) counts() InputCounts {
	b.t.Helper()
	st, err := b.status(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	if !st.Conserved {
		b.t.Errorf("the sums do not add up: %+v", st.Inputs)
	}
	return st.Inputs[0].Counts
}

// What arrives while the clock is unknown is kept, survives a restart, and is
// judged and counted once the clock is trusted.
func TestPendingReadingsAreJudgedWhenTheClockIsTrusted(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "checked")
	base := b.clk.Now().WallNS
	b.bring(base, base+1e6, base+2e6)
	if c := b.counts(); c.Pending != 3 || c.PendingNow() != 3 || c.Accepted != 0 {
		t.Fatalf("with an unknown clock: %+v, want 3 pending", c)
	}
	v, err := b.view(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if since, err := time.Parse(time.RFC3339, v.Oldest.Pending); err != nil || since.UnixNano() > b.clk.Now().WallNS || v.Oldest.Quarantine != "" {
		t.Errorf("the oldest: %+v, %v", v.Oldest, err)
	}
	b.end()

	b = start(t, store, "local")
	b.bring(base + 3e6)
	var c InputCounts
	for range 100 { // each empty parcel waits for one more commit
		if c = b.counts(); c.PendingNow() == 0 {
			break
		}
		b.bring()
	}
	if v, err = b.view(context.Background()); err != nil || v.Oldest.Pending != "" {
		t.Errorf("nothing waits, and the oldest is %+v, %v", v.Oldest, err)
	}
	if c.PendingAccepted+c.PendingDuplicate+c.PendingQuarantined != 3 || c.Accepted != 1 || c.Received != 4 {
		t.Errorf("with a trusted clock: %+v, want 3 decided and 1 accepted", c)
	}
}

// A store that waited for its clock through a restart was born before what it
// holds, although gateway time left the restart out: nothing of it is late.
func TestPendingReadingsAreNotBeforeTheGeneration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	b := start(t, path, "checked")
	arrival := b.clk.Now().WallNS + 5e6
	b.bring(arrival, arrival+1e6)
	b.end()
	loseGatewayTime(t, path)

	b = start(t, path, "local")
	for range 100 {
		if c := b.counts(); c.PendingNow() == 0 {
			break
		}
		b.bring()
	}
	st, err := b.status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if f := st.Features[0]; f.Windowed != 2 || f.Late != 0 {
		t.Errorf("windowed %d, late %d, want both windowed", f.Windowed, f.Late)
	}
}

// loseGatewayTime sets the store's gateway time back to its beginning, as if all
// the time since had been downtime.
func loseGatewayTime(t *testing.T, path string) {
	t.Helper()
	s, _, err := buffer.Open(path, buffer.Options{Quota: 64 << 20, Uplinks: []string{"up"}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := decodeLedger(s.Meta(metaLedger))
	if err != nil {
		t.Fatal(err)
	}
	l.GatewayMS = 0
	if err := s.Commit(&buffer.Commit{Meta: map[string][]byte{metaLedger: l.encode()}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// An input that was catching up when the gateway died does not hold its features
// back for ever: who owed the end is gone.
func TestCrashWhileCatchingUpLetsGo(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	base := b.clk.Now().WallNS
	b.trust()
	b.mark(reading.MarkCatchUpBegin)
	b.bring(base-100e9, base)
	if n := b.emitted("feature"); n != 0 {
		t.Fatalf("%d features while the input catches up", n)
	}
	b.end()

	b = start(t, store, "local")
	b.trust()
	b.bring(base + 1e6)
	if n := b.emitted("feature"); n == 0 {
		t.Error("no feature after the restart: the input is still held back")
	}
}

// trust takes the input's times as they are, so that a test may bring history.
func (b *bench) trust() {
	b.pipe.asked <- func() { b.pipe.policies["in"] = clock.InputPolicy{WhenWrong: reading.PolicyTrusted} }
}

func (b *bench) mark(kind reading.MarkKind) {
	b.t.Helper()
	m := reading.Mark{Kind: kind, Input: "in", TimeMS: reading.NoTime}
	if err := b.pipe.Deliver(context.Background(), reading.Parcel{Input: "in", Marks: []reading.Mark{m}}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) emitted(kind string) uint64 {
	b.t.Helper()
	st, err := b.status(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return st.Emitted[kind]
}

// Two reasons to catch up end one after the other; the engine hears of the first
// beginning and the last end.
func TestCatchUpHasTwoReasons(t *testing.T) {
	p := &pipeline{catching: map[string]catcher{}}
	p.catchUp("in", byReader, true)
	p.catchUp("in", byPending, true)
	p.batch.Readings = make([]reading.Reading, 2)
	p.catchUp("in", byReader, false)
	if n := len(p.batch.Marks); n != 1 || p.batch.Marks[0].Kind != reading.MarkCatchUpBegin {
		t.Fatalf("marks %+v, want one beginning", p.batch.Marks)
	}
	p.catchUp("in", byPending, false)
	p.catchUp("in", byPending, false)
	if n := len(p.batch.Marks); n != 2 || p.batch.Marks[1].Kind != reading.MarkCatchUpEnd || p.batch.Marks[1].At != 2 {
		t.Errorf("marks %+v, want one end behind the readings", p.batch.Marks)
	}
}

// The sums are exact after a restart, and a reading that comes again is known.
func TestRestartKeepsSumsAndIdentity(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	base := b.clk.Now().WallNS
	b.bring(base, base+1e6)
	gen := b.pipe.generation.Load()
	b.end()

	b = start(t, store, "local")
	b.bring(base, base+1e6, base+2e6)
	if c := b.counts(); c.Received != 5 || c.Accepted != 3 || c.Duplicate != 2 {
		t.Errorf("after a restart: %+v, want 3 accepted and 2 duplicates of 5", c)
	}
	if again := b.pipe.generation.Load(); again != gen {
		t.Errorf("the generation changed from %d to %d", gen, again)
	}
}

// Readings without the source time that the configuration expects are windowed
// by their arrival, and that is shown until they have one again.
func TestMissingSourceTimesAreShown(t *testing.T) {
	b := start(t, filepath.Join(t.TempDir(), "s.db"), "local")
	shown := func() bool {
		return slices.ContainsFunc(b.health.list(), func(f Fault) bool {
			return f.Name == "times of input in" && strings.Contains(f.Detail, "such as those of a/temp: ")
		})
	}
	b.bring(reading.NoTime, reading.NoTime)
	if c := b.counts(); c.Untimed != 2 || c.Accepted != 2 || !shown() {
		t.Errorf("without source times: %+v, shown %v", c, shown())
	}
	b.bring(b.clk.Now().WallNS)
	if c := b.counts(); c.Untimed != 2 || shown() {
		t.Errorf("with a source time again: %+v, shown %v", c, shown())
	}
}

// The definitions in force go out once the generation is known, and again only
// when they change.
func TestDefinitionsAreAnnounced(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	count := func(b *bench) (n int) {
		for _, r := range outbox(t, b.store) {
			if r.Kind == uplink.KindDefinition {
				n++
				if !strings.Contains(string(r.Data), `"window_ms":20000`) {
					t.Errorf("the definition does not say what it is: %s", r.Data[generationLen:])
				}
			}
		}
		return n
	}
	b := start(t, store, "local")
	b.bring(b.clk.Now().WallNS)
	if n := count(b); n != 1 {
		t.Errorf("%d definitions of one feature", n)
	}
	b.end()
	b = start(t, store, "local")
	b.bring(b.clk.Now().WallNS)
	if n := count(b); n != 1 {
		t.Errorf("%d definitions after a restart with the same configuration", n)
	}
	b.end()
	s, err := benchGateway(t, store, "local").open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.store.Close()
	defer s.socket.ln.Close()
	s.pipe.features.Features[0].ID.Definition++
	s.pipe.configure()
	for _, r := range s.pipe.events {
		if r.Kind == uplink.KindDefinition {
			t.Error("a definition that is refused takes the place of the one that its version stands for")
		}
	}
	if faults := s.pipe.refusals(); len(faults) != 1 || !strings.Contains(faults[0].Reason, "raise its version") {
		t.Errorf("refused: %+v", faults)
	}
}

// Law 2: a journal that gives other emissions than were committed with it makes
// a new generation, under which they are emitted anew.
func TestOtherEmissionsThanCommittedGoOutAnew(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	base := b.clk.Now().WallNS
	b.bring(base-25e9, base) // the first window fires with this block
	gen := b.pipe.generation.Load()
	b.store.FlushCursors()
	blocks := readBlocks(t, b.store)
	b.end()

	// The same journal, but the last block's digest is another, and there is no
	// checkpoint to start behind it.
	forged := filepath.Join(t.TempDir(), "f.db")
	forge(t, b.store, forged, blocks)

	b = start(t, forged, "local")
	if again := b.pipe.generation.Load(); again != gen+1 {
		t.Errorf("generation %d after a mismatch, want %d", again, gen+1)
	}
	b.bring(base + 1e6)
	var kinds []byte
	for _, r := range outbox(t, b.store) {
		kinds = append(kinds, r.Kind)
	}
	if len(kinds) < 2 || kinds[0] != uplink.KindEvent {
		t.Errorf("the outbox holds kinds %v, want the mismatch event and the emissions", kinds)
	}
}

func readBlocks(t *testing.T, s *buffer.Store) (bs []buffer.Block) {
	t.Helper()
	if err := s.Blocks(1, func(b buffer.Block) error { bs = append(bs, b); return nil }); err != nil {
		t.Fatal(err)
	}
	return bs
}

// forge writes the blocks into a new store, with the last digest changed.
func forge(t *testing.T, from *buffer.Store, path string, blocks []buffer.Block) {
	t.Helper()
	s, _, err := buffer.Open(path, buffer.Options{Quota: 64 << 20, Uplinks: []string{"up"}})
	if err != nil {
		t.Fatal(err)
	}
	blocks[len(blocks)-1].Digest[0] ^= 1
	for i := range blocks {
		c := buffer.Commit{Block: &blocks[i], Meta: map[string][]byte{metaLedger: from.Meta(metaLedger), metaConfig: from.Meta(metaConfig)}}
		if err := s.Commit(&c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func outbox(t *testing.T, s *buffer.Store) []buffer.StoredRecord {
	t.Helper()
	rs, _, err := s.Outbox("up").Next(buffer.Live, nil, 1000, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// A feature that is left out for its fault in the file is shown.
func TestFeatureLeftOutIsShown(t *testing.T) {
	g := benchGateway(t, filepath.Join(t.TempDir(), "s.db"), "local")
	g.cfg.Disabled = []configs.DisabledFeature{{Name: "slow", Faults: configs.Faults{{File: "t.yaml", Line: 3, Reason: "unknown key"}}}}
	s, err := g.open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.store.Close()
	defer s.socket.ln.Close()
	if got := s.health.faults["feature slow"].Detail; !strings.Contains(got, "t.yaml:3") {
		t.Errorf("shown: %q", got)
	}
}

// A store whose content cannot be understood is set aside, and the gateway goes
// on with a new one.
func TestUnreadableJournalIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, _, err := buffer.Open(path, buffer.Options{Quota: 64 << 20, Uplinks: []string{"up"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(&buffer.Commit{Block: &buffer.Block{Seq: 1, MinMS: reading.NoTime, MaxMS: reading.NoTime, Data: []byte("\x01no batch")}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	g := benchGateway(t, path, "local")
	if _, err := g.session(context.Background()); !isDamage(err) || g.aside.path == "" {
		t.Fatalf("the first session ended with %v and set aside %q", err, g.aside.path)
	}
	kept := g.aside.path
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the damaged store is gone: %v", err)
	}
	again, err := g.open()
	if err != nil {
		t.Fatalf("there is no way on: %v", err)
	}
	if len(again.pipe.events) != 1 || !strings.Contains(string(again.pipe.events[0].Data), kept) {
		t.Errorf("nothing says where the store was put: %v", again.pipe.events)
	}
	if again.health.faults["store"].Detail == "" {
		t.Error("the store that was set aside is not among the faults")
	}
	again.socket.ln.Close()
	if err := again.store.Close(); err != nil {
		t.Error(err)
	}
}
