package opcua

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// answer is what one PublishRequest brought.
type answer struct {
	resp *ua.PublishResponse
	err  error
	acks []*ua.SubscriptionAcknowledgement // what it carried
	at   reading.Instant
	lot  int
}

// publishing keeps requests at the server for its answers to come.
type publishing struct {
	s       *session
	answers chan answer
	flying  int
	most    int // that the server takes
	wg      sync.WaitGroup

	// A server that has lost our requests will not answer them. Then they are given
	// up and others take their place: the next lot.
	lot    int
	ctx    context.Context // of the lot's requests
	cancel context.CancelFunc
}

// anew gives up the requests that are at the server.
func (p *publishing) anew(ctx context.Context) {
	if p.cancel != nil {
		p.cancel()
	}
	p.lot++
	p.flying = 0
	p.ctx, p.cancel = context.WithCancel(ctx)
}

// watchEvery is how often the subscriptions' health is looked at.
const watchEvery = 250 * time.Millisecond

// serve receives notifications until the connection ends or ctx does.
func (r *Reader) serve(ctx context.Context, s *session) error {
	cctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &publishing{s: s, answers: make(chan answer, 2*mostRequests), most: mostRequests}
	p.anew(cctx)
	trouble := make(chan error, 1)
	p.wg.Go(func() { r.pulse(cctx, s, trouble) })
	defer p.wg.Wait()
	defer cancel()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		for p.flying < min(p.most, requests(len(r.byID))) {
			r.publish(p)
		}
		r.fillNext(cctx, p)
		r.review(cctx, p)
		err := r.next(ctx, cctx, p, tick.C, trouble)
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// next waits for something to happen, and deals with it.
func (r *Reader) next(ctx, cctx context.Context, p *publishing, tick <-chan time.Time, trouble <-chan error) (err error) {
	select {
	case a := <-p.answers:
		defer r.deaf(r.clk.Now())
		return r.answered(ctx, p, a)
	case <-r.commits:
		r.acknowledge()
	case <-tick:
		defer r.deaf(r.clk.Now())
		return r.watch(ctx, cctx, p)
	case f := <-r.fills:
		defer r.deaf(r.clk.Now())
		return r.filled(ctx, f)
	case f := <-r.reviews:
		return r.reviewed(f)
	case err := <-trouble:
		return err
	case <-p.s.ch.closed:
		return &lost{p.s.ch.cause()}
	case <-ctx.Done():
	}
	return nil
}

// deaf notes that nobody has listened to the server since a moment, because the
// gateway was full or something else was asked of it: its silence meanwhile is
// ours.
func (r *Reader) deaf(since reading.Instant) {
	ns := r.clk.Now().BootNS - since.BootNS
	for _, sub := range r.subs {
		sub.heardNS += ns
	}
}

// publish leaves one more request at the server, with the acknowledgements that
// are due.
func (r *Reader) publish(p *publishing) {
	acks, ctx, lot := r.acks, p.ctx, p.lot
	r.acks = nil
	p.flying++
	p.wg.Go(func() {
		resp, err := p.s.send(ctx, &ua.PublishRequest{SubscriptionAcknowledgements: acks}, publishTimeout)
		a := answer{err: err, acks: acks, at: r.clk.Now(), lot: lot}
		if err == nil {
			var ok bool
			if a.resp, ok = resp.(*ua.PublishResponse); !ok || a.resp.NotificationMessage == nil {
				a.err = wrongAnswer(&ua.PublishRequest{}, resp)
			}
		}
		p.answers <- a
	})
}

// answered takes in what a request brought. An error ends the connection.
func (r *Reader) answered(ctx context.Context, p *publishing, a answer) error {
	if a.lot == p.lot {
		p.flying--
	}
	if a.err != nil {
		r.acks = append(a.acks, r.acks...)
		if a.lot != p.lot {
			return nil
		}
		return r.publishFailed(ctx, p, a)
	}
	nm := a.resp.NotificationMessage
	sub := r.byID[a.resp.SubscriptionID]
	if sub == nil {
		return r.stray(ctx, a)
	}
	r.heard(sub, a.at)
	// node-opcua leaves the publish time out; its answer has one.
	published := wallNS(nm.PublishTime)
	if published == reading.NoTime && a.resp.ResponseHeader != nil {
		published = wallNS(a.resp.ResponseHeader.Timestamp)
	}
	if len(nm.NotificationData) == 0 {
		if sub.seq.alive(nm.SequenceNumber, published) {
			r.countsAnew(sub, a.at)
		}
		r.publishedAt(sub, published)
	} else if !r.arrived(sub, nm, published, a.at) {
		return nil
	}
	if err := r.drain(ctx, sub); err != nil {
		return err
	}
	if !a.resp.MoreNotifications && sub.holeNS == 0 {
		sub.settled = true
	}
	return r.vouch(ctx, a.at)
}

// stray says of a message that it belongs to no subscription of ours: one that was
// given up, whose values then came otherwise or are a gap, or one of somebody else's.
func (r *Reader) stray(ctx context.Context, a answer) error {
	if len(a.resp.NotificationMessage.NotificationData) == 0 {
		return nil // it only says that it lives
	}
	gone := subscription{id: a.resp.SubscriptionID}
	return r.send(ctx, reading.Parcel{Rejects: []reading.Reject{gone.reject(a.at, "unknown_subscription",
		fmt.Sprintf("the server sends message %d of a subscription that was given up, or is not the gateway's", a.resp.NotificationMessage.SequenceNumber))}}, false)
}

// arrived puts a message in order. It reports whether it is new.
func (r *Reader) arrived(sub *subscription, nm *ua.NotificationMessage, published int64, at reading.Instant) bool {
	m := &message{seq: nm.SequenceNumber, publishNS: published, at: at, data: nm.NotificationData}
	switch sub.seq.put(m) {
	case repeated:
		return false
	case anew:
		r.countsAnew(sub, at)
	}
	return true
}

// publishFailed decides what follows from a failed PublishRequest.
func (r *Reader) publishFailed(ctx context.Context, p *publishing, a answer) error {
	err := a.err
	var gone *lost
	switch {
	case errors.Is(err, ua.StatusBadTooManyPublishRequests):
		p.most = max(p.flying, 1)
		return nil
	case errors.Is(err, ua.StatusBadNoSubscription):
		for _, sub := range r.subs {
			if err := r.lose(ctx, sub, "the server says that there is no subscription"); err != nil {
				return err
			}
		}
		return nil
	case errors.Is(err, ua.StatusBadTimeout), errors.Is(err, ua.StatusBadRequestTimeout):
		return nil
	case isStatus(err), errors.As(err, &gone), ctx.Err() != nil:
		return err
	}
	// One message that the library cannot read. Its number will be missing, and if
	// Republish brings nothing better, it is a gap.
	return r.send(ctx, reading.Parcel{Rejects: []reading.Reject{{
		Kind: reading.Malformed, Reason: "undecodable", Detail: "a notification of the server cannot be read: " + err.Error(), Place: r.cfg.Endpoint.String(), IngestNS: a.at.WallNS,
	}}}, false)
}

// heard notes a sign of life.
func (r *Reader) heard(sub *subscription, at reading.Instant) {
	sub.heardNS = at.BootNS
	r.mu.Lock()
	r.status.LastNS = at.WallNS
	r.mu.Unlock()
}

// publishedAt notes until when, by the server's clock, nothing is missing once
// everything in order is handed over.
func (r *Reader) publishedAt(sub *subscription, ns int64) {
	if ns == reading.NoTime {
		return
	}
	sub.publishNS = max(sub.publishNS, ns)
	if !sub.filling && sub.seq.hole() == 0 {
		sub.seenNS = sub.publishNS
	}
}

// drain hands over what is in order.
func (r *Reader) drain(ctx context.Context, sub *subscription) error {
	for m := sub.seq.pop(); m != nil; m = sub.seq.pop() {
		if err := r.deliver(ctx, sub, m); err != nil {
			return err
		}
	}
	if sub.seq.hole() == 0 {
		sub.holeNS = 0
	} else if sub.holeNS == 0 {
		sub.holeNS = r.clk.Now().BootNS
	}
	return nil
}

// wallNS converts a DateTime of the protocol; its null, and what int64
// nanoseconds do not hold, are no time.
func wallNS(t time.Time) int64 {
	if t.IsZero() || t.Year() < 1678 || t.Year() > 2261 {
		return reading.NoTime
	}
	return t.UnixNano()
}
