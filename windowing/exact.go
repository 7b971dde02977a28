package windowing

import (
	"math"
	"math/big"
	"math/bits"
)

// exact is a sum without rounding: a two's complement number of as many limbs as
// it needs, least significant first, limbs[0] weighing 2^(64·base). The top limb
// is pure sign (0 or all ones). Since nothing is ever rounded away, the order of
// adding cannot show (N1), and large offsets cost nothing (N2). It grows to 36
// limbs at most for floats and twice that for their products; readings of one
// sensor need three.
//
// The zero exact is 0.
type exact struct {
	limbs []uint64
	base  int
}

// term is ±mant·2^exp, an exact form of every number.
type term struct {
	mant uint64
	exp  int
	neg  bool
}

func floatTerm(f float64) term {
	b := math.Float64bits(f)
	exp, mant := int(b>>52&0x7ff), b&(1<<52-1)
	if exp == 0 {
		exp = 1
	} else {
		mant |= 1 << 52
	}
	return term{mant: mant, exp: exp - 1075, neg: b>>63 == 1}
}

func intTerm(i int64) term {
	if i < 0 {
		return term{mant: -uint64(i), neg: true}
	}
	return term{mant: uint64(i)}
}

func (x *exact) reset() { x.limbs, x.base = x.limbs[:0], 0 }

// add adds t.
func (x *exact) add(t term) {
	if t.mant == 0 {
		return
	}
	at, shift := t.exp>>6, uint(t.exp&63)
	x.addLimbs(t.mant<<shift, t.mant>>1>>(63-shift), 0, at, t.neg)
}

// addProduct adds a·b.
func (x *exact) addProduct(a, b term) {
	hi, lo := bits.Mul64(a.mant, b.mant)
	if hi|lo == 0 {
		return
	}
	exp := a.exp + b.exp
	at, shift := exp>>6, uint(exp&63)
	x.addLimbs(lo<<shift, hi<<shift|lo>>1>>(63-shift), hi>>1>>(63-shift), at, a.neg != b.neg)
}

// addLimbs adds or subtracts a three limb magnitude that starts at limb at.
func (x *exact) addLimbs(l0, l1, l2 uint64, at int, neg bool) {
	top := at + 1
	if l2 != 0 {
		top++
	}
	if len(x.limbs) == 0 || at < x.base || top >= x.base+len(x.limbs)-1 {
		x.cover(at, top)
	}
	limbs := x.limbs[at-x.base:]
	var c uint64
	if !neg {
		limbs[0], c = bits.Add64(limbs[0], l0, 0)
		limbs[1], c = bits.Add64(limbs[1], l1, c)
		for i := 2; l2|c != 0 && i < len(limbs); i++ {
			limbs[i], c = bits.Add64(limbs[i], l2, c)
			l2 = 0
		}
	} else {
		limbs[0], c = bits.Sub64(limbs[0], l0, 0)
		limbs[1], c = bits.Sub64(limbs[1], l1, c)
		for i := 2; l2|c != 0 && i < len(limbs); i++ {
			limbs[i], c = bits.Sub64(limbs[i], l2, c)
			l2 = 0
		}
	}
	if s := x.limbs[len(x.limbs)-1]; s+1 > 1 { // neither 0 nor all ones
		x.limbs = append(x.limbs, uint64(int64(s)>>63))
	}
}

// cover makes room for limbs from..top and the sign.
func (x *exact) cover(from, top int) {
	if len(x.limbs) == 0 {
		x.base = from
		x.limbs = append(x.limbs, 0)
	}
	if n := x.base - from; n > 0 {
		old := len(x.limbs)
		for range n {
			x.limbs = append(x.limbs, 0)
		}
		copy(x.limbs[n:], x.limbs[:old])
		clear(x.limbs[:n])
		x.base = from
	}
	sign := x.limbs[len(x.limbs)-1]
	for x.base+len(x.limbs) < top+2 {
		x.limbs = append(x.limbs, sign)
	}
}

// negative reports whether x < 0.
func (x *exact) negative() bool {
	return len(x.limbs) > 0 && x.limbs[len(x.limbs)-1] != 0
}

// magnitude appends |x| to dst, most significant limb first, without leading
// zeros.
func (x *exact) magnitude(dst []uint64) []uint64 {
	start := len(dst)
	for i := len(x.limbs) - 1; i >= 0; i-- {
		dst = append(dst, x.limbs[i])
	}
	m := dst[start:]
	if x.negative() {
		c := uint64(1)
		for i := len(m) - 1; i >= 0; i-- {
			m[i], c = bits.Add64(^m[i], 0, c)
		}
	}
	for len(m) > 0 && m[0] == 0 {
		m = m[1:]
	}
	return m
}

// float returns x rounded to the nearest float64, ties to even; infinite if it is
// too large for one.
func (x *exact) float() float64 {
	var buf [40]uint64
	return roundLimbs(x.magnitude(buf[:0]), x.base, false, x.negative())
}

// over returns x/n, correctly rounded.
func (x *exact) over(n uint64) float64 {
	var buf [42]uint64
	m := append(x.magnitude(buf[:0]), 0, 0)
	var rem uint64
	for i := range m {
		m[i], rem = bits.Div64(rem, m[i], n)
	}
	return roundLimbs(m, x.base-2, rem != 0, x.negative())
}

// integer returns x if it is a whole number that int64 or uint64 holds.
func (x *exact) integer() (magnitude uint64, neg, ok bool) {
	var buf [40]uint64
	m := x.magnitude(buf[:0])
	low := x.base
	for len(m) > 0 && m[len(m)-1] == 0 {
		m, low = m[:len(m)-1], low+1
	}
	neg = x.negative()
	switch {
	case len(m) == 0:
		return 0, false, true
	case len(m) > 1 || low != 0 || neg && m[0] > 1<<63:
		return 0, neg, false
	}
	return m[0], neg, true
}

// big returns x as an integer that weighs 2^(64·x.base).
func (x *exact) big() *big.Int {
	var buf [80]uint64
	m := x.magnitude(buf[:0])
	raw := make([]byte, 0, 8*len(m))
	for _, limb := range m {
		raw = append(raw, byte(limb>>56), byte(limb>>48), byte(limb>>40), byte(limb>>32),
			byte(limb>>24), byte(limb>>16), byte(limb>>8), byte(limb))
	}
	i := new(big.Int).SetBytes(raw)
	if x.negative() {
		i.Neg(i)
	}
	return i
}

// roundLimbs rounds a magnitude, most significant limb first, the last limb
// weighing 2^(64·base); sticky says that something smaller follows it.
func roundLimbs(m []uint64, base int, sticky, neg bool) float64 {
	for len(m) > 0 && m[0] == 0 {
		m = m[1:]
	}
	if len(m) == 0 {
		return 0 // what is left, if sticky, is below half of everything a float64 has
	}
	shift := uint(bits.LeadingZeros64(m[0]))
	top, exp := m[0]<<shift, 64*(base+len(m)-1)-int(shift)
	rest := m[1:]
	if len(rest) > 0 {
		top |= rest[0] >> 1 >> (63 - shift)
		sticky = sticky || rest[0]<<shift != 0
		for _, limb := range rest[1:] {
			sticky = sticky || limb != 0
		}
	}
	return roundTop(top, exp, sticky, neg)
}

// roundTop rounds top·2^exp, top's highest bit set; sticky says that the true
// value is a little larger.
func roundTop(top uint64, exp int, sticky, neg bool) float64 {
	drop := 11
	if low := -1022 - (exp + 63); low > 0 { // subnormal: fewer bits
		drop += low
	}
	var q, rest, half uint64
	switch {
	case drop > 64:
		return 0
	case drop == 64:
		q, rest, half = 0, top, 1<<63
	default:
		q, rest, half = top>>drop, top&(1<<drop-1), 1<<(drop-1)
	}
	if rest > half || rest == half && (sticky || q&1 == 1) {
		q++
	}
	f := math.Ldexp(float64(q), exp+drop)
	if neg {
		f = -f
	}
	return f
}

// quotient returns num/den·2^exp, correctly rounded; den > 0.
func quotient(num, den *big.Int, exp int) float64 {
	if num.Sign() == 0 {
		return 0
	}
	n, d := new(big.Int).Abs(num), den
	shift := 66 - (n.BitLen() - den.BitLen())
	if shift > 0 {
		n.Lsh(n, uint(shift))
	} else {
		d = new(big.Int).Lsh(den, uint(-shift))
	}
	q, r := n.QuoRem(n, d, new(big.Int))
	sticky := r.Sign() != 0
	extra := uint(q.BitLen() - 64) // 2 or 3
	low := new(big.Int).And(q, big.NewInt(1<<extra-1))
	sticky = sticky || low.Sign() != 0
	return roundTop(q.Rsh(q, extra).Uint64(), exp-shift+int(extra), sticky, num.Sign() < 0)
}
