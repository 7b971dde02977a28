package opcua

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

const (
	// A message that is missing for holePatience was not merely overtaken by the
	// answer to another request.
	holePatience = 500 * time.Millisecond
	// mendEvery is how often nodes that the server would not watch are tried again.
	mendEvery = 30 * time.Second
	// probeTimeout is how long a server that is suspected dead has to answer.
	probeTimeout = 5 * time.Second
)

// watch looks after the subscriptions' health, cctx being the connection's. An
// error ends it.
func (r *Reader) watch(ctx, cctx context.Context, p *publishing) error {
	s := p.s
	now := r.clk.Now().BootNS
	for _, sub := range r.subs {
		if sub.id == 0 {
			continue
		}
		if sub.holeNS != 0 && now-sub.holeNS > int64(holePatience) {
			if err := r.fetch(ctx, s, sub); err != nil {
				return err
			}
		}
		if err := r.settleDoubts(ctx, sub); err != nil {
			return err
		}
		if now-sub.heardNS > int64(sub.pace.deadAfter()) {
			if err := r.silent(ctx, s, sub); err != nil {
				return err
			}
			p.anew(cctx) // the server may have lost them, and with them its voice
		}
	}
	if err := r.mend(ctx, s); err != nil {
		return err
	}
	r.show()
	return r.endCatchUp(ctx)
}

// silent deals with a subscription that has stopped: if the server still answers
// reads, it is the subscription that is dead, else the connection.
func (r *Reader) silent(ctx context.Context, s *session, sub *subscription) error {
	pctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := readTime(pctx, s); err != nil && !isStatus(err) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &lost{fmt.Errorf("nothing comes, and the server does not answer a read: %w", err)}
	}
	// What it sent and did not arrive may still be there.
	if err := r.refetch(ctx, s, sub); err != nil || sub.id == 0 {
		return err
	}
	id := sub.id
	if err := r.lose(ctx, sub, fmt.Sprintf("it said nothing for %v, though the server answers reads", sub.pace.deadAfter())); err != nil {
		return err
	}
	deleteSubscriptions(ctx, s, []uint32{id})
	return nil
}

// fetch asks for the messages that are missing, and gives up on those that the
// server no longer has.
func (r *Reader) fetch(ctx context.Context, s *session, sub *subscription) error {
	missing, from, seenNS := int64(0), sub.seq.next, sub.seenNS
	var why error
	begins := sub.delivered == 0 // some servers do not begin with 1
	if n := sub.seq.hole(); n > farBack {
		if !begins {
			n -= farBack // no server keeps more
		}
		missing += n
		sub.seq.jump(n)
	}
	for sub.id != 0 && sub.seq.hole() > 0 {
		nm, err := republish(ctx, s, sub.id, sub.seq.next)
		switch {
		case err == nil:
			r.again(sub, nm)
		case endsConnection(err):
			return err
		case errors.Is(err, ua.StatusBadSubscriptionIDInvalid):
			return r.lose(ctx, sub, "the server does not know it any more")
		default:
			missing, why = missing+1, err
			sub.seq.skip()
		}
		if err := r.drain(ctx, sub); err != nil {
			return err
		}
	}
	if missing == 0 || begins {
		return nil
	}
	return r.fill(ctx, sub, hole{
		fromNS: seenNS, toNS: sub.publishNS, reason: "message_lost",
		detail: fmt.Sprintf("%d messages of a subscription, from number %d on, never came, and the server does not send them again (%v)", missing, from, why),
	})
}

// again takes in a message that was asked for.
func (r *Reader) again(sub *subscription, nm *ua.NotificationMessage) {
	sub.seq.put(&message{seq: nm.SequenceNumber, publishNS: wallNS(nm.PublishTime), at: r.clk.Now(), data: nm.NotificationData, again: true})
}

// endsConnection reports whether err, of a call, leaves nothing to call with.
func endsConnection(err error) bool {
	var gone *lost
	switch {
	case errors.As(err, &gone), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, ua.StatusBadTimeout):
		return true
	}
	for _, s := range sessionOver {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

var sessionOver = []ua.StatusCode{
	ua.StatusBadSessionIDInvalid, ua.StatusBadSessionClosed, ua.StatusBadSessionNotActivated,
	ua.StatusBadSecureChannelIDInvalid, ua.StatusBadSecureChannelClosed,
}

// countsAnew deals with a server that numbers a subscription's messages from the
// start again, as some do when it changes hands.
func (r *Reader) countsAnew(sub *subscription, at reading.Instant) {
	r.log.Warn().Uint32("subscription", sub.id).Msg("the server numbers its messages anew; what it sent meanwhile is not known")
	r.gaps = append(r.gaps, reading.Gap{
		Reason: "sequence_anew", Series: len(r.part(sub)), FromNS: sub.seenNS, ToNS: sub.publishNS, AtNS: at.WallNS,
		Detail: "the server numbers a subscription's messages from the start again, so that it cannot be told whether some are missing",
	})
}

// gap hands a record of it over.
func (r *Reader) gap(ctx context.Context, g reading.Gap) error {
	g.AtNS = r.clk.Now().WallNS
	r.log.Warn().Str("reason", g.Reason).Msg(g.Detail)
	return r.send(ctx, reading.Parcel{Gaps: []reading.Gap{g}}, true)
}

// lose gives a subscription up, to be made anew.
func (r *Reader) lose(ctx context.Context, sub *subscription, why string) error {
	if sub.id == 0 {
		return nil
	}
	// What came behind a hole that will never close is handed over all the same.
	seenNS := sub.seenNS
	for n := sub.seq.hole(); n > 0 && len(sub.seq.held) > 0; n = sub.seq.hole() {
		sub.seq.jump(n)
		if err := r.drain(ctx, sub); err != nil {
			return err
		}
	}
	delete(r.byID, sub.id)
	r.log.Warn().Uint32("subscription", sub.id).Str("why", why).Msg("a subscription is lost and is made anew")
	sub.id, sub.reason, sub.settled, sub.holeNS, sub.seenNS = 0, why, false, 0, seenNS
	return nil
}

// mend makes what is missing: subscriptions that are lost, and now and then nodes
// that the server would not watch.
func (r *Reader) mend(ctx context.Context, s *session) error {
	now := r.clk.Now().BootNS
	for _, sub := range r.subs {
		switch {
		case sub.id == 0 && now >= sub.retryNS:
			if err := r.make(ctx, s, sub); err != nil {
				return err
			}
		case sub.id != 0 && now-r.mendedNS > int64(mendEvery):
			err := r.monitor(ctx, s, sub)
			if endsConnection(err) {
				return err
			}
			if err != nil {
				r.unwatched(sub, err)
			}
		}
	}
	if now-r.mendedNS > int64(mendEvery) {
		r.mendedNS = now
	}
	return nil
}

// unwatched says of the nodes that a whole call was refused for why they are not
// watched.
func (r *Reader) unwatched(sub *subscription, err error) {
	for _, m := range r.part(sub) {
		if !m.watched && m.failed == "" {
			m.failed = "the server does not watch it: " + err.Error()
		}
	}
}

// make makes a subscription. A server that has no room for it is asked again
// later, and less and less often; the others go on.
func (r *Reader) make(ctx context.Context, s *session, sub *subscription) error {
	before, why := sub.seenNS, sub.reason
	if before != 0 {
		if err := r.beginCatchUp(ctx); err != nil {
			return err
		}
	}
	if err := r.createSubscription(ctx, s, sub); err != nil {
		if endsConnection(err) || !isStatus(err) {
			return err
		}
		wait := min(retryReluctant<<min(sub.tries, 10), retryPatient)
		sub.tries++
		sub.retryNS, sub.reason = r.clk.Now().BootNS+int64(wait), err.Error()
		return nil
	}
	sub.tries = 0
	r.byID[sub.id] = sub
	if before == 0 {
		return nil
	}
	r.mu.Lock()
	r.status.Rebuilt++
	r.mu.Unlock()
	return r.fill(ctx, sub, hole{
		fromNS: before, toNS: sub.bornNS, reason: "subscription_lost",
		detail: "a subscription had to be made anew: " + why,
	})
}
