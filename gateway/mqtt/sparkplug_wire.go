package mqtt

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"

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
	compressed bool
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
		case n <= 5:
			if n != 5 || t != protowire.BytesType {
				return errSparkplug
			}
		}
		return nil
	})
	if err == nil && p.compressed {
		err = errors.New("its body is compressed, which is not read; switch the edge node's compression off")
	}
	return p, err
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

// Data types (Sparkplug 3.0, 6.4.16).
const (
	spInt8 = 1 + iota
	spInt16
	spInt32
	spInt64
	spUInt8
	spUInt16
	spUInt32
	spUInt64
	spFloatType
	spDoubleType
	spBoolean
	spString
	spDateTime
	spTextType
	spUUID
	spDataSetType
	spBytesType
	spFile
	spTemplateType
	_ // property set
	_ // property set list
	spInt8Array
	spInt16Array
	spInt32Array
	spInt64Array
	spUInt8Array
	spUInt16Array
	spUInt32Array
	spUInt64Array
	spFloatArray
	spDoubleArray
	spBooleanArray
	spStringArray
	spDateTimeArray
)

// value is the metric's value as its type has it, or why it has none.
func (m *spMetric) value(datatype uint32) (f field, why string) {
	switch {
	case m.null:
		return field{kind: null}, ""
	case m.kind == spDataset || datatype == spDataSetType:
		return f, "is a dataset, a table without a time for each row; publish its columns as metrics"
	case m.kind == spTemplate || datatype == spTemplateType:
		return f, "is a template; publish its members as metrics of their own"
	case datatype == spBytesType || datatype == spFile:
		return f, "is raw bytes, which are no measurement; leave it out"
	}
	switch m.kind {
	case spNone:
		return field{kind: null}, "" // older encoders leave a null's value out and is_null too
	case spInteger:
		return field{numeric, integerText(m.number, datatype)}, ""
	case spFloat:
		return floatField(float64(math.Float32frombits(uint32(m.number)))), ""
	case spDouble:
		return floatField(math.Float64frombits(m.number)), ""
	case spBool:
		return boolField(m.number != 0), ""
	case spText:
		return field{wording, view(m.bytes)}, ""
	}
	return f, "has a value of type " + strconv.FormatUint(uint64(datatype), 10) + ", which is none of a single value"
}

// integerText reads an integer of a type. Signed ones travel as the two's
// complement of their width, or of a larger one: −12 as Int8 is 244, or 4294967284,
// or 2^64−12, by the encoder.
func integerText(u uint64, datatype uint32) string {
	switch datatype {
	case spInt8, spInt8Array:
		return strconv.FormatInt(int64(int8(u)), 10)
	case spInt16, spInt16Array:
		return strconv.FormatInt(int64(int16(u)), 10)
	case spInt32, spInt32Array:
		return strconv.FormatInt(int64(int32(u)), 10)
	case spInt64, spInt64Array, spDateTime, spDateTimeArray:
		return strconv.FormatInt(int64(u), 10)
	case spUInt8:
		u = uint64(uint8(u))
	case spUInt16:
		u = uint64(uint16(u))
	case spUInt32:
		u = uint64(uint32(u))
	case spBoolean:
		u = min(u, 1)
	}
	return strconv.FormatUint(u, 10)
}

func floatField(f float64) field {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return field{wording, "NaN"}
	}
	return field{numeric, strconv.FormatFloat(f, 'g', -1, 64)}
}

func boolField(b bool) field {
	if b {
		return field{kind: yes}
	}
	return field{kind: no}
}

// widths are the bytes of an element of the numeric arrays.
var widths = map[uint32]int{spInt8Array: 1, spUInt8Array: 1, spInt16Array: 2, spUInt16Array: 2, spInt32Array: 4, spUInt32Array: 4,
	spInt64Array: 8, spUInt64Array: 8, spFloatArray: 4, spDoubleArray: 8, spDateTimeArray: 8}

// array is the elements of a metric of an array type (6.4.17), packed little-endian
// into its bytes; false for any other type, and for an array that is not whole.
func (m *spMetric) array(datatype uint32) (values []field, ok bool) {
	if datatype < spInt8Array || datatype > spDateTimeArray || m.kind != spBytes || m.null {
		return nil, false
	}
	switch b := m.bytes; datatype {
	case spBooleanArray:
		if len(b) < 4 || uint64(len(b)-4)*8 < uint64(binary.LittleEndian.Uint32(b)) {
			return nil, false
		}
		for i := range int(binary.LittleEndian.Uint32(b)) {
			values = append(values, boolField(b[4+i/8]>>(7-i%8)&1 != 0))
		}
	case spStringArray:
		for s := view(b); s != ""; {
			text, rest, whole := strings.Cut(s, "\x00")
			if !whole {
				return nil, false
			}
			values, s = append(values, field{wording, text}), rest
		}
	default:
		w := widths[datatype]
		if len(b)%w != 0 {
			return nil, false
		}
		for ; len(b) > 0; b = b[w:] {
			values = append(values, element(b[:w], datatype))
		}
	}
	return values, true
}

func element(b []byte, datatype uint32) field {
	var u uint64
	for i, c := range b {
		u |= uint64(c) << (8 * i)
	}
	switch datatype {
	case spFloatArray:
		return floatField(float64(math.Float32frombits(uint32(u))))
	case spDoubleArray:
		return floatField(math.Float64frombits(u))
	}
	return field{numeric, integerText(u, datatype)}
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
