package mqtt

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

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
