package mqtt

import (
	"strconv"
	"strings"

	"tidemark/reading"
)

// valueRule is how the value of one sensor is read.
type valueRule struct {
	kind          Type
	meanings      map[string]reading.Value // of values as sent
	scaled        bool                     // value = raw·scale + offset
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
	if len(s.Map) > 0 {
		r.meanings = map[string]reading.Value{}
		for raw, meaning := range s.Map {
			r.meanings[raw] = r.meaning(meaning)
		}
	}
	return r
}

// meaning is a value as a configuration writes it: of the declared type, or of the
// one that it looks like.
func (r *valueRule) meaning(text string) reading.Value {
	f := scalar(text)
	if r.kind == Text || f.kind == null {
		f = field{wording, text}
	}
	plain := valueRule{kind: r.kind}
	v, _, _ := plain.read(f)
	return v
}

// fault is why a value cannot be read; the empty code is none.
type fault struct{ code, hint string }

var (
	notANumber = fault{"not_a_number", "send a number, give a map, or declare type: text or bool"}
	notABool   = fault{"not_a_bool", "send true, false, 0 or 1, give a map, or declare another type"}
	notAText   = fault{"not_a_text", "send a text, or declare another type"}
	notAValue  = fault{"not_a_value", "an object or array holds no value: name the field with value.path or sensors.*.path, or declare a waveform"}
)

// read returns the value and its level. What the source declares to be no number
// (null, NaN, an infinity, a number beyond float64) is a missing value of bad
// quality; what is of another type is a fault.
func (r *valueRule) read(v field) (reading.Value, reading.Level, fault) {
	if r.meanings != nil {
		if word, ok := v.word(); ok {
			if meaning, ok := r.meanings[word]; ok {
				return meaning, reading.Good, fault{}
			}
		}
	}
	switch v.kind {
	case null:
		return reading.Value{}, reading.Bad, fault{}
	case nested:
		return reading.Value{}, reading.Bad, notAValue
	}
	switch r.kind {
	case Number:
		return r.number(v)
	case Bool:
		return boolean(v)
	case Text:
		if v.kind != wording {
			return reading.Value{}, reading.Bad, notAText
		}
		return reading.TextValue(strings.Clone(v.text)), reading.Good, fault{}
	}
	switch {
	case v.kind == numeric || v.kind == wording && notFinite(v.text):
		return r.number(v)
	case v.kind == wording:
		return reading.TextValue(strings.Clone(v.text)), reading.Good, fault{}
	}
	return reading.BoolValue(v.kind == yes), reading.Good, fault{}
}

func boolean(v field) (reading.Value, reading.Level, fault) {
	switch {
	case v.kind == yes, v.kind == numeric && v.text == "1", v.kind == wording && strings.EqualFold(v.text, "true"):
		return reading.BoolValue(true), reading.Good, fault{}
	case v.kind == no, v.kind == numeric && v.text == "0", v.kind == wording && strings.EqualFold(v.text, "false"):
		return reading.BoolValue(false), reading.Good, fault{}
	}
	return reading.Value{}, reading.Bad, notABool
}

// number reads a number, or a text that is written like one.
func (r *valueRule) number(v field) (reading.Value, reading.Level, fault) {
	switch v.kind {
	case wording:
		if notFinite(v.text) {
			return reading.Value{}, reading.Bad, fault{}
		}
	case numeric:
	default:
		return reading.Value{}, reading.Bad, notANumber
	}
	value, ok := parseNumber(v.text)
	if !ok {
		return reading.Value{}, reading.Bad, notANumber
	}
	if r.scaled {
		value = reading.FloatValue(value.Float()*r.scale + r.offset)
	}
	if value.Kind() == reading.Missing {
		return value, reading.Bad, fault{}
	}
	if r.ranged {
		if f := value.Float(); f < r.low || f > r.high {
			return value, reading.Bad, fault{}
		}
	}
	return value, reading.Good, fault{}
}

// exactPowers are the powers of ten that float64 holds exactly.
var exactPowers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// parseNumber reads a number, exactly if it is an integer of int64 or uint64. A
// number that float64 cannot hold is missing.
func parseNumber(raw string) (reading.Value, bool) {
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
	// Two exact operands and one division or product round once, as they should
	// (W. Clinger, How to read floating point numbers accurately, 1990).
	if !d.full && d.digits < 1<<53 && -len(exactPowers) < d.exp && d.exp < len(exactPowers) {
		f := float64(d.digits)
		if d.exp < 0 {
			f /= exactPowers[-d.exp]
		} else {
			f *= exactPowers[d.exp]
		}
		if d.neg {
			f = -f
		}
		return reading.FloatValue(f), true
	}
	f, _ := strconv.ParseFloat(raw, 64) // ±Inf where it does not fit
	return reading.FloatValue(f), true
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
func levelOf(v field, known map[string]reading.Level) reading.Quality {
	q := reading.Quality{Level: reading.Uncertain}
	word := v.text
	switch v.kind {
	case null:
		q.Level = reading.Good
		return q
	case yes:
		word = "true"
	case no:
		word = "false"
	case numeric:
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
	case v.kind == yes || word == "good" || strings.EqualFold(word, "good"):
		q.Level = reading.Good
	case v.kind == no || strings.EqualFold(word, "bad"):
		q.Level = reading.Bad
	}
	return q
}
