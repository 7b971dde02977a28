package windowing

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func numbers() *rapid.Generator[[]float64] {
	return rapid.SliceOfN(rapid.OneOf(
		rapid.Float64Range(-1e3, 1e3), rapid.Float64(),
		rapid.SampledFrom([]float64{1e308, -1e308, 5e-324, -5e-324, 1, -1, 1e16, 0.1, math.MaxFloat64}),
	), 1, 12)
}

// The second method is math/big at a precision that holds every sum exactly.
func TestExactAgainstBigFloat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := numbers().Draw(t, "xs")
		n := uint64(rapid.IntRange(1, 1000).Draw(t, "n"))
		var sum, squares exact
		want := new(big.Float).SetPrec(8000)
		wantSq := new(big.Float).SetPrec(8000)
		for _, x := range xs {
			sum.add(floatTerm(x))
			squares.addProduct(floatTerm(x), floatTerm(x))
			b := new(big.Float).SetPrec(8000).SetFloat64(x)
			want.Add(want, b)
			wantSq.Add(wantSq, new(big.Float).SetPrec(8000).Mul(b, b))
		}
		equal(t, "sum", sum.float(), want)
		equal(t, "squares", squares.float(), wantSq)
		ratio, _ := new(big.Rat).SetString("0")
		r, _ := want.Rat(nil)
		ratio.Quo(r, new(big.Rat).SetUint64(n))
		mean, _ := ratio.Float64()
		if got := sum.over(n); got != mean {
			t.Fatalf("sum/%d = %v, want %v", n, got, mean)
		}
		got := quotient(sum.big(), new(big.Int).SetUint64(n), 64*sum.base)
		if got != mean {
			t.Fatalf("quotient = %v, want %v", got, mean)
		}
		back := slices.Clone(xs)
		slices.Reverse(back)
		var other exact
		for _, x := range back {
			other.add(floatTerm(x))
		}
		if other.float() != sum.float() {
			t.Fatalf("order shows: %v and %v", other.float(), sum.float())
		}
	})
}

func equal(t *rapid.T, what string, got float64, want *big.Float) {
	t.Helper()
	if w, _ := want.Float64(); got != w {
		t.Fatalf("%s = %v, want %v", what, got, w)
	}
}

func TestExactIntegers(t *testing.T) {
	var x exact
	x.add(intTerm(math.MaxInt64))
	x.add(intTerm(math.MaxInt64))
	x.add(intTerm(1))
	if m, neg, ok := x.integer(); m != math.MaxUint64 || neg || !ok {
		t.Errorf("2·MaxInt64+1 = %d %v %v", m, neg, ok)
	}
	x.add(intTerm(1))
	if _, _, ok := x.integer(); ok {
		t.Error("2^64 cannot be a uint64")
	}
	x.add(term{mant: math.MaxUint64, neg: true})
	x.add(intTerm(math.MinInt64))
	x.add(intTerm(-1))
	if m, neg, ok := x.integer(); m != 1<<63 || !neg || !ok {
		t.Errorf("MinInt64 = %d %v %v", m, neg, ok)
	}
}
