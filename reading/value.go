package reading

import (
	"math"
	"strconv"
)

// Kind is the type of a Value. The zero Kind is a missing value.
type Kind uint8

const (
	Missing Kind = iota
	Bool
	Int   // int64
	Uint  // uint64 above math.MaxInt64; smaller ones are Int, so that one number has one Value
	Float // float64, finite
	Text
)

// Value is what a sensor said. Integers stay exact over the whole range of int64
// and uint64 (SEMANTICS N3); NaN and infinities are no values. Values compare
// with ==.
type Value struct {
	kind Kind
	num  uint64
	text string
}

// BoolValue returns b as a Value.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: Bool, num: 1}
	}
	return Value{kind: Bool}
}

// IntValue returns i as a Value.
func IntValue(i int64) Value { return Value{kind: Int, num: uint64(i)} }

// UintValue returns u as a Value.
func UintValue(u uint64) Value {
	if u <= math.MaxInt64 {
		return IntValue(int64(u))
	}
	return Value{kind: Uint, num: u}
}

// FloatValue returns f as a Value, and a missing one if f is NaN or infinite.
// Negative zero becomes zero, so that equal numbers are equal Values.
func FloatValue(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Value{}
	}
	if f == 0 {
		f = 0
	}
	return Value{kind: Float, num: math.Float64bits(f)}
}

// TextValue returns s as a Value.
func TextValue(s string) Value { return Value{kind: Text, text: s} }

// Kind returns the value's type.
func (v Value) Kind() Kind { return v.kind }

// Int returns the integer, and whether v is one that int64 holds.
func (v Value) Int() (int64, bool) { return int64(v.num), v.kind == Int }

// Float returns the number as a float64, rounded where an integer is too large
// to be exact, and 0 for what is no number.
func (v Value) Float() float64 {
	switch v.kind {
	case Int:
		return float64(int64(v.num))
	case Uint:
		return float64(v.num)
	case Float:
		return math.Float64frombits(v.num)
	}
	return 0
}

// Text returns the text; empty for any other kind.
func (v Value) Text() string { return v.text }

// Bits returns the kind and the value's 64 bits, for hashing and encoding: the
// two's complement of an integer, the IEEE 754 bits of a float, 0 or 1.
func (v Value) Bits() (Kind, uint64) { return v.kind, v.num }

// AppendJSON appends v as a JSON value: null if missing, integers in full.
func (v Value) AppendJSON(b []byte) []byte {
	switch v.kind {
	case Bool:
		return strconv.AppendBool(b, v.num == 1)
	case Int:
		return strconv.AppendInt(b, int64(v.num), 10)
	case Uint:
		return strconv.AppendUint(b, v.num, 10)
	case Float:
		return AppendJSONFloat(b, math.Float64frombits(v.num))
	case Text:
		return AppendJSONString(b, v.text)
	}
	return append(b, "null"...)
}
