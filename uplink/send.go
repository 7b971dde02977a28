package uplink

import (
	"context"
	"fmt"
	"time"

	"tidemark/internal/broker"
)

// This file is how a pass sends one record and takes the answer to it.

// sendRecord renders a record and sends it as soon as the window has room.
func (p *pass) sendRecord(run context.Context, r Record, backlog bool) error {
	if p.suspects.probation(r.Seq) {
		if err := p.prove(run); err != nil {
			return err
		}
	}
	id, err := p.admit(run, r)
	if err != nil {
		return err
	}
	again := r.Seq <= p.high
	p.high = max(p.high, r.Seq)
	props, fault := p.render(r, backlog || again)
	if fault != "" {
		p.setAside(r, p.msg.Topic, fault)
		p.settle(p.window.answer(id, false))
		return nil
	}
	if err := p.conn.send(id, &p.msg, props); err != nil {
		return p.lost(err)
	}
	p.counters.sent.Add(1)
	if again {
		p.counters.resent.Add(1)
	}
	return nil
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
func (p *pass) render(r Record, replayed bool) (props [8]Property, fault string) {
	p.msg.Topic = ""
	if err := p.enc.Encode(&p.msg, r); err != nil {
		return props, "it cannot be rendered: " + err.Error()
	}
	if n := len(p.msg.Topic); n > maxTopic {
		return props, fmt.Sprintf("its topic has %d bytes, MQTT allows %d", n, maxTopic)
	}
	now, _ := p.cfg.Clock()
	props = p.msg.Properties(now, replayed)
	if n, most := packetSize(&p.msg, &props), p.conn.limits().maxPacket; most > 0 && n > int(most) {
		return props, fmt.Sprintf("it takes a packet of %d bytes, the broker allows %d: raise its maximum packet size", n, most)
	}
	return props, ""
}

// admit enters a record into the window, waiting for room.
func (p *pass) admit(run context.Context, r Record) (id uint16, err error) {
	for {
		if run.Err() != nil {
			return 0, context.Cause(run)
		}
		id, ok := p.window.add(r)
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
	r, ok := p.window.lookup(id)
	if !ok {
		return
	}
	now, _ := p.cfg.Clock()
	p.counters.lastAck.Store(now)
	v := judge(code)
	switch {
	case r.Seq == 0:
		if v != delivered {
			p.log.Warn().Str("topic", p.enc.StatusTopic()).Str("reason", code.String()).Msg("the broker refuses the status topic")
		}
	case v == setAside:
		p.setAside(r, "", "the broker refuses it: "+code.String())
	case v != delivered:
		p.window.answer(id, true)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.interrupt != nil {
			p.interrupt(&refusedError{r, code})
		}
		return
	default:
		p.counters.acked.Add(1)
	}
	p.settle(p.window.answer(id, false))
}

// settle passes the delivered mark on.
func (p *pass) settle(mark uint64) {
	if mark == 0 {
		return
	}
	p.src.Delivered(mark)
	p.counters.mark.Store(mark)
	p.progress.Store(true)
	if p.setResting(false) {
		p.enter(StateOnline, "")
	}
}
