package disorder

import (
	"math/bits"
	"slices"
)

// perDoubling is the number of buckets between a value and its double.
const perDoubling = 1 << doublingBits
const doublingBits = 5

// RelativeError bounds how far a percentile may stand above the true value, as a
// part of that value's magnitude. It is never below.
const RelativeError = 1.0 / perDoubling

// bucket returns the bucket of v. Up to 2·perDoubling − 1 each value has its own;
// beyond, the leading doublingBits+1 bits choose. Negative values mirror.
func bucket(v int64) int16 {
	if v < 0 {
		return -bucket(-v)
	}
	shift := max(bits.Len64(uint64(v))-doublingBits-1, 0)
	return int16(shift*perDoubling + int(v>>shift))
}

// highest returns the highest value of bucket b.
func highest(b int16) int64 {
	if b < 0 {
		return -lowest(-b)
	}
	return lowest(b+1) - 1
}

// lowest returns the lowest value of bucket b, which is not negative.
func lowest(b int16) int64 {
	shift := max(int(b)/perDoubling-1, 0)
	return int64(int(b)-shift*perDoubling) << shift
}

// histogram counts values by bucket. The zero value is empty. Only buckets in use
// take room, since most partitions have few.
type histogram struct {
	buckets  []int16  // ascending
	counts   []uint64 // of the same index
	n        uint64
	min, max int64 // exact; meaningless while n is 0
}

// add counts v, whose magnitude must be below 2^62.
func (h *histogram) add(v int64) {
	if h.n == 0 {
		h.min, h.max = v, v
	}
	h.n++
	h.min, h.max = min(h.min, v), max(h.max, v)
	b := bucket(v)
	i, found := slices.BinarySearch(h.buckets, b)
	if !found {
		h.buckets = slices.Insert(h.buckets, i, b)
		h.counts = slices.Insert(h.counts, i, 0)
	}
	h.counts[i]++
}

// percentile returns the ⌈n·perMille/1000⌉-th smallest value, at most
// RelativeError too high.
func (h *histogram) percentile(perMille uint64) int64 {
	hi, lo := bits.Mul64(h.n, perMille)
	rank, rest := bits.Div64(hi, lo, 1000)
	if rest > 0 {
		rank++
	}
	for i, c := range h.counts {
		if c >= rank {
			return min(highest(h.buckets[i]), h.max)
		}
		rank -= c
	}
	return h.max
}

// Summary describes a set of durations in milliseconds.
type Summary struct {
	Count  uint64 `json:"count"`
	MinMS  int64  `json:"min_ms"`
	P50MS  int64  `json:"p50_ms"`
	P90MS  int64  `json:"p90_ms"`
	P99MS  int64  `json:"p99_ms"`
	P999MS int64  `json:"p99_9_ms"`
	MaxMS  int64  `json:"max_ms"`
}

// summary returns nil for an empty histogram.
func (h *histogram) summary() *Summary {
	if h.n == 0 {
		return nil
	}
	return &Summary{
		Count: h.n, MinMS: h.min, MaxMS: h.max,
		P50MS: h.percentile(500), P90MS: h.percentile(900), P99MS: h.percentile(990), P999MS: h.percentile(999),
	}
}
