package disorder

import (
	"cmp"
	"math"
	"slices"
)

// Budget is a tuning whose cost is measured.
type Budget struct {
	OutOfOrdernessMS  int64 `json:"out_of_orderness_ms"`
	AllowedLatenessMS int64 `json:"allowed_lateness_ms"`
	// Names are of what uses the budget, such as a feature; none for a mere
	// candidate.
	Names []string `json:"names,omitempty"`
}

// reach is the disorder from which on a reading is too late, less 1 ms.
func (b Budget) reach() int64 {
	if b.AllowedLatenessMS > math.MaxInt64-b.OutOfOrdernessMS {
		return math.MaxInt64
	}
	return b.OutOfOrdernessMS + b.AllowedLatenessMS
}

const (
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// Candidates returns the budgets that are always worth a look.
func Candidates() (all []Budget) {
	for _, b := range [...]int64{0, second, 5 * second, 20 * second, minute, 5 * minute} {
		for _, l := range [...]int64{minute, 10 * minute, hour} {
			all = append(all, Budget{OutOfOrdernessMS: b, AllowedLatenessMS: l})
		}
	}
	return all
}

// Use adds a budget that name uses to budgets, which are ascending as those of
// Candidates are and have each budget once.
func Use(budgets []Budget, b Budget, name string) []Budget {
	i, found := slices.BinarySearchFunc(budgets, b, func(x, y Budget) int {
		return cmp.Or(cmp.Compare(x.OutOfOrdernessMS, y.OutOfOrdernessMS), cmp.Compare(x.AllowedLatenessMS, y.AllowedLatenessMS))
	})
	if !found {
		budgets = slices.Insert(budgets, i, b)
	}
	budgets[i].Names = append(budgets[i].Names, name)
	return budgets
}

// rungs are the durations among which recommendations choose: values that a person
// would write, each at most 2.5 times the one before.
var rungs = []int64{
	0, 10, 20, 50, 100, 200, 300, 500,
	1 * second, 2 * second, 3 * second, 5 * second, 10 * second, 15 * second, 20 * second, 30 * second, 45 * second,
	1 * minute, 2 * minute, 3 * minute, 5 * minute, 10 * minute, 15 * minute, 20 * minute, 30 * minute, 45 * minute,
	1 * hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, 1 * day, 2 * day, 3 * day, 7 * day,
}

// LongestRungMS is the highest value that is ever recommended.
const LongestRungMS int64 = 7 * day

// edges are the upper ends of the bins of a plot.
var edges = []int64{0, 10, 100, second, 5 * second, 20 * second, minute, 5 * minute, 10 * minute, hour, day}

// What a recommendation keeps to: at most one reading in corrected is behind the
// watermark, at most one in tooLate too late.
const (
	corrected = 1_000
	tooLate   = 10_000
)

// GoalBehind and GoalTooLate are the shares that a recommendation keeps to.
const (
	GoalBehind  = 1.0 / corrected
	GoalTooLate = 1.0 / tooLate
)

// thresholds returns, ascending, every disorder that is asked about: what the
// budgets, the recommendations and the plot compare with.
func thresholds(budgets []Budget) []int64 {
	all := slices.Clone(edges)
	for _, b := range budgets {
		all = append(all, b.OutOfOrdernessMS, b.reach())
	}
	for _, b := range rungs {
		for _, l := range rungs {
			all = append(all, b+l)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// tally counts exactly how many values are above each of its thresholds.
type tally struct {
	thresholds []int64  // ascending; shared between tallies
	counts     []uint64 // [i] of values in (thresholds[i-1], thresholds[i]]; one more beyond the last
	n          uint64
}

func newTally(thresholds []int64) tally {
	return tally{thresholds: thresholds, counts: make([]uint64, len(thresholds)+1)}
}

func (t *tally) add(v int64) {
	i := 0
	if v > t.thresholds[0] { // most readings are in order
		i, _ = slices.BinarySearch(t.thresholds, v)
	}
	t.counts[i]++
	t.n++
}

// above returns how many values are above threshold.
func (t *tally) above(threshold int64) (n uint64) {
	i, found := slices.BinarySearch(t.thresholds, threshold)
	if !found {
		panic("disorder: asked about a value that is no threshold")
	}
	for _, c := range t.counts[i+1:] {
		n += c
	}
	return n
}

// cost is what the budget would have cost.
func (t *tally) cost(b Budget) Cost {
	late := t.above(b.reach())
	c := Cost{Budget: b, CorrectedReadings: t.above(b.OutOfOrdernessMS) - late, TooLateReadings: late}
	if t.n > 0 {
		c.Corrected, c.TooLate = float64(c.CorrectedReadings)/float64(t.n), float64(late)/float64(t.n)
	}
	return c
}

// recommend returns the budget of the smallest out-of-orderness that keeps to
// GoalBehind, with the smallest lateness that keeps to GoalTooLate, or nil if no
// rung does or nothing was measured.
func (t *tally) recommend() *Cost {
	if t.n == 0 {
		return nil
	}
	for _, b := range rungs {
		if t.above(b) > t.n/corrected {
			continue
		}
		for _, l := range rungs {
			if t.above(b+l) <= t.n/tooLate {
				c := t.cost(Budget{OutOfOrdernessMS: b, AllowedLatenessMS: l})
				return &c
			}
		}
		return nil
	}
	return nil
}

// bins returns the counts between the edges, as far as any are not 0.
func (t *tally) bins() []Bin {
	bins := []Bin{}
	below, last := uint64(0), 0
	for i, e := range edges {
		upTo := t.n - t.above(e)
		bins = append(bins, Bin{UpToMS: &edges[i], Readings: upTo - below})
		if upTo > below {
			last = i + 1
		}
		below = upTo
	}
	if below < t.n {
		return append(bins, Bin{Readings: t.n - below})
	}
	return bins[:last]
}
