package mqtt

import (
	"time"

	"tidemark/reading"
)

// catchUp follows the backlog of a resumed session: what the broker kept while we
// were away comes before anything live, and all of it would be late if the
// watermark went on (SEMANTICS G4). It is pure; times are on the boot line.
type catchUp struct {
	max     time.Duration
	active  bool
	begun   bool  // the mark is out
	sinceNS int64 // of the connection
	idleNS  int64 // since when nothing came and nothing of ours was open
}

const (
	// catchUpLag is how far behind its arrival a live reading may be.
	catchUpLag = 2 * time.Second
	// catchUpQuiet is for how long nothing comes once a backlog is drained.
	catchUpQuiet = time.Second
)

// connect begins a connection.
func (c *catchUp) connect(resumed bool, nowNS int64) {
	ended := c.begun // an earlier backlog is not drained: it goes on
	*c = catchUp{max: c.max, active: (resumed || ended) && c.max > 0, begun: ended, sinceNS: nowNS, idleNS: nowNS}
}

// readings notes what came, and returns the marks that belong to it: the
// beginning before the first reading, the end behind the first live one.
func (c *catchUp) readings(input string, rs []reading.Reading, nowNS int64) (marks []reading.Mark) {
	if !c.active {
		return nil
	}
	c.idleNS = nowNS
	if !c.begun {
		c.begun = true
		marks = append(marks, reading.InputMark(reading.MarkCatchUpBegin, input, 0))
	}
	over := nowNS-c.sinceNS > int64(c.max)
	for i := range rs {
		if over || live(&rs[i]) {
			c.active, c.begun = false, false
			return append(marks, reading.InputMark(reading.MarkCatchUpEnd, input, i+1))
		}
	}
	return marks
}

// live reports whether r comes straight from its source. A time far ahead of its
// arrival proves nothing but a wrong clock.
func live(r *reading.Reading) bool {
	if r.Delivery.Has(reading.Initial) || !r.Source.Given() {
		return false
	}
	lag := r.IngestNS - r.Source.NS
	return -int64(catchUpLag) < lag && lag < int64(catchUpLag)
}

// wait notes that it is now and how many messages are unacknowledged: a broker
// that waits for us is not drained. It returns the mark of the end, if that is
// due, and when to ask again; zero is never.
func (c *catchUp) wait(input string, open int, nowNS int64) (marks []reading.Mark, again time.Duration) {
	if !c.active {
		return nil, 0
	}
	if open > 0 {
		c.idleNS = nowNS
	}
	if nowNS-c.idleNS < int64(catchUpQuiet) && nowNS-c.sinceNS <= int64(c.max) {
		return nil, catchUpQuiet / 4
	}
	if c.begun {
		marks = []reading.Mark{reading.InputMark(reading.MarkCatchUpEnd, input, 0)}
	}
	c.active, c.begun = false, false
	return marks, 0
}
