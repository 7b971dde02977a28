package opcua

import (
	"context"
	"fmt"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// delivery is a message that the server has not had our acknowledgement of.
type delivery struct {
	token uint64 // of the last parcel with some of it
	sub   uint32
	seq   uint32
}

// stallAt is how many unacknowledged messages are worth a commit of their own:
// servers need not keep more than a few for Republish.
const stallAt = 16

// spillAt is how many readings make a parcel, where one message brings more.
const spillAt = 1024

// deliver hands a message over to the gateway.
func (r *Reader) deliver(ctx context.Context, sub *subscription, m *message) error {
	var flags reading.Delivery
	if m.again {
		flags = reading.Redelivered
	}
	var p reading.Parcel
	var over string
	for _, d := range m.data {
		switch n := d.Value.(type) {
		case *ua.DataChangeNotification:
			if p.Readings == nil {
				p.Readings = make([]reading.Reading, 0, min(len(n.MonitoredItems), spillAt))
			}
			for _, v := range n.MonitoredItems {
				if int(v.ClientHandle) < len(r.plan) {
					r.take(sub, r.plan[v.ClientHandle], v.Value, m.at, flags, &p)
				} else {
					p.Rejects = append(p.Rejects, sub.reject(m.at, "unknown_item",
						fmt.Sprintf("the server sends a value under the client handle %d, which no node was given; nobody can tell what it is of", v.ClientHandle)))
				}
				if len(p.Readings)+len(p.Rejects) >= spillAt {
					if err := r.send(ctx, p, false); err != nil {
						return err
					}
					p = reading.Parcel{}
				}
			}
		case *ua.StatusChangeNotification:
			// GoodSubscriptionTransferred may tell of our own transfer; should somebody
			// else have taken it, its silence will tell.
			if severity(n.Status) == bad {
				over = "the server ended it: " + statusName(n.Status)
			}
		default:
			p.Rejects = append(p.Rejects, sub.reject(m.at, "unknown_notification",
				fmt.Sprintf("the server sends a notification of type %v, which nobody asked for, in place of values", d.TypeID)))
		}
	}
	sub.delivered = m.seq
	r.publishedAt(sub, m.publishNS)
	r.count(m)
	if err := r.send(ctx, p, true); err != nil {
		return err
	}
	r.open = append(r.open, delivery{r.token, sub.id, m.seq})
	if len(r.open) >= stallAt && r.cfg.OnStall != nil {
		r.cfg.OnStall()
	}
	if over != "" {
		return r.lose(ctx, sub, over)
	}
	return nil
}

// reject is something of a subscription that came and becomes no reading.
func (sub *subscription) reject(at reading.Instant, reason, detail string) reading.Reject {
	return reading.Reject{Kind: reading.Malformed, Reason: reason, Detail: detail, Place: fmt.Sprintf("subscription %d", sub.id), IngestNS: at.WallNS}
}

// take makes readings of one value.
func (r *Reader) take(sub *subscription, m *monitored, dv *ua.DataValue, at reading.Instant, flags reading.Delivery, p *reading.Parcel) {
	if m.fresh {
		flags |= reading.Initial
		m.fresh = false
	}
	from, parts := len(p.Readings), len(m.parts)
	m.item.take(dv, at, flags, p)
	if len(m.parts) != parts {
		r.points.wanted.Store(true)
	}
	if overflowed(dv) {
		sub.overflowed = true
		// What was dropped before the end of a stretch that history is to fill is missing
		// only if history does not have it.
		if t := wallNS(dv.SourceTimestamp); t == reading.NoTime || t >= sub.coveredNS {
			r.overflow.note(m, dv)
		}
	}
	made := p.Readings[from:]
	if len(made) == 0 {
		return
	}
	now := said{made[0].Source.NS, made[0].Quality.Status, made[0].Value}
	if m.echo && m.saidBefore(now, at) {
		for i := range made {
			made[i].Delivery |= reading.Initial
		}
	}
	m.echo = m.echo && flags.Has(reading.Redelivered)
	m.last = now
	r.lag.note(made, at)
}

// saidBefore reports whether what an item says is what it said last, not measured
// since. Of what it said to the process before this one nothing is known: there, a
// time so far back that it is no device's lag tells.
func (m *monitored) saidBefore(now said, at reading.Instant) bool {
	if now.sourceNS == reading.NoTime {
		return false
	}
	return now == m.last || m.last == said{} && at.WallNS-now.sourceNS > lagMost
}

// send hands a parcel over. With whole, everything that came so far is in it and
// before it, so that it carries where we stand.
func (r *Reader) send(ctx context.Context, p reading.Parcel, whole bool) error {
	begin := r.clk.Now()
	r.token++
	p.Input, p.Source, p.Token = r.cfg.Input, r, r.token
	if whole {
		p.Gaps = append(append(p.Gaps, r.gaps...), r.overflow.due(begin)...)
		r.gaps = nil
		for i := range p.Gaps {
			if g := &p.Gaps[i]; g.FromNS == 0 { // nothing was seen before it
				g.FromNS = reading.NoTime
			}
		}
		p.Marks = append(p.Marks, r.evidence(begin, len(p.Readings))...)
		p.Memory = r.position().encode()
	}
	r.mu.Lock()
	r.status.Readings += uint64(len(p.Readings))
	r.status.Gaps += uint64(len(p.Gaps))
	r.mu.Unlock()
	if err := r.sink.Deliver(ctx, p); err != nil {
		return &sinkError{err}
	}
	return nil
}

func (r *Reader) count(m *message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Messages++
	if m.again {
		r.status.Redelivered++
	}
}

// position is where we stand once everything handed over is on disk.
func (r *Reader) position() *position {
	p := &position{startNS: r.startNS, plan: r.planSum, subs: make([]subPosition, len(r.subs))}
	for i, sub := range r.subs {
		p.subs[i] = subPosition{id: sub.id, seq: sub.delivered, seenNS: sub.seenNS, filling: sub.filling, shallow: sub.shallow, publishing: sub.pace.publishing, keepAlive: sub.pace.keepAlive}
	}
	for _, m := range r.plan {
		if !m.watched {
			p.plan = 0 // whoever takes the subscriptions over could not know which
			break
		}
	}
	return p
}

// acknowledge turns what is on disk into acknowledgements, which go out with the
// next request.
func (r *Reader) acknowledge() {
	safe := r.committed.Load()
	n := 0
	for ; n < len(r.open) && r.open[n].token <= safe; n++ {
		if d := r.open[n]; r.byID[d.sub] != nil {
			r.acks = append(r.acks, &ua.SubscriptionAcknowledgement{SubscriptionID: d.sub, SequenceNumber: d.seq})
		}
	}
	r.open = append(r.open[:0], r.open[n:]...)
	r.mu.Lock()
	r.status.Outstanding = len(r.open)
	r.mu.Unlock()
}

// overflowed reports whether the server's queue dropped values before this one
// (OPC UA Part 4 §7.39: the overflow bit counts only with the info type of a data
// value).
func overflowed(dv *ua.DataValue) bool {
	const dataValueOverflow = 0x480
	return uint32(dv.Status)&dataValueOverflow == dataValueOverflow
}

// overflow gathers what the server's queues dropped, for one record a minute.
type overflow struct {
	values uint64 // since the last record
	place  string
	fromNS int64
	toNS   int64
	saidNS int64 // boot time of the last record
	said   bool
}

const overflowEvery = int64(60e9)

func (o *overflow) note(m *monitored, dv *ua.DataValue) {
	if o.values == 0 {
		o.place, o.fromNS = m.place, m.last.sourceNS
	}
	o.values++
	o.toNS = wallNS(dv.SourceTimestamp)
}

// due returns the record, if there is something to say and enough time since the
// last.
func (o *overflow) due(now reading.Instant) []reading.Gap {
	if o.values == 0 || o.said && now.BootNS-o.saidNS < overflowEvery {
		return nil
	}
	g := reading.Gap{
		Reason: "overflow", Place: o.place, FromNS: o.fromNS, ToNS: o.toNS, AtNS: now.WallNS,
		Detail: fmt.Sprintf("the server's queue dropped values %d times, the first at this node: raise sampling, lower publishing, or give the node a deadband", o.values),
	}
	*o = overflow{saidNS: now.BootNS, said: true}
	return []reading.Gap{g}
}
