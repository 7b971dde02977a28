package gateway

import (
	"crypto/sha256"
	"fmt"
	"time"

	"tidemark/buffer"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/uplink"
	"tidemark/windowing"
)

// checkpointCost is how many readings a restart may have to step again, about a
// second's worth on a small machine. A block counts as blockCost readings. Where many
// readings are remembered a checkpoint is large: then it waits until it costs the
// flash no more than checkpointShare bytes a reading, but for no more than twice as
// many.
const (
	checkpointCost  = 500_000
	checkpointShare = 8
	blockCost       = 100
)

// commit steps the batch and writes everything that follows from it.
func (p *pipeline) commit(now time.Duration) error {
	inst := p.clk.Now()
	p.ledger.GatewayMS = inst.GatewayMS
	for i := range p.rejects {
		p.countReject(&p.rejects[i])
	}
	c := buffer.Commit{}
	p.reportLosses(&c)
	c.Records = append(c.Records, p.events...)
	c.Evidence = append(c.Evidence, p.evidence...)
	if p.hasBlock(now) {
		p.markAlive()
		b := &p.batch
		b.Seq, b.GatewayMS, b.WallNS, b.Clock, b.Emit = p.seq+1, inst.GatewayMS, inst.WallNS, inst.Segment, true
		out, err := p.step(b)
		if err != nil {
			return err
		}
		p.collect(&c, b, out)
		p.cost += len(b.Readings) + blockCost
	}
	p.noteMeta(&c, inst.WallNS)
	p.prepared = &prepared{commit: c, bytes: commitBytes(&c)}
	p.reset()
	p.resolve.inBatch = false
	return p.write(now)
}

// hasBlock reports whether the commit needs a journal block: the engine must see
// something, or time has come to mean something to it.
func (p *pipeline) hasBlock(now time.Duration) bool {
	b := &p.batch
	return len(b.Readings) > 0 || len(b.Marks) > 0 || p.evidenceDue(now) || b.Config != nil || p.deadlineDue(now)
}

// collect turns a step's output into the block, the outbox records and the
// evidence of the commit, and counts what became of each reading.
func (p *pipeline) collect(c *buffer.Commit, b *reading.Batch, out *windowing.Output) {
	digest := p.collectEmissions(c, b, out.Emissions)
	var counts *InputCounts // of the reading's input, mostly that of the one before
	var measured *inputMeasures
	input := ""
	for i := range b.Readings {
		r := &b.Readings[i]
		if name := r.Tag.Value().Input; counts == nil || name != input {
			input, counts, measured = name, p.ledger.Counts.input(name), p.measures.input(name)
		}
		counts.verdict(r, out.Outcomes[i])
		measured.reading(r, b.GatewayMS)
		p.ledger.saw(r, b.Seq)
		if r.Delivery.Has(reading.Released) && p.ledger.Release != nil {
			p.ledger.Release.count(out.Outcomes[i])
		}
	}
	p.board.note(b.Readings, out.Outcomes)
	p.tails.stage(b.Readings, out)
	p.results.stage(out.Emissions)
	p.noteUntimed()
	p.refused(out.Faults)
	minMS, maxMS := eventRange(b.Readings)
	c.Block = &buffer.Block{
		Seq: b.Seq, MinMS: minMS, MaxMS: maxMS, Readings: len(b.Readings),
		Digest: digest, Data: reading.AppendBatch(nil, b), Index: p.indexer.Append(nil, b),
	}
}

// collectEmissions encodes each emission once: for the digest, which is that of
// windowing.Output.Digest, for the outbox and for the evidence.
func (p *pipeline) collectEmissions(c *buffer.Commit, b *reading.Batch, es []windowing.Emission) [8]byte {
	digest := sha256.New()
	p.arena = p.arena[:0]
	for i := range es {
		e := &es[i]
		from := len(p.arena)
		p.arena = appendGeneration(p.arena, p.ledger.Generation)
		p.arena = windowing.AppendEmission(p.arena, e)
		record := p.arena[from:len(p.arena):len(p.arena)]
		digest.Write(record[generationLen:])
		p.ledger.Counts.emitted(e)
		p.measures.emission(e)
		if !p.keeps(e, b.Seq) {
			p.arena = p.arena[:from]
			continue
		}
		if p.sends {
			c.Records = append(c.Records, buffer.Record{Kind: uplink.KindEmission, Since: e.Since, Data: record})
		}
		if e.Kind == windowing.EmitLate || e.Kind == windowing.EmitQuarantine {
			c.Evidence = append(c.Evidence, buffer.Evidence{Kind: byte(e.Kind), AtMS: reading.FloorMS(b.WallNS), Data: record})
		}
	}
	return [8]byte(digest.Sum(nil))
}

// keeps reports whether an emission has a record of its own.
func (p *pipeline) keeps(e *windowing.Emission, block uint64) bool {
	switch e.Kind {
	case windowing.EmitDuplicate, windowing.EmitWatermark:
		return false
	case windowing.EmitQuarantine:
		return p.ledger.Floods.whole(e.Reading, block, p.ledger.GatewayMS)
	}
	return true
}

// noteUntimed shows the inputs whose readings lack the source time that the
// configuration expects: windowed by arrival they look right, and a mistyped
// time.path would never be found.
func (p *pipeline) noteUntimed() {
	for input, u := range p.untimed {
		c, detail := p.ledger.Counts.input(input), ""
		if u.n > 0 {
			c.Untimed += u.n
			series := u.last.Value()
			detail = fmt.Sprintf("%d of %d readings came without a source time and are windowed by their arrival, such as those of %s: is its time.path right? If the source has no clock, say timestamps.use: ingest; `tidemark tags` shows which they are",
				c.Untimed, c.Received, history.Name(series.Asset, series.Sensor))
		}
		p.health.set("times of input "+input, detail)
	}
}

// refused shows the definitions that the engine will not run.
func (p *pipeline) refused(faults []windowing.Fault) {
	for _, f := range faults {
		p.health.set("feature "+f.Feature.Name, f.Reason)
	}
}

// eventRange returns the lowest and highest accepted event time, in
// milliseconds, and NoTime for both if there is none.
func eventRange(rs []reading.Reading) (lo, hi int64) {
	lo, hi = reading.NoTime, reading.NoTime
	for i := range rs {
		if !rs[i].Stamp.Disposition.Accepted() {
			continue
		}
		ms := reading.FloorMS(rs[i].Stamp.EventNS)
		if lo == reading.NoTime || ms < lo {
			lo = ms
		}
		hi = max(hi, ms)
	}
	return lo, hi
}

// The store's keys beside the ledger's.
const (
	metaClock   = "clock"   // what the clock must know after a restart
	metaSources = "sources" // what is known of the sources' clocks
	metaConfig  = "config"  // the engine's configuration in force, in its own form
	metaMemory  = "memory/" // and the input's name: what its reader must know after a restart
	metaNodes   = "nodes/"  // likewise: the nodes that its rules have chosen so far

	metaLastGood = "last_good" // the configuration file that was last served without a fault
)

// noteMeta puts the small values that must survive into the commit.
func (p *pipeline) noteMeta(c *buffer.Commit, wallNS int64) {
	c.Meta = map[string][]byte{metaLedger: p.ledger.encode(), metaConfig: p.config, metaFilters: p.filters}
	if p.restored {
		c.Meta[metaRestored] = nil
	}
	if p.lastGood != nil {
		c.Meta[metaLastGood] = p.lastGood
	}
	for input, list := range p.lists {
		c.Meta[metaNodes+input] = list
	}
	for input, memory := range p.memories {
		c.Meta[metaMemory+input] = memory
	}
	if now := p.now(); p.clockDirty || now-p.clockSaved >= time.Minute {
		c.Meta[metaClock] = p.clk.Persist()
		p.clockDirty, p.clockSaved = false, now
	}
	if now := p.now(); now-p.sourcesSaved >= saveSources || c.Checkpoint != nil {
		c.Meta[metaSources] = p.clk.PersistSources()
		p.sourcesSaved = now
	}
	if p.clk.Trusted() {
		c.AtMS = reading.FloorMS(wallNS)
	}
	c.KeepFrom = p.ledger.PendingFrom
	if c.KeepFrom == 0 {
		c.KeepFrom = p.seq + 1
	}
}

// reportLosses makes a record of whatever the store had to drop.
func (p *pipeline) reportLosses(c *buffer.Commit) {
	for _, l := range p.store.Losses() {
		e := p.event(uplink.EventLoss).Str("what", string(l.Kind)).Uint("first", l.First).Uint("next", l.Next)
		if l.Uplink != "" {
			e.Str("uplink", l.Uplink)
		}
		switch l.Kind {
		case buffer.LossOutbox:
			e.Int("records", l.Records)
		case buffer.LossRaw, buffer.LossUnsent:
			e.Int("readings", l.Readings).Time("from", msToNS(l.MinMS)).Time("to", msToNS(l.MaxMS))
		}
		why := "the store had to drop what it could no longer hold: raise store.quota or shorten store.retain"
		if l.Damaged > 0 {
			e.Int("damaged_blocks", l.Damaged)
			why = "blocks of the store were damaged and are lost; their readings are counted as far as they are known"
		}
		p.note(e)
		p.ledger.Counts.Lost[string(l.Kind)] += lostCount(&l)
		c.Reported = l.ID
		p.log.Warn().Str("what", string(l.Kind)).Uint64("first", l.First).Uint64("next", l.Next).
			Int64("readings", l.Readings).Int64("damaged_blocks", l.Damaged).Msg(why)
	}
}

// lostKinds are what Lost counts.
var lostKinds = []string{string(buffer.LossRaw), string(buffer.LossUnsent), string(buffer.LossOutbox), string(buffer.LossEvidence), lostUndeliverable}

// lostUndeliverable is a record that an uplink's broker can never take.
const lostUndeliverable = "undeliverable"

// lostCount is how many records or readings a loss is of; of blocks that could not
// be read it is not known, and each counts as one.
func lostCount(l *buffer.Loss) uint64 {
	switch l.Kind {
	case buffer.LossOutbox:
		return uint64(l.Records)
	case buffer.LossRaw, buffer.LossUnsent:
		return uint64(l.Readings + l.Damaged)
	}
	return l.Next - l.First
}

func msToNS(ms int64) int64 {
	if ms == reading.NoTime {
		return reading.NoTime
	}
	return ms * 1e6
}
