package opcua

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// resume takes up what the server holds for us and makes what it does not.
// resumed tells that the session is still the one that the subscriptions belong
// to.
func (r *Reader) resume(ctx context.Context, s *session, resumed bool) error {
	r.learn(ctx, s)
	if !resumed {
		if err := r.settle(ctx, s); err != nil {
			return err
		}
	}
	if r.earlier() {
		if err := r.beginCatchUp(ctx); err != nil {
			return err
		}
	}
	r.reading, r.reviewing = false, false
	now := r.clk.Now().BootNS
	for _, sub := range r.subs {
		sub.settled, sub.overflowed, sub.heardNS = false, false, now
		for _, m := range r.part(sub) {
			m.echo = true
		}
	}
	if !resumed {
		if err := r.takeOver(ctx, s); err != nil {
			return err
		}
	}
	for _, sub := range r.subs {
		if err := r.bridge(ctx, sub); err != nil {
			return err
		}
		if err := r.refetch(ctx, s, sub); err != nil {
			return err
		}
	}
	return r.mend(ctx, s)
}

// earlier reports whether something was read before this connection.
func (r *Reader) earlier() bool {
	return slices.ContainsFunc(r.subs, func(sub *subscription) bool { return sub.seenNS != 0 })
}

// settle resolves the nodes for this session, and decides what of the
// subscriptions that may still be there is of use: they know nodes by handles, so
// everything must be as it was, the server's start included.
func (r *Reader) settle(ctx context.Context, s *session) error {
	items, problems, err := r.resolver.resolve(ctx, s)
	if err != nil {
		return err
	}
	r.unresolved, r.reviewedNS = problems, r.clk.Now().BootNS
	if len(items) == 0 {
		return errNothing(problems)
	}
	sum := planSum(r.cfg, items)
	switch {
	case r.subs != nil && sum == r.planSum && r.runsSince(r.startedNS):
		return nil // as on the last connection
	case r.subs == nil && r.stored != nil && r.stored.plan == sum && r.runsSince(r.stored.startNS):
		r.replan(items, sum)
		for i, sub := range r.subs {
			sub.adopt(r.stored.subs[i], r.part(sub))
		}
	default:
		seenNS, why := r.seenNS(), "the server was restarted, or other nodes are read"
		if r.startNS == 0 {
			why = "the session is gone, and the server does not tell when it was started, so that its subscriptions may be another client's by now"
		}
		r.discard(ctx, s)
		r.replan(items, sum)
		for _, sub := range r.subs {
			sub.seenNS, sub.reason = seenNS, why
		}
	}
	r.stored, r.startedNS = nil, r.startNS
	return nil
}

// runsSince reports whether this is the same run of the server as the one that began
// at startNS. Of one that does not say (StartTime is mandatory, Part 5 §6.3.1) only a
// session that it still knows tells; then nobody asks.
func (r *Reader) runsSince(startNS int64) bool { return r.startNS != 0 && r.startNS == startNS }

func errNothing(problems []problem) error {
	if len(problems) == 0 {
		return errors.New("no node matches nodes: there is nothing to read")
	}
	return fmt.Errorf("none of the nodes can be read; the first, %s: %s", problems[0].place, problems[0].detail)
}

// adopt takes what an earlier start of the gateway left.
func (sub *subscription) adopt(p subPosition, items []*monitored) {
	sub.id, sub.delivered, sub.seenNS, sub.filling = p.id, p.seq, p.seenNS, p.filling
	sub.pace, sub.shallow = pace{publishing: p.publishing, keepAlive: p.keepAlive}, p.shallow
	sub.reason = "it was to be made when the gateway stopped"
	sub.seq = resumeAfter(p.seq)
	for _, m := range items {
		m.watched = p.id != 0
	}
}

// replan makes the plan from resolved items, with nothing subscribed to yet.
func (r *Reader) replan(items []item, sum uint64) {
	old := map[string]said{}
	for _, m := range r.plan {
		old[m.place+"\x00"+m.series.Sensor] = m.last
	}
	r.plan, r.planSum, r.subs = make([]*monitored, len(items)), sum, nil
	for i := range items {
		r.plan[i] = &monitored{item: items[i], last: old[items[i].place+"\x00"+items[i].series.Sensor]}
	}
	for i := 0; i*r.per < len(r.plan); i++ {
		r.subs = append(r.subs, &subscription{index: i})
	}
	clear(r.byID)
	r.open, r.acks = nil, nil // of subscriptions that are no more; their ids may come again
}

// seenNS returns until when nothing is missing in any subscription; 0 if nothing
// was read before.
func (r *Reader) seenNS() int64 {
	var least int64
	note := func(ns int64) {
		if ns != 0 && (least == 0 || ns < least) {
			least = ns
		}
	}
	for _, sub := range r.subs {
		note(sub.seenNS)
	}
	if r.subs == nil && r.stored != nil {
		for _, p := range r.stored.subs {
			note(p.seenNS)
		}
	}
	return least
}

// discard frees what the server may still hold for us and is of no use. The ids of
// a server's earlier start may be somebody else's by now.
func (r *Reader) discard(ctx context.Context, s *session) {
	var ids []uint32
	if r.runsSince(r.startedNS) {
		for _, sub := range r.subs {
			ids = append(ids, sub.id)
		}
	}
	if r.subs == nil && r.stored != nil && r.runsSince(r.stored.startNS) {
		for _, p := range r.stored.subs {
			ids = append(ids, p.id)
		}
	}
	ids = slices.DeleteFunc(ids, func(id uint32) bool { return id == 0 })
	if len(ids) == 0 {
		return
	}
	if _, err := transfer(ctx, s, ids); err == nil { // only its session may delete one
		deleteSubscriptions(ctx, s, ids)
	}
}

// takeOver moves the subscriptions to this session. Those that are gone are to be
// made.
func (r *Reader) takeOver(ctx context.Context, s *session) error {
	var held []*subscription
	var ids []uint32
	for _, sub := range r.subs {
		if sub.id != 0 {
			held, ids = append(held, sub), append(ids, sub.id)
		}
	}
	if len(held) == 0 {
		return nil
	}
	results, err := transfer(ctx, s, ids)
	if err != nil && (endsConnection(err) || !isStatus(err)) {
		return err
	}
	for i, sub := range held {
		why := err
		if err == nil && severity(results[i].StatusCode) == bad {
			why = results[i].StatusCode
		}
		if why != nil {
			if err := r.lose(ctx, sub, "the server does not hand it over: "+why.Error()); err != nil {
				return err
			}
			continue
		}
		r.byID[sub.id] = sub
		r.release(sub, results[i].AvailableSequenceNumbers)
	}
	return nil
}

// release acknowledges what the server still keeps for us and we have on disk:
// the acknowledgements of then did not arrive.
func (r *Reader) release(sub *subscription, available []uint32) {
	for _, n := range available {
		open := slices.ContainsFunc(r.open, func(d delivery) bool { return d.sub == sub.id && d.seq == n })
		if sub.delivered != 0 && distance(sub.delivered, n) <= 0 && !open {
			r.acks = append(r.acks, &ua.SubscriptionAcknowledgement{SubscriptionID: sub.id, SequenceNumber: n})
		}
	}
}

// bridge has history fill an outage that was longer than the server's queues hold,
// and goes on with a hole that was being filled.
func (r *Reader) bridge(ctx context.Context, sub *subscription) error {
	h := hole{fromNS: sub.seenNS, toNS: r.serverNS, reason: outage}
	switch {
	case sub.id == 0 || sub.seenNS == 0:
		return nil
	case sub.filling && sub.hole.reason != "":
		h.reason, h.detail = sub.hole.reason, sub.hole.detail
	case sub.filling:
		h.detail = "the gateway stopped before the history of an outage was read"
	case r.serverNS != reading.NoTime && r.serverNS-sub.seenNS > int64(bridge):
		h.detail = fmt.Sprintf("nothing was heard for %v, longer than the server's queues may hold", time.Duration(r.serverNS-sub.seenNS).Round(time.Second))
	default:
		return nil
	}
	return r.fill(ctx, sub, h)
}

// refetch asks for the messages that the server sent and that did not arrive,
// until it has none.
func (r *Reader) refetch(ctx context.Context, s *session, sub *subscription) error {
	for sub.id != 0 {
		nm, err := republish(ctx, s, sub.id, sub.seq.next)
		switch {
		case err == nil:
			r.again(sub, nm)
		case errors.Is(err, ua.StatusBadMessageNotAvailable):
			return nil
		case errors.Is(err, ua.StatusBadSubscriptionIDInvalid), errors.Is(err, ua.StatusBadNoSubscription):
			return r.lose(ctx, sub, "the server does not know it any more")
		case endsConnection(err):
			return err
		default: // what comes next will show whether something is missing
			r.log.Warn().Err(err).Msg("a message cannot be fetched again")
			return nil
		}
		if err := r.drain(ctx, sub); err != nil {
			return err
		}
	}
	return nil
}

// planSum tells plans apart: by their nodes, their names, and all that is asked of
// the server for them.
func planSum(cfg Config, items []item) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%v %v %v\n", cfg.Sampling, cfg.Publishing, perSubscription)
	for i := range items {
		it := &items[i]
		fmt.Fprintf(h, "%v %q %q %v %v\n", it.node, it.place, it.series, it.deadband, it.trigger)
	}
	return max(h.Sum64(), 1) // 0 is that of a plan which nobody can take over
}
