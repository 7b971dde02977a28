package mqtt

import (
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tidemark/reading"
)

// valueRule is how the value of one sensor is read.
type valueRule struct {
	kind          Type
	scaled        bool // value = raw·scale + offset
	scale, offset float64
	ranged        bool
	low, high     float64
}

func newValueRule(s Sensor) valueRule {
	r := valueRule{kind: s.Type, scale: s.Scale, offset: s.Offset}
	if r.scale == 0 {
		r.scale = 1
	}
	r.scaled = r.scale != 1 || r.offset != 0
	if s.Range != nil {
		r.ranged, r.low, r.high = true, s.Range[0], s.Range[1]
	}
	if r.kind == AnyType && (r.scaled || r.ranged) {
		r.kind = Number // a scale or a range says so
	}
	return r
}

// fault is why a value cannot be read; the empty code is none.
type fault struct{ code, hint string }

var (
	notANumber = fault{"not_a_number", "send a JSON number, or declare type: text or bool"}
	notABool   = fault{"not_a_bool", "send true, false, 0 or 1, or declare another type"}
	notAText   = fault{"not_a_text", "send a JSON string, or declare another type"}
	notAValue  = fault{"not_a_value", "an object or array holds no value: name the field with value.path or sensors.*.path"}
)

// read returns the value and its level. What the source declares to be no number
// (null, NaN, an infinity, a number beyond float64) is a missing value of bad
// quality; what is of another type is a fault.
func (r *valueRule) read(v gjson.Result) (reading.Value, reading.Level, fault) {
	switch {
	case v.Type == gjson.Null:
		return reading.Value{}, reading.Bad, fault{}
	case v.Type == gjson.JSON:
		return reading.Value{}, reading.Bad, notAValue
	}
	switch r.kind {
	case Number:
		return r.number(v)
	case Bool:
		return boolean(v)
	case Text:
		if v.Type != gjson.String {
			return reading.Value{}, reading.Bad, notAText
		}
		return reading.TextValue(strings.Clone(v.Str)), reading.Good, fault{}
	}
	switch {
	case v.Type == gjson.Number || notFinite(v.Str):
		return r.number(v)
	case v.Type == gjson.String:
		return reading.TextValue(strings.Clone(v.Str)), reading.Good, fault{}
	}
	return reading.BoolValue(v.Type == gjson.True), reading.Good, fault{}
}

func boolean(v gjson.Result) (reading.Value, reading.Level, fault) {
	switch {
	case v.Type == gjson.True, v.Raw == "1", v.Type == gjson.String && strings.EqualFold(v.Str, "true"):
		return reading.BoolValue(true), reading.Good, fault{}
	case v.Type == gjson.False, v.Raw == "0", v.Type == gjson.String && strings.EqualFold(v.Str, "false"):
		return reading.BoolValue(false), reading.Good, fault{}
	}
	return reading.Value{}, reading.Bad, notABool
}

// number reads a JSON number, or a text that is written like one.
func (r *valueRule) number(v gjson.Result) (reading.Value, reading.Level, fault) {
	raw := v.Raw
	switch v.Type {
	case gjson.String:
		if raw = v.Str; notFinite(raw) {
			return reading.Value{}, reading.Bad, fault{}
		}
	case gjson.Number:
	default:
		return reading.Value{}, reading.Bad, notANumber
	}
	value, ok := parseNumber(raw, v.Num, v.Type == gjson.Number)
	if !ok {
		return reading.Value{}, reading.Bad, notANumber
	}
	if r.scaled {
		value = reading.FloatValue(value.Float()*r.scale + r.offset)
	}
	switch f := value.Float(); {
	case value.Kind() == reading.Missing, r.ranged && (f < r.low || f > r.high):
		return value, reading.Bad, fault{}
	}
	return value, reading.Good, fault{}
}

// parseNumber reads a number, exactly if it is an integer of int64 or uint64. A
// number that float64 cannot hold is missing. num is raw's value as gjson has it,
// if parsed.
func parseNumber(raw string, num float64, parsed bool) (reading.Value, bool) {
	d, ok := parseDecimal(raw)
	if !ok {
		return reading.Value{}, false
	}
	if d.exp == 0 && !d.full && strings.IndexByte(raw, '.') < 0 {
		switch {
		case !d.neg:
			return reading.UintValue(d.digits), true
		case d.digits <= 1<<63:
			return reading.IntValue(-int64(d.digits)), true
		}
	}
	if !parsed {
		num, _ = strconv.ParseFloat(raw, 64)
	}
	if num == 0 && d.digits != 0 || math.IsInf(num, 0) {
		num, _ = strconv.ParseFloat(raw, 64) // gjson answers 0 where ParseFloat fails
	}
	return reading.FloatValue(num), true
}

// notFinite reports whether s is a spelling of NaN or an infinity.
func notFinite(s string) bool {
	if len(s) < 3 || len(s) > len("-Infinity") {
		return false
	}
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	return strings.EqualFold(s, "nan") || strings.EqualFold(s, "inf") || strings.EqualFold(s, "infinity")
}

// levelOf reads a quality. A source that says nothing has said nothing against
// its values; a value that is not known is uncertain.
func levelOf(v gjson.Result, known map[string]reading.Level) reading.Quality {
	q := reading.Quality{Level: reading.Uncertain}
	word := v.Raw
	switch v.Type {
	case gjson.Null:
		q.Level = reading.Good
		return q
	case gjson.String:
		word = v.Str
	case gjson.Number:
		if n, err := strconv.ParseUint(word, 10, 32); err == nil {
			q.Status = uint32(n)
		}
	}
	if known != nil {
		if level, ok := known[word]; ok {
			q.Level = level
		}
		return q
	}
	switch {
	case v.Type == gjson.True || strings.EqualFold(word, "good"):
		q.Level = reading.Good
	case v.Type == gjson.False || strings.EqualFold(word, "bad"):
		q.Level = reading.Bad
	}
	return q
}

func worse(a, b reading.Level) reading.Level { return max(a, b) }
