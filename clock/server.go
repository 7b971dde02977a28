package clock

import (
	"context"
	"time"
)

// server is one configured NTP server and what came of asking it. Clock.mu
// guards it.
type server struct {
	address string
	// own is an interval that the server asked for (RATE), 0 if it did not.
	own     time.Duration
	notTill int64 // CLOCK_BOOTTIME before which it is left alone
	ended   bool  // it said DENY or RSTR

	last     reply
	hasLast  bool
	fresh    bool   // last is of this round
	silent   int    // polls without an answer since last
	verdict  string // truechimer, falseticker, local or the last fault
	answers  int64
	faults   map[fault]int64
	lastErr  string
	thetaNS  int64 // at the last round
	lambdaNS int64
}

func newServer(address string) *server {
	return &server{address: address, verdict: "not_asked", faults: make(map[fault]int64)}
}

// take records the outcome of one query at bootNS. The servers are polled at
// interval at present.
func (s *server) take(r reply, err error, bootNS int64, interval time.Duration) {
	if err == nil {
		s.last, s.hasLast, s.fresh, s.silent, s.lastErr = r, true, true, 0, ""
		s.answers++
		return
	}
	q := asQueryError(err)
	s.faults[q.fault]++
	s.silent++
	if !q.fault.silence() || s.silent >= lostAfter {
		s.hasLast = false
	}
	s.verdict, s.lastErr = string(q.fault), q.Error()
	if q.fault != faultKiss {
		return
	}
	s.verdict = "kiss_" + q.kiss
	poll := max(s.own, interval, DefaultPollMin)
	next, usable := nextPoll(int64(poll/time.Second), q.kiss)
	if !usable {
		s.ended = true
	} else if q.kiss == kissRate {
		s.own = time.Duration(next) * time.Second
		s.notTill = bootNS + s.own.Nanoseconds()
	}
}

// asked starts the server's own interval anew.
func (s *server) asked(bootNS int64) {
	if s.own > 0 {
		s.notTill = bootNS + s.own.Nanoseconds()
	}
}

// hostStatus is what the last round heard from the host's own daemon.
type hostStatus struct {
	view hostView
	err  string
}

// answer is what one query brought.
type answer struct {
	server *server
	reply  reply
	err    error
}

// askAll asks the given servers at once and waits for all of them.
func (c *Clock) askAll(ctx context.Context, servers []*server) []answer {
	got := make(chan answer, len(servers))
	for _, s := range servers {
		go func() {
			r, err := c.dev.query(ctx, s.address)
			got <- answer{s, r, err}
		}()
	}
	answers := make([]answer, 0, len(servers))
	for range servers {
		answers = append(answers, <-got)
	}
	return answers
}
