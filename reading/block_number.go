package reading

import "math"

// ticks are the lengths in nanoseconds that a column of times is counted in,
// each a multiple of the one before: a clock of milliseconds costs no digits for
// nanoseconds that it never says. 100 ns is the tick of OPC UA.
var ticks = [4]int64{1, 100, 1e3, 1e6}

const coarsestTick = uint8(len(ticks) - 1)

// tickOf returns the coarsest tick, at most limit, that ns is a multiple of.
func tickOf(ns int64, limit uint8) uint8 {
	for limit > 0 && ns%ticks[limit] != 0 {
		limit--
	}
	return limit
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Forms of a line's floats. Sensors send decimals: a float that is m/10^k to the
// last bit is stored as the integer m. Forms 0 to maxDigits are that k; with
// formSingle added, the quotient is rounded to a float32 once more, which gives
// back what went through a float32 on its way.
const (
	maxDigits   uint8 = 12
	formFloat32 uint8 = 14 // four bytes
	formFloat64 uint8 = 15 // eight bytes
	formSingle  uint8 = 16
)

var pow10 = [maxDigits + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}

// mantissaLimit keeps m so small that rounding f·10^k finds it again, and that
// it stays exact with every digit a later reading of the line asks for: m/10^k
// and 10m/10^(k+1) are the same quotient, rounded once.
const mantissaLimit = 1 << 50

// floatFit finds the form for all floats of one line: one look with add, and for
// the lines that then say again, one with addSingle and one with check.
type floatFit struct {
	digits  uint8
	largest float64
	again   bool // some float is no short decimal
	single  bool // every float so far is the float32 of one
	narrow  bool // every float so far is a float32
}

func (l *floatFit) add(f float64) {
	if !l.again && !l.fit(f, decimal) {
		*l = floatFit{again: true, single: true, narrow: true}
	}
}

func (l *floatFit) addSingle(f float64) {
	l.narrow = l.narrow && float64(float32(f)) == f
	l.single = l.single && l.narrow && l.fit(f, decimalSingle)
}

// check looks once more with the digits that addSingle ended at, since a float32
// just above a power of two may have fewer and not more.
func (l *floatFit) check(f float64) {
	l.single = l.single && decimalSingle(mantissa(f, l.digits), l.digits) == f
}

func (l *floatFit) fit(f float64, back func(m int64, digits uint8) float64) bool {
	l.largest = max(l.largest, math.Abs(f))
	for k := l.digits; k <= maxDigits && l.largest*pow10[k] < mantissaLimit; k++ {
		if back(mantissa(f, k), k) == f {
			l.digits = k
			return true
		}
	}
	return false
}

// form returns the form that fits all floats added.
func (l *floatFit) form() uint8 {
	switch {
	case !l.again:
		return l.digits
	case l.single:
		return formSingle + l.digits
	case l.narrow:
		return formFloat32
	}
	return formFloat64
}

func mantissa(f float64, digits uint8) int64 { return int64(math.Round(f * pow10[digits])) }

func decimal(m int64, digits uint8) float64 { return float64(m) / pow10[digits] }

func decimalSingle(m int64, digits uint8) float64 { return float64(float32(decimal(m, digits))) }
