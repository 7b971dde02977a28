package gateway

import "time"

// cadence decides when a batch is committed. A commit costs a fixed amount of
// flash however small it is, and a source with a small in-flight window stands
// still until its parcels are acknowledged; cadence weighs the one against the
// other. It is pure: the caller brings the time, on a line that never runs
// backward.
type cadence struct {
	interval time.Duration // a batch waits no longer than this
	minGap   time.Duration // two commits are never closer than this
	bytes    int           // a batch of this size goes at once
	budget   float64       // bytes a day that may be written; 0 is no budget

	last   time.Duration // of the last commit
	tokens float64       // bytes that may be written now, at most a day's worth
	filled time.Duration // when tokens was brought up to date
}

// newCadence starts with a day's budget, so that a start after an outage is not
// slowed by it.
func newCadence(interval, minGap time.Duration, bytes int, budget float64) cadence {
	return cadence{interval: interval, minGap: minGap, bytes: bytes, budget: budget, tokens: budget}
}

// commitOverhead is what one bbolt commit writes beyond its data: two leaf pages,
// the branch above, the freelist and the meta page (buffer/DESIGN.md).
const commitOverhead = 21 << 10

const day = 24 * time.Hour

// pending describes the batch that waits.
type pendingBatch struct {
	since  time.Duration // when its first parcel came
	bytes  int           // estimated
	urgent bool          // a source has run out of in-flight window
}

// due returns how long the batch may still wait at the time now; zero or less
// means that it is due.
func (c *cadence) due(now time.Duration, b pendingBatch) time.Duration {
	wait := b.since + c.interval - now
	if b.urgent || b.bytes >= c.bytes {
		wait = 0
	}
	if gap := c.last + c.minGap - now; wait < gap {
		wait = gap
	}
	return max(wait, c.throttle(now, b.bytes))
}

// throttled reports whether the daily budget is what a batch waits for.
func (c *cadence) throttled(now time.Duration, b pendingBatch) bool {
	return c.throttle(now, b.bytes) > c.interval
}

// throttle returns how long the budget makes a commit of n bytes wait. It never
// holds a batch longer than ten intervals: acknowledgements must go on.
func (c *cadence) throttle(now time.Duration, n int) time.Duration {
	if c.budget == 0 {
		return 0
	}
	c.refill(now)
	short := float64(n+commitOverhead) - c.tokens
	if short <= 0 {
		return 0
	}
	return min(time.Duration(short/c.budget*float64(day)), 10*c.interval)
}

// committed records a commit of n bytes at the time now.
func (c *cadence) committed(now time.Duration, n int) {
	c.last = now
	if c.budget > 0 {
		c.refill(now)
		c.tokens -= float64(n + commitOverhead)
	}
}

func (c *cadence) refill(now time.Duration) {
	c.tokens = min(c.tokens+float64(now-c.filled)/float64(day)*c.budget, c.budget)
	c.filled = now
}
