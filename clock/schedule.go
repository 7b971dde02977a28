package clock

import (
	"math/rand/v2"
	"time"
)

const (
	burstPolls   = 4
	burstSpacing = 2 * time.Second
	// retryEvery is how soon a clock without trust asks again.
	retryEvery = 16 * time.Second
	// calmPolls good polls in a row double the interval.
	calmPolls = 8
)

// schedule says when to poll next (SEMANTICS K4): a burst of four at the start,
// the same after an outage, from PollMin to PollMax while all is well, and soon
// again while the clock is not trusted. Its floor bounds everything but bursts.
type schedule struct {
	min, max, floor time.Duration
	interval        time.Duration
	burst           int // polls left of the burst
	calm            int
	silent          int  // polls in a row without a selection
	out             bool // an outage: eight silent polls, or no trust
}

func newSchedule(c Config) schedule {
	return schedule{min: c.PollMin, max: c.PollMax, floor: c.pollFloor(), interval: c.PollMin, burst: burstPolls - 1}
}

// next returns how long to wait after a poll. trusted is the state it left,
// answered whether it brought a selection.
func (s *schedule) next(trusted, answered bool) time.Duration {
	if answered {
		if s.out {
			s.out, s.burst = false, burstPolls-1
		}
		s.silent = 0
	} else if s.silent++; s.silent >= lostAfter {
		s.out = true
	}
	if s.burst > 0 {
		s.burst--
		return min(burstSpacing, s.min)
	}
	switch {
	case !trusted || !answered:
		s.calm = 0
		s.interval = s.min
		s.out = s.out || !trusted
		if !trusted {
			return s.jitter(min(retryEvery, s.min))
		}
	default:
		if s.calm++; s.calm >= calmPolls {
			s.calm, s.interval = 0, min(2*s.interval, s.max)
		}
	}
	return s.jitter(s.interval)
}

// jitter spreads d by ±10 %, so that gateways that start together don't ask
// together, but never below the floor.
func (s *schedule) jitter(d time.Duration) time.Duration {
	d += time.Duration((rand.Float64()*0.2 - 0.1) * float64(d))
	return max(d, s.floor)
}

// nextPoll is the effect of a kiss code on a server's own interval: RATE doubles
// it, DENY and RSTR end the server, others change nothing. The result lies
// within the limits of K4.
func nextPoll(pollS int64, kiss string) (nextS int64, usable bool) {
	switch kiss {
	case kissDeny, kissRestrict:
		return pollS, false
	case kissRate:
		pollS = min(pollS, pollMaxS) * 2
	}
	return min(max(pollS, pollMinS), pollMaxS), true
}

const (
	pollMinS = int64(PollFloor / time.Second)
	pollMaxS = int64(DefaultPollMax / time.Second)
)
