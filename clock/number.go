package clock

import (
	"math"
	"math/big"
	"strconv"

	"tidemark/reading"
)

// Number is a source timestamp that was sent as a number since 1970.
type Number struct {
	Sent  bool
	Unit  reading.TimeUnit // as declared
	Whole bool             // no fraction, as counters have none
	Int   int64            // the number itself, if Whole and int64 holds it
	Float float64          // the number, rounded
	NS    int64            // in the declared unit; reading.NoTime if int64 cannot hold it
}

// ParseNumber reads a decimal number sent as a timestamp in unit u. It is false
// for what is no finite number.
func ParseNumber(text string, u reading.TimeUnit) (Number, bool) {
	n := Number{Sent: true, Unit: u, NS: reading.NoTime}
	var err error
	if n.Int, err = strconv.ParseInt(text, 10, 64); err == nil {
		n.Whole, n.Float = true, float64(n.Int)
		if ns := mulSat(n.Int, u.Nanos()); abs(ns) != math.MaxInt64 {
			n.NS = ns
		}
		return n, true
	}
	n.Int = 0
	if n.Float, err = strconv.ParseFloat(text, 64); err != nil || math.IsInf(n.Float, 0) || math.IsNaN(n.Float) {
		return Number{}, false
	}
	if math.Abs(n.Float) > 1e19 {
		n.Whole = true
		return n, true
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		return Number{}, false
	}
	if n.Whole = exact.IsInt(); n.Whole && exact.Num().IsInt64() {
		n.Int = exact.Num().Int64()
	}
	exact.Mul(exact, new(big.Rat).SetInt64(u.Nanos()))
	if ns := new(big.Int).Div(exact.Num(), exact.Denom()); ns.IsInt64() && ns.Int64() != reading.NoTime {
		n.NS = ns.Int64()
	}
	return n, true
}

// numberOf takes a reading's timestamp apart again. Text is no number.
func numberOf(t reading.SourceTime) Number {
	unit := t.Unit.Nanos()
	switch {
	case unit == 0:
		return Number{}
	case t.Raw != "":
		if n, ok := ParseNumber(t.Raw, t.Unit); ok {
			return n
		}
		return Number{}
	case !t.Given():
		return Number{}
	}
	return Number{Sent: true, Unit: t.Unit, NS: t.NS, Whole: t.NS%unit == 0, Int: t.NS / unit, Float: float64(t.NS) / float64(unit)}
}

// in returns the number read in unit u as nanoseconds, saturating.
func (n Number) in(u reading.TimeUnit) int64 {
	switch {
	case u == n.Unit && n.NS != reading.NoTime:
		return n.NS
	case n.Whole && (n.Int != 0 || n.Float == 0):
		return mulSat(n.Int, u.Nanos())
	}
	ns := n.Float * float64(u.Nanos())
	switch {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= -math.MaxInt64:
		return -math.MaxInt64
	}
	return int64(ns)
}

// mulSat returns a·b for b > 0, saturating at ±MaxInt64.
func mulSat(a, b int64) int64 {
	switch {
	case a > math.MaxInt64/b:
		return math.MaxInt64
	case a < -math.MaxInt64/b:
		return -math.MaxInt64
	}
	return a * b
}

var units = [...]reading.TimeUnit{reading.UnitSeconds, reading.UnitMillis, reading.UnitMicros, reading.UnitNanos}

// fault returns what is wrong with the number's unit: another one is the only one
// that lands between 2015 and 2100, or none lands there. (Units are a factor of
// 1000 apart, so two never do.)
func (n Number) fault() (fits reading.TimeUnit, r reading.Reason) {
	lands := func(u reading.TimeUnit) bool { t := n.in(u); return t >= plausibleFrom && t < sentinelFrom }
	if lands(n.Unit) {
		return reading.UnitNone, reading.OK
	}
	for _, u := range units {
		if lands(u) {
			return u, reading.UnitMismatch
		}
	}
	return reading.UnitNone, reading.TSSentinel
}
