package uplink

import "encoding/binary"

// This file is the PUBLISH packet (MQTT 5, 3.3), appended to what is to be written:
// it is the only copy of a payload after its encoding.

// contentType says how to read a payload.
const contentType = "application/json"

// Identifiers of properties (MQTT 5, 2.2.2.2).
const (
	propPayloadFormat = 0x01
	propContentType   = 0x03
	propTopicAlias    = 0x23
	propUser          = 0x26
)

const typePublish = 3<<4 | 1<<1 // QoS 1

// appendPublish appends a message as a packet. The topic is empty where alias
// stands for it; an alias of 0 is none.
func appendPublish(b []byte, id uint16, m *Message, props *[8]Property, topic string, alias uint16, retain bool) []byte {
	head := byte(typePublish)
	if retain {
		head |= 1
	}
	own := propertiesSize(props, alias != 0)
	b = append(b, head)
	b = binary.AppendUvarint(b, uint64(2+len(topic)+2+varintSize(own)+own+len(m.Payload)))
	b = appendText(b, topic)
	b = binary.BigEndian.AppendUint16(b, id)
	b = binary.AppendUvarint(b, uint64(own))
	b = append(b, propPayloadFormat, 1, propContentType)
	b = appendText(b, contentType)
	if alias != 0 {
		b = append(b, propTopicAlias)
		b = binary.BigEndian.AppendUint16(b, alias)
	}
	for i := range props {
		b = append(b, propUser)
		b = appendText(b, props[i].Name)
		b = appendText(b, props[i].Value)
	}
	return append(b, m.Payload...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

func propertiesSize(props *[8]Property, alias bool) int {
	n := 2 + 3 + len(contentType) // payload format, content type
	if alias {
		n += 3
	}
	for i := range props {
		n += 5 + len(props[i].Name) + len(props[i].Value)
	}
	return n
}

// packetSize returns the size of the packet of a message, in bytes, sent with its
// topic and an alias for it.
func packetSize(m *Message, props *[8]Property) int {
	n := propertiesSize(props, true)
	n += varintSize(n) + 2 + len(m.Topic) + 2 + len(m.Payload)
	return 1 + varintSize(n) + n
}

// varintSize is the size of a Variable Byte Integer (MQTT 5, 1.5.5), which has the
// form of a uvarint.
func varintSize(n int) int {
	switch {
	case n < 1<<7:
		return 1
	case n < 1<<14:
		return 2
	case n < 1<<21:
		return 3
	}
	return 4
}
