package interop

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// plan is a stream of readings with a known truth.
type plan struct {
	sends    []send // in order of time
	truth    map[cell]*sums
	distinct int // readings
	repeated int // publishes beyond the first of a reading
}

// send is one publish; at counts from the beginning of the plan.
type send struct {
	at, taken time.Duration
	sensor    string
	id        string
	value     int64
}

// cell is a window of a sensor; start counts from the beginning of the plan,
// which is the start of a window.
type cell struct {
	sensor  string
	startMS int64
}

type sums struct{ count, sum, min, max int64 }

// newPlan lays out readings of some sensors, each at the given rate a second: one
// in twenty arrives out of order, within the budget, and one in a hundred twice.
// With stragglers one in fifty comes so late that it corrects a window.
func newPlan(seed uint64, sensors, rate int, length time.Duration, stragglers bool) *plan {
	dice := rand.New(rand.NewPCG(seed, 17))
	p := &plan{truth: map[cell]*sums{}}
	step := time.Second / time.Duration(rate)
	for s := range sensors {
		for n, taken := 0, time.Duration(s)*step/time.Duration(sensors); taken < length; n, taken = n+1, taken+step {
			r := send{
				at: taken, taken: taken.Truncate(time.Millisecond), sensor: fmt.Sprintf("s%02d", s),
				id: fmt.Sprintf("s%02d-%d", s, n), value: dice.Int64N(2001) - 1000,
			}
			switch {
			case dice.IntN(50) == 0 && stragglers:
				r.at += windowMS*time.Millisecond + time.Duration(dice.Int64N(int64(lateness/2)))
			case dice.IntN(20) == 0:
				r.at += time.Duration(dice.Int64N(int64(order * 2 / 3)))
			}
			p.add(r)
			if dice.IntN(100) == 0 {
				r.at += time.Duration(dice.Int64N(int64(3 * time.Second)))
				p.sends = append(p.sends, r)
				p.repeated++
			}
		}
	}
	p.sort()
	return p
}

// add puts a reading into the plan and into the truth.
func (p *plan) add(r send) {
	p.sends = append(p.sends, r)
	p.distinct++
	ms := r.taken.Milliseconds()
	p.count(cell{r.sensor, ms - ms%windowMS}, r.value)
}

// count adds a value to the truth of a window.
func (p *plan) count(key cell, value int64) {
	c := p.truth[key]
	if c == nil {
		c = &sums{min: value, max: value}
		p.truth[key] = c
	}
	c.count++
	c.sum += value
	c.min, c.max = min(c.min, value), max(c.max, value)
}

// rewindow lays out the truth anew, for windows of another size and a plan that
// begins at any time, the first window maybe before it.
func (p *plan) rewindow(sizeMS int64, start time.Time) {
	p.truth = map[cell]*sums{}
	counted := map[string]bool{}
	for _, r := range p.sends {
		if !counted[r.id] {
			counted[r.id] = true
			ms := start.Add(r.taken).UnixMilli()
			p.count(cell{r.sensor, ms - ms%sizeMS - start.UnixMilli()}, r.value)
		}
	}
}

func (p *plan) sort() {
	slices.SortStableFunc(p.sends, func(a, b send) int { return cmp.Compare(a.at, b.at) })
}

// nextWindow is the next start of a window at least so far ahead.
func nextWindow(ahead time.Duration) time.Time {
	ms := time.Now().Add(ahead).UnixMilli()
	return time.UnixMilli(ms - ms%windowMS + windowMS)
}
