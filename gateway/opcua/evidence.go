package opcua

import (
	"context"
	"time"

	"tidemark/reading"
)

// vouchEvery is how often the input's partitions hear that they are alive.
const vouchEvery = time.Second

// vouch says that the server speaks, where no readings do.
func (r *Reader) vouch(ctx context.Context, at reading.Instant) error {
	if at.BootNS-r.vouchedNS < int64(vouchEvery) {
		return nil
	}
	return r.send(ctx, reading.Parcel{}, true)
}

// evidence returns the mark of life that is due, behind n readings. Where every
// subscription speaks and nothing is missing, it is a candidate for the
// watermark too: what has not been sent by then has not changed (SEMANTICS I4).
func (r *Reader) evidence(now reading.Instant, n int) []reading.Mark {
	if now.BootNS-r.vouchedNS < int64(vouchEvery) || len(r.byID) == 0 {
		return nil
	}
	r.vouchedNS = now.BootNS
	m := reading.InputMark(reading.MarkActive, r.cfg.Input, n)
	if ns := r.unchangedUntil(now); ns != reading.NoTime {
		m.TimeMS = reading.FloorMS(ns)
	}
	return []reading.Mark{m}
}

// unchangedUntil returns the time, by the server's clock, before which nothing is
// still to come; NoTime if that is not known.
func (r *Reader) unchangedUntil(now reading.Instant) int64 {
	if r.catch.active || len(r.byID) < len(r.subs) {
		return reading.NoTime
	}
	until := int64(1<<63 - 1)
	for _, sub := range r.subs {
		if !sub.settled || sub.holeNS != 0 || sub.publishNS == 0 {
			return reading.NoTime
		}
		until = min(until, sub.publishNS)
	}
	worst := int64(r.cfg.Sampling)
	for _, m := range r.plan {
		worst = max(worst, int64(m.sampling))
	}
	return until - max(worst, r.lag.worst(now))
}

// lag is how far source timestamps lie behind their arrival, at the worst of the
// last minutes: a device behind the server's clock, or one that the server asks
// rarely, is still to be heard of times that the server's own clock has passed.
type lag struct {
	now, before int64 // the worst of the present and of the last span
	sinceNS     int64 // of the present span, boot line
}

const (
	lagSpan = int64(5 * time.Minute)
	// lagMost bounds it: a timestamp further back is wrong, not late.
	lagMost = int64(time.Hour)
)

func (l *lag) note(rs []reading.Reading, at reading.Instant) {
	for i := range rs {
		r := &rs[i]
		if r.Delivery.Has(reading.Initial|reading.Redelivered) || !r.Source.Given() {
			continue
		}
		if d := r.IngestNS - r.Source.NS; d < lagMost {
			l.now = max(l.now, d)
		}
	}
	l.worst(at)
}

func (l *lag) worst(now reading.Instant) int64 {
	if now.BootNS-l.sinceNS > lagSpan {
		l.before, l.now, l.sinceNS = l.now, 0, now.BootNS
	}
	return max(l.now, l.before)
}
