package clock

import (
	"tidemark/reading"
)

// A source's clock seen one way: of t_s − t_i no sample ever exceeds θ, since a
// message cannot arrive before it was sent. Everything here is kept as y = t_s −
// CLOCK_BOOTTIME of the arrival, which no step of our own wall clock disturbs;
// θ = y − (wall − boottime).

const (
	// aheadRun samples in a row from the future turn suspicion of one reading into
	// a statement about the clock.
	aheadRun = 3
	// Evidence that a shape may be acted upon, and that a clock is behind:
	// samples, and one-minute buckets that hold them (SEMANTICS S2, S3).
	evidenceSamples = 10
	evidenceBuckets = 3
	// A clock that was ahead is believed again after this many plausible samples
	// over this long.
	acquitSamples = 3
	acquitAfter   = 10 * int64(1e9)
	// bucketNS is the length of a bucket, buckets how many are kept.
	bucketNS = 60 * int64(1e9)
	buckets  = 60
	// flatWithin is how much the maxima of buckets may differ for a flat hull. A
	// backlog that drains even 1 % faster than real time moves 1.2 s over three.
	flatWithin = int64(5e8)
)

// envelope is the highest sample, lowered by sourceRho since.
type envelope struct {
	y, at int64
	n     int64
}

func (e *envelope) push(y, at int64) {
	if e.n == 0 || y >= e.low(at) {
		e.y, e.at = y, at
	}
	e.n++
}

// low returns the least y that the clock can have at a time, before the sample or
// after.
func (e *envelope) low(at int64) int64 { return e.y - growth(abs(at-e.at), sourceRho) }

// interval returns θ for a wall clock, assuming that the quickest message took
// no longer than dCap.
func (e *envelope) interval(at, wallMinusBoot, dCap int64) Interval {
	lo := e.low(at) - wallMinusBoot
	before := growth(e.at-at, sourceRho) // of a moment before the sample: it may have been higher then
	return Interval{lo, lo + 2*before + dCap}
}

// bucket is the highest sample of one minute.
type bucket struct {
	minute int64
	y      int64
	n      int32
}

// sourceClock is what is known of one device's clock, pooled over its sensors.
type sourceClock struct {
	key      sourceKey
	good     envelope // samples that may be right
	ahead    envelope // samples that are proven to be ahead of true time
	run      int      // of proven samples
	isAhead  bool     // a run of them has been seen, and no acquittal since
	minutes  int      // one-minute buckets with proven samples
	lastMin  int64
	plausN   int // plausible samples since the last proven one, while isAhead
	plausAt  int64
	isBehind bool
	behind   envelope
	history  []bucket // ring of the good samples' buckets, oldest first
	seenNS   int64    // CLOCK_BOOTTIME
	wrong    int64    // readings quarantined for this clock
	dCap     int64
	segment  *reading.SourceSegment
}

type sourceKey struct{ input, device string }

// sample is one live reading's evidence.
type sample struct {
	y, boot       int64
	wallMinusBoot int64
	e             int64 // the gateway's bound
}

func (s sample) x() int64 { return s.y - s.wallMinusBoot }

// proven reports whether the sample alone proves the source ahead.
func (s sample) proven() bool { return s.x()-s.e > offsetLimit }

// measured reports whether anything is known of the clock.
func (c *sourceClock) measured() bool { return c.good.n > 0 || c.isAhead }

// view returns what to judge a reading by: the interval for its source's clock
// and a verdict. A reading is only ever accused of what its own time agrees
// with; the rest of the evidence flags it.
func (c *sourceClock) view(s sample) (Interval, reading.SourceVerdict, int16) {
	if s.proven() {
		if !c.isAhead {
			return Unmeasured, reading.SourceOK, 0 // step 5 deals with a single one
		}
		return c.aheadView(s)
	}
	if c.isBehind && s.y <= c.behind.low(s.boot)+flatWithin {
		i := c.behind.interval(s.boot, s.wallMinusBoot, c.dCap)
		v, zone := verdictOneWay(i, s.e)
		return i, v, zone
	}
	i, v := c.goodView(s)
	if c.isAhead { // set right, or a second clock behind the same name
		v = reading.SourceOffsetPossible
	}
	return i, v, 0
}

func (c *sourceClock) aheadView(s sample) (Interval, reading.SourceVerdict, int16) {
	i := c.ahead.interval(s.boot, s.wallMinusBoot, c.dCap)
	v, zone := verdictOneWay(i, s.e)
	if !c.shapeHolds() && v != reading.SourceOK && v != reading.SourceOffsetPossible {
		v, zone = reading.SourceOffsetAhead, 0
	}
	return i, v, zone
}

// shapeHolds reports whether there is enough evidence to act on a shape of a
// clock that is ahead.
func (c *sourceClock) shapeHolds() bool {
	return c.ahead.n >= evidenceSamples && c.minutes >= evidenceBuckets
}

// goodView is the view of a clock that nothing is proven against. An interval
// far in the past is as good as none: backlog and unchanged values look the
// same.
func (c *sourceClock) goodView(s sample) (Interval, reading.SourceVerdict) {
	if c.good.n == 0 {
		return Unmeasured, reading.SourceOK
	}
	i := c.good.interval(s.boot, s.wallMinusBoot, c.dCap)
	v, _ := verdictOneWay(i, s.e)
	if v == reading.SourceOK {
		return i, v
	}
	if i.HiNS+s.e < -offsetLimit {
		return Unmeasured, reading.SourceOffsetPossible
	}
	return i, reading.SourceOffsetPossible
}

// feed takes in one live sample.
func (c *sourceClock) feed(s sample) {
	if s.proven() {
		c.feedAhead(s)
		return
	}
	c.run = 0
	c.good.push(s.y, s.boot)
	c.acquit(s)
	c.bucket(s)
	if c.isBehind && s.y > c.behind.low(s.boot)+flatWithin {
		c.isBehind, c.history = false, c.history[:0]
		c.good = envelope{y: s.y, at: s.boot, n: 1}
	}
}

func (c *sourceClock) feedAhead(s sample) {
	c.plausN = 0
	if c.run++; c.run == 1 && !c.isAhead {
		c.ahead, c.minutes, c.lastMin = envelope{}, 0, -1 // a new suspicion starts from nothing
	}
	c.ahead.push(s.y, s.boot)
	if m := s.boot / bucketNS; m != c.lastMin {
		c.lastMin = m
		c.minutes++
	}
	c.isAhead = c.isAhead || c.run >= aheadRun
}

// acquit ends the suspicion of a clock that was set right.
func (c *sourceClock) acquit(s sample) {
	if !c.isAhead || s.x() < -offsetLimit-s.e {
		return
	}
	if c.plausN++; c.plausN == 1 {
		c.plausAt = s.boot
	}
	if c.plausN >= acquitSamples && s.boot-c.plausAt >= acquitAfter {
		c.isAhead, c.ahead = false, envelope{}
	}
}

// bucket adds to the minute's bucket and, where one begins, looks back.
func (c *sourceClock) bucket(s sample) {
	m := s.boot / bucketNS
	if n := len(c.history); n > 0 && c.history[n-1].minute == m {
		b := &c.history[n-1]
		b.y, b.n = max(b.y, s.y), b.n+1
	} else {
		if n == buckets {
			c.history = append(c.history[:0], c.history[1:]...)
		}
		c.history = append(c.history, bucket{m, s.y, 1})
	}
	if !c.isBehind && s.x()+c.dCap+s.e < -offsetLimit {
		c.lookBehind(s)
	}
}

// lookBehind finds out whether the clock is behind: enough samples over enough
// buckets with a flat hull, all of them too low.
func (c *sourceClock) lookBehind(s sample) {
	var samples int64
	lo, hi := int64(0), int64(0)
	for k := len(c.history) - 1; k >= 0; k-- {
		b := c.history[k]
		if s.boot/bucketNS-b.minute >= buckets {
			return
		}
		if samples == 0 {
			lo, hi = b.y, b.y
		}
		lo, hi = min(lo, b.y), max(hi, b.y)
		if hi-lo > flatWithin {
			return
		}
		samples += int64(b.n)
		if samples < evidenceSamples || len(c.history)-k < evidenceBuckets {
			continue
		}
		if hi-s.wallMinusBoot+c.dCap+s.e < -offsetLimit {
			c.isBehind, c.behind = true, envelope{y: hi, at: s.boot, n: samples}
		}
		return
	}
}

// drift returns the clock's drift against the gateway's over the last hour, in
// ppb; it needs ten minutes of samples.
func (c *sourceClock) drift() (ppb float64, ok bool) {
	n := len(c.history)
	if n < evidenceSamples || c.history[n-1].minute-c.history[0].minute < 10 {
		return 0, false
	}
	points := make([]point, 0, n)
	for _, b := range c.history {
		points = append(points, point{b.minute * bucketNS, b.y})
	}
	return drift(points)
}
