package reading_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"tidemark/reading"
)

// SEMANTICS, provenance: stored bounds are ceil(2·log2 ns), and round up.
func TestBoundRoundsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Min(0).Draw(t, "ns")
		b := reading.MakeBound(ns)
		if !b.Known() || b.NS() < ns {
			t.Fatalf("bound of %d ns is stored as %d", ns, b.NS())
		}
		if ns > 1 && float64(b.NS()) > float64(ns)*math.Sqrt2*1.000001+1 {
			t.Fatalf("bound of %d ns is stored as %d, more than a step above", ns, b.NS())
		}
		if b > 1 && (b-1).NS() >= ns {
			t.Fatalf("bound of %d ns is stored as code %d, a smaller one would do", ns, b)
		}
	})
}

func TestBoundCodes(t *testing.T) {
	f := func(ns int64, want reading.Bound) {
		t.Helper()
		if got := reading.MakeBound(ns); got != want {
			t.Errorf("%d ns: code %d, want %d", ns, got, want)
		}
	}
	f(-1, 0)
	f(0, 1)
	f(1, 1)
	f(2, 2)
	f(3, 4)
	f(1e6, 41)
	if none := reading.Bound(0); none.Known() || none.NS() != -1 {
		t.Error("the zero bound is none")
	}
	if reading.MakeBound(math.MaxInt64).NS() != math.MaxInt64 || reading.Bound(255).NS() != math.MaxInt64 {
		t.Error("the largest bound saturates")
	}
	for b := reading.Bound(2); b < 255; b++ {
		if b.NS() < (b - 1).NS() {
			t.Errorf("code %d is below the one before", b)
		}
	}
}

// Codes that a later version wrote are named, not a panic.
func TestNamesOfUnknownCodes(t *testing.T) {
	for _, name := range []string{
		reading.Disposition(200).String(), reading.Reason(200).String(), reading.Basis(200).String(), reading.Policy(200).String(),
		reading.Level(200).String(), reading.ClockState(200).String(), reading.ClockMethod(200).String(),
		reading.SourceVerdict(200).String(), reading.TimeUnit(200).String(), reading.RejectKind(200).String(),
	} {
		if name == "" {
			t.Error("an unknown code has no name")
		}
	}
	if n := len(reading.Flags(0xffff).Names()); n != 11 {
		t.Errorf("%d flags have names", n)
	}
}

func TestNamesReadBack(t *testing.T) {
	for l := reading.Good; l <= reading.Bad; l++ {
		if got, ok := reading.ParseLevel(l.String()); !ok || got != l {
			t.Errorf("%v came back as %v", l, got)
		}
	}
	for _, name := range reading.PolicyNames() {
		if p, ok := reading.ParsePolicy(name); !ok || p.String() != name {
			t.Errorf("%s came back as %v", name, p)
		}
	}
	for v := reading.SourceOK; v <= reading.SourceStep; v++ {
		if got, ok := reading.ParseSourceVerdict(v.String()); !ok || got != v {
			t.Errorf("%v came back as %v", v, got)
		}
	}
	if _, ok := reading.ParseLevel("fine"); ok {
		t.Error("fine is no quality")
	}
}
