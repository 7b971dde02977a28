package windowing

import (
	"cmp"
	"math"
	"math/bits"

	"tidemark/reading"
)

// compareNumbers orders numbers by their exact amount, also across integers and
// floats (N3).
func compareNumbers(a, b reading.Value) int {
	af, bf := a.Kind() == reading.Float, b.Kind() == reading.Float
	switch {
	case af && bf:
		return cmp.Compare(a.Float(), b.Float())
	case af:
		return -compareIntFloat(b, a.Float())
	case bf:
		return compareIntFloat(a, b.Float())
	}
	return compareInts(a, b)
}

func compareInts(a, b reading.Value) int {
	ai, aok := a.Int()
	bi, bok := b.Int()
	switch {
	case aok && bok:
		return cmp.Compare(ai, bi)
	case aok: // b is above MaxInt64
		return -1
	case bok:
		return 1
	}
	_, au := a.Bits()
	_, bu := b.Bits()
	return cmp.Compare(au, bu)
}

func compareIntFloat(a reading.Value, f float64) int {
	switch {
	case f >= 1<<64:
		return -1
	case f < -1<<63:
		return 1
	}
	whole := math.Trunc(f)
	var w reading.Value
	if whole >= 1<<63 {
		w = reading.UintValue(uint64(whole))
	} else {
		w = reading.IntValue(int64(whole))
	}
	if c := compareInts(a, w); c != 0 {
		return c
	}
	return cmp.Compare(whole, f)
}

// compareValues is a total order over everything that is kept of a value: numbers
// by amount, then by kind and bits. Texts stand for themselves by hash.
func compareValues(ak reading.Kind, ab uint64, bk reading.Kind, bb uint64) int {
	if isNumber(ak) && isNumber(bk) {
		if c := compareNumbers(makeValue(ak, ab), makeValue(bk, bb)); c != 0 {
			return c
		}
	}
	if ak != bk {
		return cmp.Compare(ak, bk)
	}
	return cmp.Compare(ab, bb)
}

func isNumber(k reading.Kind) bool {
	return k == reading.Int || k == reading.Uint || k == reading.Float
}

// keptBits is the 64 bits by which a value is kept: a text's hash, else its own.
func keptBits(v reading.Value) (reading.Kind, uint64) {
	kind, b := v.Bits()
	if kind == reading.Text {
		b = hashText(v.Text())
	}
	return kind, b
}

// numberTerm is the exact form of a number.
func numberTerm(kind reading.Kind, b uint64) term {
	switch kind {
	case reading.Int:
		return intTerm(int64(b))
	case reading.Uint:
		return term{mant: b}
	}
	return floatTerm(math.Float64frombits(b))
}

// Hashing is fixed for ever, since hashes are kept in snapshots: multiply two
// 64-bit halves and fold, as wyhash does.
const (
	hashSeed = 0xa0761d6478bd642f
	hashStep = 0xe7037ed1a0b428db
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^hashSeed, b^hashStep)
	return hi ^ lo
}

func hashText(s string) uint64 {
	h := uint64(len(s))
	for len(s) >= 8 {
		h = mix(h, le64(s))
		s = s[8:]
	}
	var tail uint64
	for i := 0; i < len(s); i++ {
		tail |= uint64(s[i]) << (8 * i)
	}
	return mix(h, tail)
}

func le64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
