package gateway

import (
	"tidemark/buffer"
	"tidemark/history"
	"tidemark/reading"
)

// repeats recognises what a broker sends again after a crash: what was on disk and
// not acknowledged yet. The engine recognises what it has taken; of what went into
// quarantine it remembers nothing, so that is looked up in the journal's last blocks.
// Each entry is good for one repetition.
type repeats map[repeat]int

// repeat is all that a reading's sender said.
type repeat struct {
	tag    reading.Tag
	id     string
	seq    uint64
	source reading.SourceTime
	value  reading.Value
}

func repeatOf(r *reading.Reading) repeat { return repeat{r.Tag, r.ID, r.Seq, r.Source, r.Value} }

// repeatBlocks is how many blocks a source can have left unacknowledged: a commit
// is acknowledged within the next few.
const repeatBlocks = 64

// restoreRepeats looks through the last blocks up to seq.
func restoreRepeats(store *buffer.Store, seq uint64) (repeats, error) {
	known := repeats{}
	err := store.Headers(seq-min(seq, repeatBlocks)+1, func(b buffer.Block) error {
		if sums, inside, err := history.KeptIn(b.Index); err != nil || len(sums) == 0 && !inside {
			return err
		}
		return eachKept(store, b.Seq, func(r *reading.Reading, _ history.KeptKey) {
			if !r.Delivery.Has(reading.Rejudged) {
				known[repeatOf(r)]++
			}
		})
	})
	return known, err
}

// dropRepeats takes out of a parcel what is in quarantine already, and counts it as
// duplicate.
func (p *pipeline) dropRepeats(pc *reading.Parcel) {
	if len(p.repeats) == 0 {
		return
	}
	kept := pc.Readings[:0]
	for i := range pc.Readings {
		r := &pc.Readings[i]
		key := repeatOf(r)
		if n := p.repeats[key]; n == 0 || !r.Delivery.Has(reading.Redelivered) {
			kept = append(kept, *r)
			continue
		} else if n == 1 {
			delete(p.repeats, key)
		} else {
			p.repeats[key] = n - 1
		}
		c := p.ledger.Counts.input(pc.Input)
		c.Received++
		c.Duplicate++
		for j := range pc.Marks {
			if m := &pc.Marks[j]; m.At > len(kept) {
				m.At--
			}
		}
	}
	clear(pc.Readings[len(kept):])
	pc.Readings = kept
}
