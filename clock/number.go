package clock

import (
	"math"

	"tidemark/reading"
)

// Number is a source timestamp that was sent as a number since 1970.
type Number struct {
	Sent  bool
	Value float64 // exact for the whole numbers that the declared units call for
	Unit  reading.TimeUnit
	NS    int64 // in the declared unit, exact; reading.NoTime if int64 cannot hold it
}

// whole reports whether the number has no fraction, as counters have none.
func (n Number) whole() bool { return n.Value == math.Trunc(n.Value) }

// in returns the number read in unit u as nanoseconds, saturating.
func (n Number) in(u reading.TimeUnit) int64 {
	if u == n.Unit && n.NS != reading.NoTime {
		return n.NS
	}
	ns := n.Value * float64(u.Nanos())
	switch {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= -math.MaxInt64:
		return -math.MaxInt64
	case n.whole() && math.Abs(n.Value) < 1<<53:
		return int64(n.Value) * u.Nanos()
	}
	return int64(ns)
}

var units = [...]reading.TimeUnit{reading.UnitSeconds, reading.UnitMillis, reading.UnitMicros, reading.UnitNanos}

// fault returns the unit mistake of the number: another unit is the only one
// that lands between 2015 and 2100, or none does. Where old times are in order,
// the declared unit may land as early as 1990.
func (n Number) fault(oldInOrder bool) (fits reading.TimeUnit, r reading.Reason) {
	from := plausibleFrom
	if oldInOrder {
		from = sentinelBelow
	}
	if t := n.in(n.Unit); t >= from && t < sentinelFrom {
		return reading.UnitNone, reading.OK
	}
	for _, u := range units {
		if t := n.in(u); t >= plausibleFrom && t < sentinelFrom {
			if fits != reading.UnitNone {
				return reading.UnitNone, reading.OK // two could be meant: nobody is accused of either
			}
			fits = u
		}
	}
	if fits != reading.UnitNone {
		return fits, reading.UnitMismatch
	}
	return reading.UnitNone, reading.TSSentinel
}
