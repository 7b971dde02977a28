package uplink

import (
	"context"
	"fmt"
	"time"

	"tidemark/internal/broker"
)

// This file is how a pass sends one record and takes the answer to it.

// sendRecord renders a record and sends it as soon as the window has room, or puts
// it into the batch.
func (p *pass) sendRecord(run context.Context, r *Record) error {
	if p.suspects.probation(r) {
		if err := p.prove(run); err != nil {
			return err
		}
	}
	again := r.Seq <= p.high[r.lane]
	p.high[r.lane] = max(p.high[r.lane], r.Seq)
	if again {
		p.counters.resent.Add(1)
	}
	if fault := p.render(r); fault != "" {
		return p.cannotSend(run, r, fault)
	}
	if p.batches() && !p.msg.Retain {
		return p.toBatch(run, r, r.Waited || again)
	}
	if err := p.flushBatch(run); err != nil {
		return err
	}
	return p.publish(run, r, r.Waited || again)
}

// publish sends p.msg, which was made of r, as a message of its own.
func (p *pass) publish(run context.Context, r *Record, replayed bool) error {
	now, _ := p.cfg.Clock()
	props := p.msg.Properties(now, replayed)
	if n, most := packetSize(&p.msg, &props), p.conn.limits().maxPacket; most > 0 && n > int(most) {
		return p.cannotSend(run, r, fmt.Sprintf("it takes a packet of %d bytes, the broker allows %d: raise its maximum packet size", n, most))
	}
	return p.transmit(run, &p.msg, &props, alone(r))
}

// transmit sends a message as soon as the window has room.
func (p *pass) transmit(run context.Context, m *Message, props *[8]Property, c cargo) error {
	id, err := p.admit(run, c)
	if err != nil {
		return err
	}
	if err := p.conn.send(id, m, props); err != nil {
		return p.lost(err)
	}
	p.counters.sent.Add(uint64(c.count))
	return nil
}

// cannotSend sets a record aside that no broker, or not this one, will ever take.
func (p *pass) cannotSend(run context.Context, r *Record, fault string) error {
	if err := p.flushBatch(run); err != nil {
		return err
	}
	p.setAside(*r, p.msg.Topic, fault)
	p.settle(p.window.pass(r.lane, r.Seq))
	return nil
}

// batches reports whether records are gathered.
func (p *pass) batches() bool { return p.cfg.Batch > 1 && !p.single }

// toBatch puts p.msg, which was made of r, into the batch, and sends that when it
// is full.
func (p *pass) toBatch(run context.Context, r *Record, replayed bool) error {
	b, most := &p.batch, p.conn.limits().maxPacket
	if b.count > 0 && !b.holds(&p.msg, p.cfg.Batch, most) {
		if err := p.flushBatch(run); err != nil {
			return err
		}
	}
	if b.count == 0 {
		now, _ := p.cfg.Clock()
		b.begin(&p.enc, now)
		if !b.holds(&p.msg, p.cfg.Batch, most) {
			return p.publish(run, r, replayed)
		}
	}
	b.add(&p.msg, r, replayed)
	return nil
}

// flushBatch sends what was gathered.
func (p *pass) flushBatch(run context.Context) error {
	b := &p.batch
	if b.count == 0 {
		return nil
	}
	b.end()
	now, _ := p.cfg.Clock()
	c := b.cargo
	b.count = 0
	props := b.msg.Properties(now, b.replayed)
	return p.transmit(run, &b.msg, &props, c)
}

// prove shows that the connection holds without the record that may have ended
// those before it.
func (p *pass) prove(run context.Context) error {
	if err := p.drain(run); err != nil {
		return err
	}
	pause(run, 2*p.cfg.BackoffMin)
	return context.Cause(run)
}

// render makes p.msg of a record, or says why it can never be sent.
func (p *pass) render(r *Record) (fault string) {
	p.msg.Topic = ""
	if err := p.enc.Encode(&p.msg, *r); err != nil {
		return "it cannot be rendered: " + err.Error()
	}
	if n := len(p.msg.Topic); n > maxTopic {
		return fmt.Sprintf("its topic has %d bytes, MQTT allows %d", n, maxTopic)
	}
	if p.cfg.RetainFeatures && p.msg.head.kind == typeFeature {
		p.msg.Retain = p.newest.retains(&p.msg)
	}
	return ""
}

// admit enters a message into the window, waiting for room.
func (p *pass) admit(run context.Context, c cargo) (id uint16, err error) {
	for {
		if run.Err() != nil {
			return 0, context.Cause(run)
		}
		id, ok := p.window.add(c)
		if ok {
			return id, nil
		}
		if err := p.await(run); err != nil {
			return 0, err
		}
	}
}

// drain waits for an answer to everything that was sent.
func (p *pass) drain(run context.Context) error {
	for {
		if open, _ := p.window.unanswered(); open == 0 {
			return nil
		}
		if err := p.await(run); err != nil {
			return err
		}
	}
}

// await waits for an answer.
func (p *pass) await(run context.Context) error {
	if err := p.conn.flush(); err != nil {
		return p.lost(err)
	}
	select {
	case <-p.window.wake:
		return nil
	case <-run.Done():
		return context.Cause(run)
	}
}

// lost returns why a connection that cannot be written to was lost: what the
// broker said, if it said anything.
func (p *pass) lost(err error) error {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-p.conn.done():
		return p.conn.err()
	case <-t.C:
		return err
	}
}

// answered takes the broker's answer to a packet.
func (p *pass) answered(id uint16, code broker.Code) {
	c, ok := p.window.lookup(id)
	if !ok {
		return
	}
	now, _ := p.cfg.Clock()
	p.counters.lastAck.Store(now)
	v := judge(code)
	switch {
	case c.count == 0:
		if v != delivered {
			p.log.Warn().Str("topic", p.enc.StatusTopic()).Str("reason", code.String()).Msg("the broker refuses the status topic")
		}
	case v == setAside && c.count == 1:
		p.setAside(c.last, "", "the broker refuses it: "+code.String())
	case v != delivered:
		p.window.answer(id, true)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.interrupt != nil {
			p.interrupt(&refusedError{c, code})
		}
		return
	default:
		p.counters.acked.Add(uint64(c.count))
	}
	p.settle(p.window.answer(id, false))
}

// deliver passes on what is delivered, and reports whether anything is.
func (p *pass) deliver(m marks) bool {
	for lane, seq := range m {
		if seq > 0 {
			p.src.Delivered(Lane(lane), seq)
		}
	}
	return m != marks{}
}

// settle is deliver for what the broker took, or never will.
func (p *pass) settle(m marks) {
	if !p.deliver(m) {
		return
	}
	p.progress.Store(true)
	if p.setResting(false) {
		p.enter(StateOnline, "")
	}
}
