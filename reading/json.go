package reading

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendJSONFloat appends f in its shortest form that reads back as f, and null
// if f is NaN or infinite: JSON has no such numbers.
func AppendJSONFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

// AppendJSONString appends s as a JSON string. Bytes that are no UTF-8 become
// U+FFFD.
func AppendJSONString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s { // an invalid byte ranges as U+FFFD
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < 0x20 || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// AppendJSONTime appends Unix nanoseconds as a quoted RFC 3339 UTC time with as
// many fractional digits as needed, and null for NoTime.
func AppendJSONTime(b []byte, ns int64) []byte {
	if ns == NoTime {
		return append(b, "null"...)
	}
	return appendRFC3339(b, time.Unix(0, ns))
}

// AppendJSONTimeMS is AppendJSONTime for Unix milliseconds; it reaches beyond
// the range of int64 nanoseconds.
func AppendJSONTimeMS(b []byte, ms int64) []byte {
	if ms == NoTime {
		return append(b, "null"...)
	}
	return appendRFC3339(b, time.UnixMilli(ms))
}

func appendRFC3339(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}
