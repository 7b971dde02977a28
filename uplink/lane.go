package uplink

import (
	"context"
	"fmt"
)

// queue is what was read of a lane and is not sent yet.
type queue struct {
	recs []Record
	at   int
	upTo uint64 // the source's position behind recs
}

// sizes of what is asked from the source at a time, and of how much of a lane goes
// before the live one is looked at again.
const (
	queueRecords = 256
	queueBytes   = 256 << 10
	portion      = 64
)

// rewind drops what was read and goes back to what is not delivered.
func (p *pass) rewind() {
	for i := range p.queues {
		p.queues[i] = queue{recs: p.queues[i].recs[:0]}
	}
	p.batch.count = 0
	p.src.Rewind()
}

// round sends what is live; if nothing is, a portion of what waited; and else of
// the readings. It reports whether there was anything.
func (p *pass) round(run context.Context) (moved bool, err error) {
	for lane := range lanes {
		if moved, err = p.serveLane(run, lane); moved || err != nil {
			break
		}
	}
	if err == nil {
		err = p.flushBatch(run)
	}
	return moved, err
}

// serveLane sends the next records of a lane. It reports whether its position
// moved.
func (p *pass) serveLane(run context.Context, lane Lane) (moved bool, err error) {
	q := &p.queues[lane]
	if q.at == len(q.recs) {
		before := q.upTo
		q.recs, q.upTo, err = p.src.Next(lane, q.recs[:0], queueRecords, queueBytes)
		if err != nil {
			return false, fmt.Errorf("what is to be sent cannot be read: %w", err)
		}
		q.at, moved = 0, q.upTo != before
	}
	most := len(q.recs)
	if lane != Live {
		most = min(most, q.at+portion)
	}
	for ; q.at < most; q.at++ {
		r := &q.recs[q.at]
		r.lane = lane
		if sent, err := p.next(run, r); !sent {
			return moved, err
		}
		moved = true
	}
	if q.at == len(q.recs) && moved {
		if err := p.flushBatch(run); err != nil {
			return moved, err
		}
		p.deliver(p.window.pass(lane, q.upTo))
	}
	return moved, nil
}

// next sends a record, unless its type is not wanted. sent is false if it has to
// wait for its turn.
func (p *pass) next(run context.Context, r *Record) (sent bool, err error) {
	if !p.types.takes(r) {
		return true, nil
	}
	if r.Waited {
		if p.pace.allows(1) == 0 {
			return false, nil
		}
		p.pace.spent(1)
	}
	if err := p.sendRecord(run, r); err != nil {
		return false, err
	}
	return true, nil
}
