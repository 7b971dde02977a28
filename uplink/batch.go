package uplink

import "tidemark/reading"

// batch gathers records of one lane into one message: for brokers that take few
// messages at a time.
type batch struct {
	cargo
	msg      Message // its payload is open
	replayed bool
	id       idHash
	overhead int // bytes of the packet without the payload
}

// batchRoom is what a batch may hold at most, whatever the broker takes.
const batchRoom = 256 << 10

// begin makes an empty batch.
func (b *batch) begin(c *Encoder, publishedNS int64) {
	b.msg = Message{Topic: c.topic(typeBatch), Payload: append(b.msg.Payload[:0], '['), generation: c.Generation}
	b.msg.head = head{kind: typeBatch}
	b.count, b.replayed, b.id = 0, false, c.newID(b.id.b[:0], typeBatch)
	props := b.msg.Properties(publishedNS, false)
	b.overhead = packetSize(&b.msg, &props) + 16 // lengths, published_at and clock_state may grow
}

// holds reports whether the batch has room for one more record.
func (b *batch) holds(m *Message, most int, maxPacket uint32) bool {
	room := batchRoom
	if maxPacket > 0 {
		room = min(room, int(maxPacket)-b.overhead)
	}
	return b.count < most && len(b.msg.Payload)+len(m.Payload)+2 <= room
}

func (b *batch) add(m *Message, r *Record, replayed bool) {
	if b.count > 0 {
		b.msg.Payload = append(b.msg.Payload, ',')
	}
	b.msg.Payload = append(b.msg.Payload, m.Payload...)
	b.id.str(string(m.head.updateID[:]))
	switch {
	case b.count == 0:
		b.msg.head.clock = m.head.clock
	case b.msg.head.clock != m.head.clock:
		b.msg.head.clock = reading.ClockUnknown // each record says its own
	}
	if b.count == 0 {
		b.first = r.place()
	}
	b.last, b.count, b.replayed = *r, b.count+1, b.replayed || replayed
}

// end makes the batch a message.
func (b *batch) end() {
	b.msg.Payload = append(b.msg.Payload, ']')
	b.msg.head.updateID = b.id.sum()
}
