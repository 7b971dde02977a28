package uplink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"tidemark/reading"
	"tidemark/windowing"
)

// Kinds of outbox records. Codes are stored: append, never renumber.
const (
	KindEmission   byte = 1 // what the engine said, in its canonical binary form
	KindEvent      byte = 2 // an Event's Record
	KindDefinition byte = 3 // a DefinitionRecord; retained by the broker
	KindReading    byte = 4 // a reading of the journal, in Record.Reading; not stored
)

// Record is something to be published.
type Record struct {
	Seq  uint64 // position in its lane; grows, may have gaps
	Kind byte
	// Waited says that the record was there before the connection was.
	Waited bool
	// Generation is the one that the record was made under; 0 is the encoder's.
	Generation uint64
	Data       []byte           // belongs to whoever asked for it
	Reading    *reading.Reading // of KindReading, instead of Data

	lane Lane
}

// Message is a record as it is published.
type Message struct {
	Topic   string
	Payload []byte // one JSON object
	Retain  bool

	head       head
	generation uint64
	window     span // of a feature
	memo       memo
}

// Property is an MQTT user property.
type Property struct{ Name, Value string }

// Properties returns the message's user properties. publishedNS is the wall time
// of this sending; replayed says that the record may have been sent before, or
// waited in the outbox while it could not be.
func (m *Message) Properties(publishedNS int64, replayed bool) [8]Property {
	published := reading.AppendJSONTime(make([]byte, 0, 40), publishedNS)
	return [8]Property{
		{"type", m.head.kind},
		{"schema", strconv.Itoa(Schema)},
		{"generation", strconv.FormatUint(m.generation, 10)},
		{"revision", strconv.FormatUint(uint64(m.head.revision), 10)},
		{"update_id", string(m.head.updateID[:])},
		{"published_at", string(bytes.Trim(published, `"`))},
		{"replayed", strconv.FormatBool(replayed)},
		{"clock_state", m.head.clock.String()},
	}
}

// Encode renders an outbox record into m, whose Payload's space it uses again. An
// error means that the record cannot be read; it will never be.
func (c *Encoder) Encode(m *Message, r Record) error {
	if r.Generation != 0 && r.Generation != c.Generation {
		made := *c
		made.Generation = r.Generation
		c = &made
	}
	m.generation, m.Retain, m.Payload = c.Generation, false, m.Payload[:0]
	switch r.Kind {
	case KindEmission:
		e, rest, err := m.memo.names.DecodeEmission(r.Data)
		if err != nil {
			return fmt.Errorf("cannot read emission: %w", err)
		}
		if len(rest) > 0 {
			return fmt.Errorf("cannot read emission: %d bytes are left over", len(rest))
		}
		if c.Finals && e.Final {
			e.Kind = windowing.EmitFeature
		}
		m.Payload, m.head = c.appendEmission(m.Payload, &e, &m.memo)
		m.Topic, m.window = m.memo.topic(c, &e), span{e.StartMS, e.EndMS}
		return nil
	case KindEvent:
		return c.event(m, r.Data)
	case KindDefinition:
		return c.definition(m, r.Data)
	case KindReading:
		if r.Reading == nil {
			return errors.New("cannot read a reading: there is none")
		}
		c.reading(m, r.Reading)
		return nil
	}
	return fmt.Errorf("cannot read outbox record of kind %d: written by a later version", r.Kind)
}

// stored is what must be known of a record that was stored as a JSON object.
type stored struct {
	Kind    string
	Feature string
	Version int
	Clock   struct{ State string }
}

func (c *Encoder) event(m *Message, data []byte) error {
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("cannot read event: %w", err)
	}
	if s.Kind == "" {
		return errors.New("cannot read event: it has no kind")
	}
	m.Topic = c.topic(typeEvent, s.Kind)
	c.embed(m, typeEvent, data, &s)
	return nil
}

func (c *Encoder) definition(m *Message, data []byte) error {
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("cannot read definition: %w", err)
	}
	if s.Feature == "" {
		return errors.New("cannot read definition: it names no feature")
	}
	m.Topic = c.definitionTopic(s.Feature, s.Version)
	m.Retain = true
	c.embed(m, "definition", data, &s)
	return nil
}

// embed puts the head of a record before the members of the stored object.
func (c *Encoder) embed(m *Message, kind string, data []byte, s *stored) {
	h := c.newID(nil, kind)
	h.str(string(data))
	m.head = head{kind: kind, updateID: h.sum(), clock: reading.ParseClockState(s.Clock.State)}
	o := object{append(m.Payload, '{')}
	c.head(&o, &m.head)
	o.b = append(o.b, ',')
	m.Payload = append(o.b, data[bytes.IndexByte(data, '{')+1:]...)
}

// statusMessage says on the status topic whether the gateway is connected.
// atNS is NoTime in a will: nobody knows when it will be left.
func (c *Encoder) statusMessage(state, reason string, atNS int64, clock reading.ClockState) *Message {
	m := &Message{Topic: c.StatusTopic(), Retain: true, generation: c.Generation}
	h := c.newID(nil, "status")
	h.str(state)
	h.str(reason)
	h.num(uint64(atNS))
	m.head = head{kind: "status", updateID: h.sum(), clock: clock}
	o := object{[]byte{'{'}}
	c.head(&o, &m.head)
	o.str("state", state)
	o.text("reason", reason)
	o.time("at", atNS)
	o.clockState(clock)
	o.end()
	m.Payload = o.b
	return m
}
