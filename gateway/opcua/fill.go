package opcua

import (
	"context"
	"errors"
	"time"

	"tidemark/reading"
)

// hole is a stretch, by the server's clock, of which something is or may be
// missing, and why.
type hole struct {
	fromNS, toNS   int64
	reason, detail string
}

// fill has the server's history fill a hole of a subscription, or says at once
// that it stays. Until it is filled, a restart would begin with it again.
func (r *Reader) fill(ctx context.Context, sub *subscription, h hole) error {
	if h.toNS == reading.NoTime || h.toNS <= h.fromNS {
		h.toNS = r.clk.Now().WallNS
	}
	if most := h.toNS - int64(r.cfg.Backfill); h.fromNS < most {
		lost := h
		lost.toNS = most
		if err := r.missing(ctx, sub, r.gapOf(lost, len(r.part(sub)))); err != nil {
			return err
		}
		h.fromNS = most
	}
	if r.cfg.Backfill == 0 {
		sub.filling = false
		return nil
	}
	sub.filling, sub.seenNS, sub.hole, sub.coveredNS = true, h.fromNS, h, h.toNS
	r.log.Info().Str("why", h.detail).Dur("length_ms", time.Duration(h.toNS-h.fromNS)).Msg("the server's history is read to fill a gap")
	return r.beginCatchUp(ctx)
}

func (r *Reader) gapOf(h hole, series int) reading.Gap {
	return reading.Gap{Reason: h.reason, Detail: h.detail, FromNS: h.fromNS, ToNS: h.toNS, Series: series}
}

// outage is the reason of a hole that the server's queues may have bridged.
const outage = "outage"

// missing records what history did not bring.
func (r *Reader) missing(ctx context.Context, sub *subscription, g reading.Gap) error {
	if g.Reason == outage {
		sub.doubts = append(sub.doubts, g)
		return nil
	}
	return r.gap(ctx, g)
}

// settleDoubts says of an outage that history did not fill whether it is a gap: it
// is none where everything that waited has come and no queue overflowed.
func (r *Reader) settleDoubts(ctx context.Context, sub *subscription) error {
	if !sub.settled {
		return nil
	}
	doubts := sub.doubts
	sub.doubts = nil
	if !sub.overflowed && !sub.shallow {
		return nil
	}
	for _, g := range doubts {
		if err := r.gap(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// fillResult is what became of a hole.
type fillResult struct {
	sub   *subscription
	hole  hole
	short []shortfall
	err   error
}

// fillNext begins to read the history for one of the subscriptions that wait for
// it, if nobody does so already.
func (r *Reader) fillNext(ctx context.Context, p *publishing) {
	if r.reading {
		return
	}
	for _, sub := range r.subs {
		if !sub.filling || sub.id == 0 {
			continue
		}
		r.reading = true
		items := make([]item, 0, r.per)
		for _, m := range r.part(sub) {
			items = append(items, m.item)
		}
		f := fillResult{sub: sub, hole: sub.hole}
		from := f.hole.fromNS - max(int64(r.cfg.Sampling), r.lag.worst(r.clk.Now())) - int64(time.Second)
		p.wg.Go(func() {
			f.short, f.err = fetchHistory(ctx, p.s, items, from, f.hole.toNS, r.clk.Now, r.bring)
			select {
			case r.fills <- f:
			case <-ctx.Done():
			}
		})
		return
	}
}

// bring hands over what history brings. Nobody waits for it to be on disk; that
// the hole counts as filled is told by a parcel behind it.
func (r *Reader) bring(ctx context.Context, p reading.Parcel) error {
	p.Input = r.cfg.Input
	if err := r.sink.Deliver(ctx, p); err != nil {
		return &sinkError{err}
	}
	r.mu.Lock()
	r.status.Readings += uint64(len(p.Readings))
	r.status.Historical += uint64(len(p.Readings))
	r.mu.Unlock()
	return nil
}

// filled takes in what became of a hole.
func (r *Reader) filled(ctx context.Context, f fillResult) error {
	r.reading = false
	var full *sinkError
	if f.err != nil && (endsConnection(f.err) || errors.As(f.err, &full)) {
		return f.err // the hole stays, and the next connection begins with it
	}
	whole := f.sub.hole == f.hole // else it has grown meanwhile
	if f.err != nil {
		f.hole.detail += "; the server's history cannot be read: " + f.err.Error()
		if err := r.missing(ctx, f.sub, r.gapOf(f.hole, len(r.part(f.sub)))); err != nil {
			return err
		}
	}
	for _, s := range f.short {
		g := reading.Gap{
			Reason: f.hole.reason, Detail: f.hole.detail + "; " + s.detail, FromNS: max(s.fromNS, f.hole.fromNS), ToNS: s.toNS,
			Place: s.places[0], Series: len(s.places),
		}
		if err := r.missing(ctx, f.sub, g); err != nil {
			return err
		}
	}
	if whole {
		f.sub.filling = false
		f.sub.seenNS = max(f.sub.seenNS, f.sub.publishNS)
	}
	return r.send(ctx, reading.Parcel{}, true)
}
