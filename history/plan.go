package history

import (
	"context"
	"math"

	"tidemark/buffer"
	"tidemark/reading"
)

// plan knows which blocks have which event times, coarsely enough to be small.
type plan struct {
	runs      []run
	each      int // blocks to a run
	low, high int64
	gaps      []span // of wall time, in which blocks are lost
}

// run is a row of blocks with their event times, [min, max].
type run struct {
	first, next uint64
	blocks      int
	min, max    int64
	readings    int64
}

type span struct{ from, to int64 }

// planRuns bounds a plan.
const planRuns = 1 << 15

// sliceReadings is about how many readings a slice holds at most; tests make it
// small.
var sliceReadings int64 = 2_000_000

// read fills the plan from the blocks' headers.
func (p *plan) read(ctx context.Context, j Journal, info *Info, progress ProgressFunc) error {
	p.each, p.low, p.high = 1, math.MaxInt64/2, math.MinInt64/2
	var before buffer.Block
	return j.Headers(ctx, info.First, info.Next, progress.walk(stepSurveying, info.First, info.Next, func(b buffer.Block) error {
		if before.Seq != 0 && b.Seq != before.Seq+1 {
			p.gaps = append(p.gaps, span{before.AtMS, b.AtMS})
		}
		before = b
		if b.MinMS != reading.NoTime {
			p.add(&b)
		}
		return nil
	}))
}

func (p *plan) add(b *buffer.Block) {
	p.low, p.high = min(p.low, b.MinMS), max(p.high, b.MaxMS)
	if n := len(p.runs); n > 0 && p.runs[n-1].blocks < p.each {
		p.runs[n-1].join(run{b.Seq, b.Seq + 1, 1, b.MinMS, b.MaxMS, int64(b.Readings)})
		return
	}
	if len(p.runs) == planRuns {
		p.halve()
	}
	p.runs = append(p.runs, run{b.Seq, b.Seq + 1, 1, b.MinMS, b.MaxMS, int64(b.Readings)})
}

// halve joins each two runs.
func (p *plan) halve() {
	p.each *= 2
	kept := p.runs[:0]
	for i := 0; i < len(p.runs); i += 2 {
		r := p.runs[i]
		if i+1 < len(p.runs) {
			r.join(p.runs[i+1])
		}
		kept = append(kept, r)
	}
	p.runs = kept
}

func (r *run) join(o run) {
	r.next, r.blocks, r.readings = o.next, r.blocks+o.blocks, r.readings+o.readings
	r.min, r.max = min(r.min, o.min), max(r.max, o.max)
}

// upTo is the end of the slice that begins at from: as long as it holds about as
// many readings as a slice may, and at least a window.
func (p *plan) upTo(from, reach, size, longest int64) int64 {
	length := size
	for length*2 <= longest && length < math.MaxInt64/8 && p.count(from-reach, from+length*2+size) <= sliceReadings && from+length < p.high {
		length *= 2
	}
	return from + length
}

// count estimates how many readings have event times in [low, high): those of a run
// are taken to be spread evenly.
func (p *plan) count(low, high int64) int64 {
	n := 0.0
	for i := range p.runs {
		if r := &p.runs[i]; r.min < high && r.max >= low {
			inside := min(r.max+1, high) - max(r.min, low)
			n += float64(r.readings) * float64(inside) / float64(r.max+1-r.min)
		}
	}
	return int64(n)
}

// next is the earliest event time after at that a block may hold; beyond every one
// if none does.
func (p *plan) next(at int64) int64 {
	next := int64(math.MaxInt64)
	for i := range p.runs {
		switch r := &p.runs[i]; {
		case r.max <= at:
		case r.min <= at:
			return at + 1
		default:
			next = min(next, r.min)
		}
	}
	return next
}
