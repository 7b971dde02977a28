package mqtt

import (
	"errors"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"tidemark/reading"
)

// This file reads and writes sparkplug_b.proto (org.eclipse.tahu.protobuf). Only
// protowire is needed for it: the protobuf runtime with its reflection would make
// the program 2 MB larger, and unpacks what nobody asks for.

// spPayload is a message of Sparkplug B.
type spPayload struct {
	timestamp  uint64 // Unix milliseconds
	hasTime    bool
	seq        uint64
	hasSeq     bool
	metrics    []spMetric
	compressed bool   // as Eclipse Tahu does it: body is another payload, packed
	body       []byte // points into the payload
}

// spMetric is a metric in it. Slices and texts point into the payload.
type spMetric struct {
	name       string
	alias      uint64
	hasAlias   bool
	timestamp  uint64
	hasTime    bool
	datatype   uint32
	historical bool
	null       bool
	properties []byte
	kind       spValue
	number     uint64 // integer, or the bits of a float
	bytes      []byte // text, bytes, dataset, template
}

// spValue is which member of the value's oneof is there.
type spValue uint8

const (
	spNone spValue = iota
	spInteger
	spFloat
	spDouble
	spBool
	spText
	spBytes
	spDataset
	spTemplate
)

var errSparkplug = errors.New("it is no protobuf of this kind")

// fields visits the fields of a protobuf message.
func fields(b []byte, visit func(n protowire.Number, t protowire.Type, number uint64, bytes []byte) error) error {
	for len(b) > 0 {
		n, t, used := protowire.ConsumeTag(b)
		if used < 0 {
			return errSparkplug
		}
		b = b[used:]
		var number uint64
		var bytes []byte
		switch t {
		case protowire.VarintType:
			number, used = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var v uint32
			v, used = protowire.ConsumeFixed32(b)
			number = uint64(v)
		case protowire.Fixed64Type:
			number, used = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			bytes, used = protowire.ConsumeBytes(b)
		default:
			used = protowire.ConsumeFieldValue(n, t, b)
		}
		if used < 0 {
			return errSparkplug
		}
		b = b[used:]
		if err := visit(n, t, number, bytes); err != nil {
			return err
		}
	}
	return nil
}

func parseSparkplug(b []byte) (*spPayload, error) {
	p := &spPayload{}
	err := fields(b, func(n protowire.Number, t protowire.Type, number uint64, bytes []byte) error {
		switch {
		case n == 1 && t == protowire.VarintType:
			p.timestamp, p.hasTime = number, true
		case n == 2 && t == protowire.BytesType:
			m, err := parseMetric(bytes)
			p.metrics = append(p.metrics, m)
			return err
		case n == 3 && t == protowire.VarintType:
			p.seq, p.hasSeq = number%256, true
		case n == 4 && t == protowire.BytesType:
			p.compressed = string(bytes) == "SPBV1.0_COMPRESSED"
		case n == 5 && t == protowire.BytesType: // what Sparkplug itself does not define
			p.body = bytes
		case n <= 5:
			return errSparkplug
		}
		return nil
	})
	return p, err
}

// unpack returns the payload that a compressed one holds.
func (p *spPayload) unpack(u *unpacker) ([]byte, error) {
	for i := range p.metrics {
		if m := &p.metrics[i]; m.name == "algorithm" && m.kind == spText && string(m.bytes) == "GZIP" {
			return u.unGzip(p.body)
		}
	}
	return u.unZlib(p.body) // the default
}

func parseMetric(b []byte) (m spMetric, err error) {
	err = fields(b, func(n protowire.Number, t protowire.Type, number uint64, bytes []byte) error {
		want := protowire.VarintType
		switch n {
		case 1, 8, 9, 15, 16, 17, 18, 19:
			want = protowire.BytesType
		case 12:
			want = protowire.Fixed32Type
		case 13:
			want = protowire.Fixed64Type
		}
		if n <= 19 && t != want {
			return errSparkplug
		}
		switch n {
		case 1:
			m.name = view(bytes)
		case 2:
			m.alias, m.hasAlias = number, true
		case 3:
			m.timestamp, m.hasTime = number, true
		case 4:
			m.datatype = uint32(number)
		case 5:
			m.historical = number != 0
		case 7:
			m.null = number != 0
		case 9:
			m.properties = bytes
		case 10, 11:
			m.kind, m.number = spInteger, number
		case 12:
			m.kind, m.number = spFloat, number
		case 13:
			m.kind, m.number = spDouble, number
		case 14:
			m.kind, m.number = spBool, number
		case 15, 16, 17, 18:
			m.kind, m.bytes = spText+spValue(n-15), bytes
		}
		return nil
	})
	return m, err
}

// bdSeq is the number of the session, in births and deaths.
func (p *spPayload) bdSeq() (uint64, bool) {
	for i := range p.metrics {
		if m := &p.metrics[i]; m.name == "bdSeq" && m.kind == spInteger {
			return m.number, true
		}
	}
	return 0, false
}

// time is the metric's time, else the message's, in milliseconds.
func (m *spMetric) time(p *spPayload) (field, bool) {
	switch {
	case m.hasTime:
		return field{numeric, strconv.FormatUint(m.timestamp, 10)}, true
	case p.hasTime:
		return field{numeric, strconv.FormatUint(p.timestamp, 10)}, true
	}
	return field{}, false
}

// property visits the metric's properties with a single value.
func (m *spMetric) property(visit func(key string, text string, number uint64)) {
	var keys []string
	i := 0
	fields(m.properties, func(n protowire.Number, t protowire.Type, _ uint64, b []byte) error {
		switch {
		case n == 1 && t == protowire.BytesType:
			keys = append(keys, view(b))
		case n == 2 && t == protowire.BytesType:
			var text string
			var number uint64
			fields(b, func(n protowire.Number, t protowire.Type, u uint64, b []byte) error {
				switch {
				case (n == 3 || n == 4) && t == protowire.VarintType:
					number = u
				case n == 8 && t == protowire.BytesType:
					text = view(b)
				}
				return nil
			})
			if i < len(keys) {
				visit(keys[i], text, number)
			}
			i++
		}
		return nil
	})
}

// quality is that of the property Quality (6.4.20): 192 good, 0 bad, 500 stale.
func (m *spMetric) quality() (q reading.Quality) {
	m.property(func(key, _ string, number uint64) {
		if key != "Quality" {
			return
		}
		q = reading.Quality{Level: reading.Uncertain, Status: uint32(number)}
		switch number {
		case 192:
			q.Level = reading.Good
		case 0:
			q.Level = reading.Bad
		}
	})
	return q
}

// unit is the unit that a birth states. Its names are Ignition's.
func (m *spMetric) unit() (unit string) {
	m.property(func(key, text string, _ uint64) {
		if (key == "engUnit" || key == "Engineering Units") && len(text) <= maxName {
			unit = text
		}
	})
	return unit
}

// AppendRebirth appends the payload of a request to be born again (6.4.21).
func AppendRebirth(b []byte, unixMS uint64) []byte {
	var m []byte
	m = protowire.AppendString(protowire.AppendTag(m, 1, protowire.BytesType), "Node Control/Rebirth")
	m = protowire.AppendVarint(protowire.AppendTag(m, 3, protowire.VarintType), unixMS)
	m = protowire.AppendVarint(protowire.AppendTag(m, 4, protowire.VarintType), spBoolean)
	m = protowire.AppendVarint(protowire.AppendTag(m, 14, protowire.VarintType), 1)
	b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), unixMS)
	return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), m)
}
