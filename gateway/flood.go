package gateway

import (
	"maps"
	"slices"

	"tidemark/reading"
	"tidemark/uplink"
)

// A clock that is wrong is wrong with every reading. So that a flood of them
// neither fills the evidence nor delays the features on their way, the first
// floodFull of an input and reason in a minute go whole into the outbox and the
// evidence; the rest is counted, with the range of blocks that hold them, in one
// record when the minute is over. The journal has them all.
const (
	floodFull  = 100
	floodEvery = 60_000 // ms of gateway time
)

// flood is one minute of quarantined readings of an input, for one reason.
type flood struct {
	FromMS int64  `json:"from_ms"` // gateway time of the first
	Full   int    `json:"full"`
	More   uint64 `json:"more,omitempty"` // counted only
	First  uint64 `json:"first,omitempty"`
	Last   uint64 `json:"last,omitempty"` // block of the first and the last of More
}

// floods are in the ledger, so that no count is lost in a crash: input → reason.
type floods map[string]map[string]*flood

// whole reports whether the reading is to be kept whole; else it is counted.
func (f floods) whole(r *reading.Reading, block uint64, nowMS int64) bool {
	input, reason := r.Tag.Value().Input, r.Stamp.Reason.String()
	if f[input] == nil {
		f[input] = map[string]*flood{}
	}
	run := f[input][reason]
	if run == nil {
		run = &flood{FromMS: nowMS}
		f[input][reason] = run
	}
	if run.Full < floodFull {
		run.Full++
		return true
	}
	if run.More == 0 {
		run.First = block
	}
	run.More++
	run.Last = block
	return false
}

// sweepFloods makes a record of each flood whose minute is over.
func (p *pipeline) sweepFloods() {
	nowMS := p.clk.Now().GatewayMS
	for _, input := range slices.Sorted(maps.Keys(p.ledger.Floods)) {
		byReason := p.ledger.Floods[input]
		for _, reason := range slices.Sorted(maps.Keys(byReason)) {
			f := byReason[reason]
			if nowMS-f.FromMS < floodEvery {
				continue
			}
			delete(byReason, reason)
			if f.More > 0 {
				p.recordFlood(input, reason, f)
			}
		}
		if len(byReason) == 0 {
			delete(p.ledger.Floods, input)
		}
	}
}

func (p *pipeline) recordFlood(input, reason string, f *flood) {
	p.log.Warn().Str("input", input).Str("reason", reason).Uint64("count", f.More).Uint64("first_block", f.First).
		Uint64("last_block", f.Last).Msg("more readings went into quarantine than have a record of their own")
	e := p.event(uplink.EventQuarantine).Str("input", input).Str("reason", reason).Uint("count", f.More).
		Uint("first_block", f.First).Uint("last_block", f.Last)
	p.note(e)
	p.keep(evidenceRange, reading.FloorMS(p.clk.Now().WallNS), e)
}
