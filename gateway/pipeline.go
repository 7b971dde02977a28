package gateway

import (
	"context"
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
// lets the sources acknowledge. All its fields but the inbox and generation belong
// to the goroutine of run.
type pipeline struct {
	inbox
	gathered
	saves

	clk    *clock.Clock
	store  *buffer.Store
	engine *windowing.Engine
	ledger *ledger
	log    zerolog.Logger
	health *health
	cad    cadence

	inputs   []string // names, in order
	policies map[string]clock.InputPolicy
	features windowing.Config    // as configured; the floor is the ledger's business
	specs    map[string]string   // canonical JSON of each feature, by name
	config   []byte              // metaConfig
	lastGood []byte              // metaLastGood, nil to keep what is there
	filters  []byte              // metaFilters
	sessions map[string][]string // by input: what filters encodes
	restored bool                // metaRestored is to go with the next commit
	sends    bool                // records go to the outbox only if somebody fetches them

	seq        uint64            // last committed block
	prepared   *prepared         // stepped, and not on disk yet
	taken      map[string]uint64 // by input: received, as counted at arrival
	alive      map[string]int64  // by input: it lives, and nothing new of it is before that time (I4); NoTime: not known
	vouched    time.Duration     // when what is in alive was last weighed
	catching   map[string]catcher
	resolve    resolver
	repeats    repeats // of what was in quarantine at the start
	faults     rejectLog
	generation atomic.Uint64 // the ledger's, for others
	born       chan struct{} // closed when the generation is known

	board    *board
	indexer  history.Indexer
	tails    *tails
	results  *results
	measures *measures
	arena    []byte // of the records of the commit that is being prepared
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
	without := p.untimed[pc.Input]
	for i := range pc.Readings {
		r := &pc.Readings[i]
		p.clk.JudgeReading(r, policy)
		p.batch.Readings = append(p.batch.Readings, *r)
		if r.Stamp.Disposition == reading.Pending {
			p.pending++
		}
		if timed && r.Source.Fault == reading.TimeNull {
			without = untimed{without.n + 1, r.Tag}
		}
	}
	if timed && len(pc.Readings) > 0 {
		p.untimed[pc.Input] = without // none too, so that a fault can end
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
