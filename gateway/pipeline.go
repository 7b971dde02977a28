package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tidemark/buffer"
	"tidemark/clock"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing"
)

// pipeline is the one writer: it gathers parcels into a batch, has the clock
// judge them, steps the engine, commits everything in one transaction and then
// lets the sources acknowledge. All its fields belong to the goroutine of run.
type pipeline struct {
	clk      *clock.Clock
	store    *buffer.Store
	engine   *windowing.Engine
	ledger   *ledger
	policies map[string]clock.InputPolicy
	features windowing.Config    // as configured; the floor is the ledger's business
	specs    map[string]string   // canonical JSON of each feature, by name
	alive    map[string]int64    // by input: it lives, and nothing new of it is before that time (I4); NoTime: not known
	lists    map[string][]byte   // by input: the nodes that it knows, to go into the next commit
	vouched  time.Duration       // when what is in alive was last weighed
	taken    map[string]uint64   // by input: received, as counted at arrival
	untimed  map[string]uint64   // by input of this batch: without the source time that is expected
	inputs   []string            // names, in order
	filters  []byte              // metaFilters
	sessions map[string][]string // by input: what filters encodes
	restored bool                // metaRestored is to go with the next commit
	lastGood []byte              // metaLastGood, nil to keep what is there
	memories map[string][]byte   // by input: what its reader must know after a restart
	config   []byte              // metaConfig
	sends    bool                // records go to the outbox only if somebody fetches them
	log      zerolog.Logger
	health   *health
	cad      cadence
	board    *board
	indexer  history.Indexer
	tails    *tails
	results  *results

	in     chan reading.Parcel
	urgent chan struct{} // a source has run out of in-flight window
	asked  chan func()   // questions to the pipeline's own state
	born   chan struct{} // closed when the generation is known

	generation atomic.Uint64 // the ledger's, for others
	ended      chan struct{} // closed when run has returned

	posted chan struct{} // there is mail
	mailMu sync.Mutex
	mail   []func() // under mailMu; what others have told

	seq            uint64 // last committed block
	batch          reading.Batch
	parcels        int
	rejects        []rejected
	acks           map[reading.Source]uint64
	since          time.Duration // arrival of the batch's first parcel
	stalled        bool
	faults         rejectLog
	events         []buffer.Record   // waiting for the next commit
	evidence       []buffer.Evidence // likewise
	resolve        resolver
	repeats        repeats            // of what was in quarantine at the start
	pendingInBatch int                // readings of this batch that wait for a second verdict
	catching       map[string]catcher // by input
	cost           int                // readings stepped since the last checkpoint
	checkpointLen  int                // bytes of the last checkpoint
	prepared       *prepared
	measures       *measures
	arena          []byte        // of the records of the commit that is being prepared
	saved          time.Duration // when anything was last written
	clockSaved     time.Duration // when the clock's anchors were
	sourcesSaved   time.Duration // when the source clocks were
	clockDirty     bool          // the clock's state or segment has changed since
	dirty          bool          // the ledger alone needs a commit
}

// rejected is a Reject with its input.
type rejected struct {
	input string
	reading.Reject
}

// Bounds of what is in memory at a time. A parcel holds up to about a thousand
// readings, a reading takes some 200 bytes.
const (
	parcelQueue = 16       // parcels between the readers and the pipeline
	batchFull   = 32 << 10 // readings, marks and rejects of a batch
)

// Deliver takes a parcel from a reader (reading.Sink).
func (p *pipeline) Deliver(ctx context.Context, pc reading.Parcel) error {
	select {
	case p.in <- pc:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Hurry asks for a commit as soon as the cadence allows: a source has run out of
// in-flight window and stands still until it is acknowledged.
func (p *pipeline) Hurry() {
	select {
	case p.urgent <- struct{}{}:
	default:
	}
}

// run works until ctx ends, then commits what it has, with a checkpoint. The
// readers must have stopped by then. An error is one of the store.
func (p *pipeline) run(ctx context.Context) error {
	defer close(p.ended)
	p.resumeCatchUp()
	if err := p.clockChanged(); err != nil {
		return err
	}
	p.configure()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		in := p.in
		if p.prepared != nil || p.full() {
			in = nil // nothing more until this is on disk
		}
		select {
		case pc := <-in:
			p.add(pc)
			p.gather()
		case <-p.urgent:
			p.stalled = true
		case <-p.clk.Changed():
			if err := p.clockChanged(); err != nil {
				return err
			}
		case <-p.posted:
			p.readMail()
		case f := <-p.asked:
			f()
		case <-timer.C:
		case <-ctx.Done():
			return p.finish()
		}
		wait, err := p.advance()
		if err != nil {
			return err
		}
		timer.Reset(wait)
	}
}

// gather takes what else is there without waiting.
func (p *pipeline) gather() {
	for !p.full() {
		select {
		case pc := <-p.in:
			p.add(pc)
		default:
			return
		}
	}
}

// add judges a parcel's readings and puts it into the batch.
func (p *pipeline) add(pc reading.Parcel) {
	if p.empty() {
		p.since = p.now()
	}
	if isNews(&pc) {
		p.parcels++
	}
	p.taken[pc.Input] += uint64(len(pc.Readings) + len(pc.Rejects))
	p.dropRepeats(&pc)
	at := len(p.batch.Readings)
	for _, m := range pc.Marks {
		p.readerMark(m, at)
	}
	policy := p.policies[pc.Input]
	timed := policy.Use == reading.BasisSource && policy.WhenWrong != reading.PolicyUseIngest
	for i := range pc.Readings {
		r := &pc.Readings[i]
		p.clk.JudgeReading(r, policy)
		p.batch.Readings = append(p.batch.Readings, *r)
		if r.Stamp.Disposition == reading.Pending {
			p.pendingInBatch++
		}
		if timed && r.Source.Fault == reading.TimeNull {
			p.untimed[pc.Input]++
		}
	}
	if timed && len(pc.Readings) > 0 {
		p.untimed[pc.Input] += 0 // seen, so that a fault can end
	}
	reading.RecycleSlab(pc.Readings)
	for _, j := range pc.Rejects {
		p.rejects = append(p.rejects, rejected{pc.Input, j})
	}
	for i := range pc.Gaps {
		p.gap(pc.Input, &pc.Gaps[i])
	}
	if pc.Memory != nil {
		p.memories[pc.Input] = pc.Memory
	}
	if pc.Source != nil {
		p.acks[pc.Source] = pc.Token
	}
}

// empty reports whether the batch has nothing to commit.
func (p *pipeline) empty() bool {
	return p.parcels == 0 && len(p.batch.Readings) == 0 && len(p.batch.Marks) == 0 && p.batch.Config == nil && len(p.events)+len(p.evidence) == 0 && !p.dirty
}

// full reports whether the batch takes no more. Then it is committed at once:
// waiting would only hold the readers back.
func (p *pipeline) full() bool {
	return len(p.batch.Readings)+len(p.batch.Marks)+len(p.rejects) >= batchFull
}

// now is gateway time as a duration; it never runs backward.
func (p *pipeline) now() time.Duration {
	return time.Duration(p.clk.Now().GatewayMS) * time.Millisecond
}

// bytesPerReading estimates a reading's share of a block before it is encoded.
const bytesPerReading = 12

// maxIdle is the longest that the pipeline waits without looking around.
const maxIdle = time.Second

// advance commits whatever is due and returns how long to wait for the rest.
func (p *pipeline) advance() (time.Duration, error) {
	p.health.progress()
	now := p.now()
	if p.prepared != nil {
		return p.retry(now)
	}
	p.sweepRejects()
	p.sweepFloods()
	if err := p.resolvePending(); err != nil {
		return 0, err
	}
	if err := p.release(); err != nil {
		return 0, err
	}
	switch {
	case p.full():
	case !p.empty():
		b := pendingBatch{since: p.since, bytes: len(p.batch.Readings) * bytesPerReading, urgent: p.stalled}
		if wait := p.cad.due(now, b); wait > 0 {
			p.health.throttled(p.cad.throttled(now, b))
			return min(wait, maxIdle), nil
		}
	case p.deadlineDue(now), p.evidenceDue(now):
		// Gateway time alone changes something, or what is alive does: a block without
		// readings says so.
	case p.releasing():
		return 0, nil // there are more blocks to look through
	case now-p.saved >= saveCursors:
		return maxIdle, p.saveIdle(now)
	default:
		return p.idleWait(now), nil
	}
	return p.idleWait(now), p.commit(now)
}

// deadlineDue reports whether gateway time alone changes the engine's output.
func (p *pipeline) deadlineDue(now time.Duration) bool {
	d := p.engine.NextDeadline()
	return d != reading.NoTime && d <= now.Milliseconds()
}

func (p *pipeline) idleWait(now time.Duration) time.Duration {
	if p.releasing() {
		return 0
	}
	if d := p.engine.NextDeadline(); d != reading.NoTime {
		return min(max(time.Duration(d)*time.Millisecond-now, time.Millisecond), maxIdle)
	}
	return maxIdle
}

// finish commits what is left and a checkpoint, so that the next start replays
// nothing.
func (p *pipeline) finish() error {
	for {
		p.gather()
		if p.empty() && p.prepared == nil {
			break
		}
		if p.prepared == nil {
			if err := p.commit(p.now()); err != nil {
				return err
			}
		}
		if p.prepared != nil {
			// The disk is full: what is not acknowledged comes again.
			return nil
		}
	}
	return p.checkpoint()
}

// reset empties the batch after it was stepped and encoded. What comes from here
// on belongs to the next one, even while this one waits for room on the disk.
func (p *pipeline) reset() {
	p.batch.Readings = p.batch.Readings[:0]
	p.batch.Marks = p.batch.Marks[:0]
	p.batch.Config = nil
	clear(p.memories)
	p.rejects = p.rejects[:0]
	p.events, p.evidence = nil, nil
	p.parcels, p.pendingInBatch, p.stalled, p.resolve.inBatch, p.dirty = 0, 0, false, false, false
}
