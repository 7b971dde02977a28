package clock

import "tidemark/reading"

// Exchange is one two-way measurement of a source's clock: a request that left
// at T1 and came back at T4 by the gateway's clock with the source's time V in
// it. OPC UA: the Value of Server_ServerStatus_CurrentTime (i=2258).
type Exchange struct {
	T1NS, T4NS   int64
	VNS          int64
	ResolutionNS int64 // of V: a cached or rounded V may be that much behind
}

const (
	// exchangesKept is how many of the last exchanges are intersected.
	exchangesKept = 8
	// sourceRho is how fast a source's clock may drift against ours: 200 ppm.
	sourceRho = 200_000
)

// interval returns where θ = source − gateway lay at T4: V was read after T1 and
// before T4 (Cristian's bound).
func (x Exchange) interval() Interval {
	return Interval{x.VNS - x.T4NS, x.VNS - x.T1NS + x.ResolutionNS}
}

// intersectExchanges intersects the last exchanges, each widened by sourceRho
// since its T4. It is false if nothing is left: the source's clock was stepped.
func intersectExchanges(xs []Exchange) (Interval, bool) {
	xs = xs[max(0, len(xs)-exchangesKept):]
	if len(xs) == 0 {
		return Unmeasured, true
	}
	now := xs[len(xs)-1].T4NS
	out := xs[len(xs)-1].interval()
	for _, x := range xs {
		i, wide := x.interval(), growth(now-x.T4NS, sourceRho)
		out.LoNS = max(out.LoNS, i.LoNS-wide)
		out.HiNS = min(out.HiNS, i.HiNS+wide)
	}
	return out, out.LoNS <= out.HiNS
}

// verdictTwoWay rules on a two-way interval, given the gateway's bound e.
func verdictTwoWay(i Interval, e int64) (reading.SourceVerdict, int16) { return verdict(i, e, i.HiNS) }

// verdictOneWay rules on a one-way interval, whose upper end is an assumption
// and can only prove behind.
func verdictOneWay(i Interval, e int64) (reading.SourceVerdict, int16) { return verdict(i, e, i.LoNS) }

// verdict rules on an interval of which high may be how far ahead the clock is.
func verdict(i Interval, e, high int64) (reading.SourceVerdict, int16) {
	if v, zone := proven(i, e); v != reading.SourceOK {
		return v, zone
	}
	if high+e > offsetLimit || i.LoNS-e < -offsetLimit {
		return reading.SourceOffsetPossible, 0
	}
	return reading.SourceOK, 0
}

// proven names an offset that is proven: by its shape if it has one, else ahead
// or behind.
func proven(i Interval, e int64) (reading.SourceVerdict, int16) {
	v := reading.SourceOffsetAhead
	switch {
	case i.HiNS+e < -offsetLimit:
		v = reading.SourceOffsetBehind
	case i.LoNS-e <= offsetLimit:
		return reading.SourceOK, 0
	}
	if shaped, zone := shape(i); shaped != reading.SourceOK {
		return shaped, zone
	}
	return v, 0
}
