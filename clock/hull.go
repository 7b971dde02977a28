package clock

import "math"

// point is a sample x = t_s − t_i of a one-way source at gateway time at. No x
// ever exceeds the offset θ, so the upper hull of many is what the clock did.
type point struct{ atNS, xNS int64 }

// driftAbove is a drift that no sane oscillator has: 200 ppm.
const driftAbove = 200_000

// oneWay returns where θ lies at the last sample: at least the highest sample,
// each lowered by sourceRho since, and at most dCap above that.
func oneWay(samples []point, dCap int64) Interval {
	now := samples[len(samples)-1].atNS
	lo := int64(math.MinInt64)
	for _, p := range samples {
		lo = max(lo, p.xNS-growth(now-p.atNS, sourceRho))
	}
	return Interval{lo, lo + dCap}
}

// drift returns the slope in ppb of the upper hull's edge over the mean time of
// the samples, which come in order of time. Of all lines above the samples that
// edge has the least sum of distances (Moon, Skelly, Towsley: Estimation and
// removal of clock skew, INFOCOM 1999). It is false for fewer than two times.
func drift(samples []point) (ppb float64, ok bool) {
	hull := upperHull(samples)
	if len(hull) < 2 {
		return 0, false
	}
	var mean float64
	for _, p := range samples {
		mean += float64(p.atNS-samples[0].atNS) / float64(len(samples))
	}
	for k := 1; k < len(hull); k++ {
		a, b := hull[k-1], hull[k]
		if float64(b.atNS-samples[0].atNS) >= mean || k == len(hull)-1 {
			return float64(b.xNS-a.xNS) / float64(b.atNS-a.atNS) * 1e9, true
		}
	}
	return 0, false
}

// upperHull returns the upper convex hull, left to right (Andrew's monotone
// chain). Of samples at one time only the highest counts.
func upperHull(samples []point) []point {
	var hull []point
	for _, p := range samples {
		if n := len(hull); n > 0 && hull[n-1].atNS == p.atNS {
			if p.xNS <= hull[n-1].xNS {
				continue
			}
			hull = hull[:n-1]
		}
		for len(hull) >= 2 && !turnsRight(hull[len(hull)-2], hull[len(hull)-1], p) {
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, p)
	}
	return hull
}

// turnsRight compares slopes as floats: offsets of years times hours of nanoseconds
// leave int64.
func turnsRight(a, b, c point) bool {
	return float64(b.xNS-a.xNS)*float64(c.atNS-b.atNS) > float64(c.xNS-b.xNS)*float64(b.atNS-a.atNS)
}
