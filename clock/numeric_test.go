package clock

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"tidemark/reading"
)

// Numbers against a second method: big integers for the bound, counting by hand
// for the vote, least squares over pairs for the drift.

func TestGrowthIsTheExactCeiling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		elapsed := rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "elapsed")
		rho := rapid.Int64Range(1, 1_000_000).Draw(t, "rho")
		want := new(big.Int).Mul(big.NewInt(elapsed), big.NewInt(rho))
		want.Add(want, big.NewInt(1e9-1))
		want.Div(want, big.NewInt(1e9))
		if got := growth(elapsed, rho); !want.IsInt64() || got != want.Int64() {
			t.Errorf("growth(%d, %d) = %d, want %v", elapsed, rho, got, want)
		}
	})
}

// The example of the chronyc manual: system time 0.000006523 s slow, root delay
// 0.013639022 s, root dispersion 0.001100737 s.
func TestChronyManualExample(t *testing.T) {
	v := chronyReading{RefID: 0xCB00710F, Synchronised: true, SystemTimeNS: secondsUp(-0.000006523),
		RootDelayNS: secondsUp(0.013639022), RootDispersionNS: secondsUp(0.001100737)}.view()
	if v.boundNS < 7926771 || v.boundNS > 7926771+3 || v.trace != traceUTC {
		t.Errorf("bound %d, want 7926771 and what floats round up", v.boundNS)
	}
}

// K1 with numbers by hand: 10/2 + 5 + 20/2 ms + 1 µs, and over 100 s 15 ppm for the
// server (PHI of RFC 5905) and 50 ppm for us.
func TestRootDistance(t *testing.T) {
	r := reply{rootDelayNS: 10e6, rootDispNS: 5e6, rttNS: 20e6, precisionNS: 1000, bootNS: 7e9}
	if got := r.lambda(7e9, rhoDisciplined); got != 20_001_000 {
		t.Errorf("at the answer: %d ns, want 20.001 ms", got)
	}
	if got := r.lambda(107e9, rhoDisciplined); got != 26_501_000 {
		t.Errorf("100 s later: %d ns, want 26.501 ms", got)
	}
	odd := reply{rootDelayNS: 1, rttNS: 1}
	if got := odd.lambda(1, 0); got != 3 {
		t.Errorf("every rounding goes up: %d ns, want 1 + 1 + 1", got)
	}
}

// naiveIntersect is RFC 5905 §11.2.1 in words: for f from 0 while f < n/2, the
// lowest lower end and the highest upper end that n − f intervals cover; good if
// no more than f midpoints lie outside.
func naiveIntersect(c []candidate) (lo, hi int64, ok bool) {
	covered := func(at int64) (n int) {
		for _, s := range c {
			if s.thetaNS-s.lambdaNS <= at && at <= s.thetaNS+s.lambdaNS {
				n++
			}
		}
		return n
	}
	for f := 0; 2*f < len(c); f++ {
		lo, hi = math.MaxInt64, math.MinInt64
		for _, s := range c {
			if a := s.thetaNS - s.lambdaNS; covered(a) >= len(c)-f {
				lo = min(lo, a)
			}
			if b := s.thetaNS + s.lambdaNS; covered(b) >= len(c)-f {
				hi = max(hi, b)
			}
		}
		out := 0
		for _, s := range c {
			if s.thetaNS < lo || s.thetaNS > hi {
				out++
			}
		}
		if lo < hi && out <= f {
			return lo, hi, true
		}
	}
	return 0, 0, false
}

func TestIntersectAgreesWithTheNaiveMethod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c []candidate
		for range rapid.IntRange(0, 7).Draw(t, "n") {
			c = append(c, candidate{rapid.Int64Range(-30, 30).Draw(t, "theta"), rapid.Int64Range(0, 20).Draw(t, "lambda")})
		}
		lo, hi, ok := naiveIntersect(c)
		got := intersect(c)
		if got.ok != ok || ok && (got.lo != lo || got.hi != hi) {
			t.Errorf("%v: %+v, naive [%d, %d] %v", c, got, lo, hi, ok)
		}
	})
}

// If fewer than half lie, and the honest intervals contain the truth, the
// intersection contains it too.
func TestIntersectHoldsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		liars := rapid.IntRange(0, (n-1)/2).Draw(t, "liars")
		var c []candidate
		for i := range n {
			lambda := rapid.Int64Range(1, 1000).Draw(t, "lambda")
			theta := rapid.Int64Range(-lambda, lambda).Draw(t, "theta")
			if i < liars {
				theta += rapid.Int64Range(-5000, 5000).Draw(t, "lie")
			}
			c = append(c, candidate{theta, lambda})
		}
		if in := intersect(c); in.ok && liars == 0 && (in.lo > 0 || in.hi < 0) {
			t.Errorf("%v: truth 0 is outside [%d, %d]", c, in.lo, in.hi)
		}
	})
}

// naiveDrift minimises the sum of distances over all lines through two samples
// that lie above every sample.
func naiveDrift(p []point) float64 {
	best, slope := math.Inf(1), 0.0
	for i := range p {
		for j := i + 1; j < len(p); j++ {
			if p[i].atNS == p[j].atNS {
				continue
			}
			a := float64(p[j].xNS-p[i].xNS) / float64(p[j].atNS-p[i].atNS)
			var sum float64
			above := true
			for _, q := range p {
				d := float64(p[i].xNS) + a*float64(q.atNS-p[i].atNS) - float64(q.xNS)
				above = above && d >= -1e-3
				sum += d
			}
			if above && sum < best {
				best, slope = sum, a
			}
		}
	}
	return slope * 1e9
}

func TestDriftAgreesWithTheNaiveMethod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p []point
		at := int64(0)
		ppb := rapid.Int64Range(-300_000, 300_000).Draw(t, "ppb")
		for range rapid.IntRange(2, 30).Draw(t, "n") {
			at += rapid.Int64Range(1e9, 120e9).Draw(t, "gap")
			p = append(p, point{at, at/1e9*ppb - rapid.Int64Range(0, 50e6).Draw(t, "delay")})
		}
		got, ok := drift(p)
		want := naiveDrift(p)
		if !ok || sumAbove(p, got) > sumAbove(p, want)*(1+1e-6)+1 {
			t.Errorf("drift %g, naive %g", got, want)
		}
	})
}

// sumAbove is the sum of distances below the lowest line of a slope that lies
// above all samples: two edges of the hull may be equally good.
func sumAbove(p []point, ppb float64) (sum float64) {
	top := math.Inf(-1)
	for _, q := range p {
		top = math.Max(top, float64(q.xNS)-ppb/1e9*float64(q.atNS-p[0].atNS))
	}
	for _, q := range p {
		sum += top + ppb/1e9*float64(q.atNS-p[0].atNS) - float64(q.xNS)
	}
	return sum
}

// The bound never shrinks without new evidence, whatever happens in between, and
// no state that is not trusted has one that could be believed.
func TestTheBoundNeverShrinksWithoutEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := machine{}
		boot, last := int64(1e9), int64(-1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			boot += rapid.Int64Range(0, 2000e9).Draw(t, "passes")
			evidence := false
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				lo := rapid.Int64Range(-2e9, 2e9).Draw(t, "lo")
				r := round{bootNS: boot, servers: 4, host: noView, outcome: roundAgreed, rhoPPB: rhoDisciplined,
					vote: selection{LoNS: lo, HiNS: lo + rapid.Int64Range(1, 1e9).Draw(t, "width"), AtBootNS: boot, RhoPPB: rhoDisciplined}}
				m.onRound(r)
				evidence = true
			case 1:
				m.onRound(round{bootNS: boot, servers: 4, host: noView, outcome: roundMissed})
			case 2:
				m.onRound(round{bootNS: boot, servers: 4, host: noView, outcome: roundNoMajority})
			case 3:
				m.onSleep(rapid.Int64Range(0, 3600e9).Draw(t, "slept"), boot)
			case 4:
				d := rapid.Int64Range(-3e9, 3e9).Draw(t, "d")
				known, tol, ok := m.known(boot)
				ev := change{dNS: d, knownNS: known, toleranceNS: tol, hasKnown: ok}.event()
				m.onStep(ev, d, boot)
				evidence = ev == stepExplained // the step took away what was measured
			default:
				m.onTick(boot)
			}
			e := m.bound(boot)
			if !evidence && e >= 0 && last >= 0 && e < last {
				t.Fatalf("the bound shrank from %d to %d", last, e)
			}
			if !m.State.Trusted() && e >= 0 && e <= unknownAbove {
				t.Fatalf("state %v with bound %d", m.State, e)
			}
			if m.State == reading.ClockSynchronized && (e < 0 || e > syncBelow) {
				t.Fatalf("synchronized with bound %d", e)
			}
			last = e
		}
	})
}

func TestWallTimesOfEarlierEpochsAreCertified(t *testing.T) {
	var e epochs
	e.begin(7, looked{wallNS: 1000, bootNS: 0})
	e.begin(7, looked{wallNS: 5e9 + 1000, bootNS: 0}) // stepped by 5 s
	if _, _, ok := e.ingest(7, 0, 1000); ok {
		t.Error("certified by nothing")
	}
	e.certify(selection{LoNS: -3, HiNS: 4, AtBootNS: 0, RhoPPB: 50_000}, true)
	retro, bound, ok := e.ingest(7, 0, 1000+10e9)
	if !ok || retro != 5e9 || bound != 4+500_000+stepAbove {
		t.Errorf("retro %d ± %d, %v", retro, bound, ok)
	}
	if retro, bound, ok := e.ingest(7, 1, 5e9+1000); !ok || retro != 0 || bound != 4 {
		t.Errorf("the same epoch: retro %d ± %d, %v", retro, bound, ok)
	}
	if _, _, ok := e.ingest(8, 0, 1000); ok {
		t.Error("another boot is certified")
	}
}

// The running envelope is the definition over all samples, to a nanosecond of
// rounding for each.
func TestTheEnvelopeIsTheMaximumOverAllSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e envelope
		var p []point
		at := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			at += rapid.Int64Range(0, 600e9).Draw(t, "gap")
			x := rapid.Int64Range(-3e9, 1e9).Draw(t, "x")
			e.push(x, at)
			p = append(p, point{at, x})
		}
		if d := e.low(at) - oneWay(p, 0).LoNS; d < -1 || d > 1 {
			t.Errorf("the envelope is off by %d ns", d)
		}
	})
}
