package clock

import (
	"sync"
	"time"

	"tidemark/reading"
)

// sources is what is known of the clocks of everything that sends.
type sources struct {
	mu      sync.Mutex
	streams reading.ByTag[*stream]
	clocks  map[sourceKey]*sourceClock
	servers map[string]*serverClock // by input
	segment uint64
	sweptNS int64
}

const (
	// forgetAfter is how long a silent source is remembered.
	forgetAfter = 24 * int64(time.Hour)
	sweepEvery  = int64(time.Hour)
)

func newSources() *sources {
	return &sources{
		clocks: make(map[sourceKey]*sourceClock), servers: make(map[string]*serverClock),
	}
}

// stream returns the history of a series, making one if it is new.
func (s *sources) stream(tag reading.Tag, boot, dCap int64) *stream {
	if st := s.streams.Get(tag); st != nil {
		st.seenNS, st.source.seenNS, st.source.dCap = max(st.seenNS, boot), max(st.source.seenNS, boot), dCap
		return st
	}
	s.sweep(boot)
	series := tag.Value()
	key := sourceKey{series.Input, series.Sender()}
	c, ok := s.clocks[key]
	if !ok {
		c = &sourceClock{key: key, lastMin: -1}
		s.clocks[key] = c
	}
	c.seenNS, c.dCap = max(c.seenNS, boot), dCap
	st := &stream{source: c, lastNS: reading.NoTime, seenNS: boot}
	s.streams.Set(tag, st)
	return st
}

// sweep forgets what has been silent for a day, at most once an hour and only
// when something new came: no state grows without end.
func (s *sources) sweep(boot int64) {
	if boot-s.sweptNS < sweepEvery {
		return
	}
	s.sweptNS = boot
	for tag, st := range s.streams.All() {
		if boot-st.seenNS > forgetAfter {
			s.streams.Delete(tag)
		}
	}
	for key, c := range s.clocks {
		if boot-c.seenNS > forgetAfter {
			delete(s.clocks, key)
		}
	}
}

// Segments are published with this slack, so that a steady clock keeps one.
const (
	segmentMargin = int64(100 * time.Millisecond)
	segmentStale  = int64(500 * time.Millisecond)
)

// publish returns the segment that says i and v, a new one only where the last
// one no longer does.
func (s *sources) publish(last *reading.SourceSegment, i Interval, v reading.SourceVerdict, zone int16) *reading.SourceSegment {
	if last != nil && last.Verdict == v && last.ZoneMin == zone && last.LoNS <= i.LoNS && i.HiNS <= last.HiNS &&
		i.LoNS-last.LoNS < segmentStale && last.HiNS-i.HiNS < segmentStale {
		return last
	}
	s.segment++
	return &reading.SourceSegment{ID: s.segment, LoNS: i.LoNS - segmentMargin, HiNS: i.HiNS + segmentMargin, Verdict: v, ZoneMin: zone}
}

// serverClock is a clock that was measured both ways. Exchanges are in terms of
// CLOCK_BOOTTIME.
type serverClock struct {
	exchanges []Exchange
	interval  Interval // of y
	at        int64
	ok        bool
	steps     int64
	segment   *reading.SourceSegment
}

// ObserveServer takes in a measurement of the clock of an input's server.
func (c *Clock) ObserveServer(input string, x reading.ServerExchange) {
	if x.ReceivedBootNS < x.SentBootNS {
		return
	}
	s := c.sources
	s.mu.Lock()
	defer s.mu.Unlock()
	sc, found := s.servers[input]
	if !found {
		sc = &serverClock{}
		s.servers[input] = sc
	}
	sc.observe(Exchange{T1NS: x.SentBootNS, T4NS: x.ReceivedBootNS, VNS: x.ServerNS, ResolutionNS: x.ResolutionNS})
}

// Vouched returns how far event time has come when a server has said all of ms,
// Unix milliseconds by its own clock: no further than the gateway itself can vouch
// for (SEMANTICS G3), and reading.NoTime where either clock cannot be trusted.
func (c *Clock) Vouched(input string, ms int64) int64 {
	now := c.Now()
	if !c.Trusted() || now.BoundNS < 0 {
		return reading.NoTime
	}
	s := c.sources
	s.mu.Lock()
	defer s.mu.Unlock()
	if sc := s.servers[input]; sc != nil {
		if _, v := sc.view(now.BootNS, now.Segment.WallMinusBootNS, now.BoundNS); v != reading.SourceOK && v != reading.SourceOffsetPossible {
			return reading.NoTime
		}
	}
	return min(ms, reading.FloorMS(now.WallNS-now.BoundNS))
}

func (s *serverClock) observe(x Exchange) {
	if n := len(s.exchanges); n >= exchangesKept {
		s.exchanges = append(s.exchanges[:0], s.exchanges[n-exchangesKept+1:]...)
	}
	s.exchanges = append(s.exchanges, x)
	s.interval, s.ok = intersectExchanges(s.exchanges)
	if !s.ok { // stepped: what came before is of another clock
		s.exchanges = append(s.exchanges[:0], x)
		s.interval, _ = intersectExchanges(s.exchanges)
		s.steps++
	}
	s.at = x.T4NS
}

// view returns θ and the verdict at a moment.
func (s *serverClock) view(boot, wallMinusBoot, e int64) (Interval, reading.SourceVerdict) {
	wide := growth(boot-s.at, sourceRho)
	i := Interval{s.interval.LoNS - wallMinusBoot - wide, s.interval.HiNS - wallMinusBoot + wide}
	if !s.ok {
		return i, reading.SourceStep
	}
	v, _ := verdictTwoWay(i, e)
	return i, v
}
