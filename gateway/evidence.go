package gateway

import (
	"time"

	"tidemark/reading"
	"tidemark/uplink"
)

// This file is about what readers say besides readings: that a source lives, and
// what it skipped.

// isNews reports whether a parcel is worth a commit. Evidence of life alone is
// not: it goes with the next batch, or when it changes something.
func isNews(pc *reading.Parcel) bool {
	for i := range pc.Marks {
		if pc.Marks[i].Kind != reading.MarkActive {
			return true
		}
	}
	return len(pc.Marks) == 0 || len(pc.Readings)+len(pc.Rejects)+len(pc.Gaps) > 0
}

// isAlive keeps a mark of life until the next block. The time that it brings is of
// the server's clock and counts only as far as both clocks can be trusted.
func (p *pipeline) isAlive(m reading.Mark) {
	ms := reading.NoTime
	if m.TimeMS != reading.NoTime {
		ms = p.clk.Vouched(m.Input, m.TimeMS)
	}
	if old, ok := p.alive[m.Input]; ok {
		ms = max(ms, old)
	}
	p.alive[m.Input] = ms
}

// evidenceDue reports whether what is known to be alive changes an output or a
// status.
func (p *pipeline) evidenceDue(now time.Duration) bool {
	if len(p.alive) == 0 || now-p.vouched < time.Second {
		return false
	}
	p.vouched = now
	for input, ms := range p.alive {
		if p.engine.Advances(input, ms) {
			p.vouched = 0 // until it is written
			return true
		}
	}
	return false
}

// markAlive puts what is alive into the batch, behind its readings.
func (p *pipeline) markAlive() {
	for _, input := range p.inputs {
		if ms, ok := p.alive[input]; ok {
			m := reading.InputMark(reading.MarkActive, input, len(p.batch.Readings))
			m.TimeMS = ms
			p.batch.Marks = append(p.batch.Marks, m)
		}
	}
	clear(p.alive)
}

// gap records what a source skipped.
func (p *pipeline) gap(input string, g *reading.Gap) {
	p.ledger.Counts.input(input).Gaps++
	e := uplink.NewEvent(uplink.EventGap, g.AtNS, p.clk.Now().State).Str("input", input).
		Str("reason", g.Reason).Str("detail", g.Detail).Str("place", g.Place).
		Time("from", g.FromNS).Time("to", g.ToNS)
	if g.Series > 0 {
		e.Int("series", int64(g.Series))
	}
	p.note(e)
}

// keepNodes stores the nodes that an input's rules have chosen, with the next
// commit.
func (p *pipeline) keepNodes(input string, list []byte) {
	p.tell(func() {
		p.lists[input] = list
		p.parcels++
	})
}
