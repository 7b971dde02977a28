package clock

import (
	"time"

	"tidemark/reading"
)

// InputPolicy is what an input's configuration says about its readings' times.
// The zero value uses source times, rejects wrong ones and takes the defaults.
type InputPolicy struct {
	// Use is the clock to go by: BasisSource, BasisServer or BasisIngest.
	Use       reading.Basis
	WhenWrong reading.Policy
	// Ordered declares that each sensor's readings come in the order of their
	// times, as those of an OPC UA monitored item do.
	Ordered bool
	// Future, Past and Delay are F, P and D_cap; the defaults if zero. For OPC UA
	// Delay is the publishing plus the sampling interval.
	Future, Past, Delay time.Duration
	// Window returns the largest window that selects a series, 0 if none does; nil
	// if no window limits the bound. It is asked for every reading.
	Window func(reading.Tag) time.Duration
}

// arrival is what vouches for a reading's ingest time.
type arrival struct {
	state         reading.ClockState
	boundNS       int64
	retroNS       int64
	boot          int64 // CLOCK_BOOTTIME of the arrival
	wallMinusBoot int64 // with retroNS in it
	local         bool
}

// vouched reports whether the gateway vouches for the ingest time.
func (a arrival) vouched() bool { return a.boundNS >= 0 && (a.state.Trusted() || a.local) }

// JudgeReading rules on r and fills its Stamp. The reader has set IngestNS and
// Stamp.Clock, from one Instant; a reading without Stamp.Clock is judged as from
// an unknown clock. Live readings also teach what is known of their source's
// clock, so each must be judged once, in order of arrival, by one goroutine.
// Readings that were pending or quarantined (reading.Rejudged) are judged by
// what is known of the gateway's clock at their arrival by now; they teach
// nothing and move no watermark.
func (c *Clock) JudgeReading(r *reading.Reading, p InputPolicy) {
	a := c.arrival(r)
	g := c.given(r, &p, a)
	s := c.sources
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stream(r.Tag, a.boot, g.DelayNS)
	live := r.Delivery == 0
	if live && p.Use == reading.BasisSource {
		x := r.Source.NS - r.IngestNS
		tolerable := a.vouched() && r.Source.Given() && abs(x) <= offsetLimit+max(a.boundNS, 0)
		g.History = st.observe(r, g.Number, a.boot, p.Ordered, tolerable, g.DelayNS)
	}
	ts := effectiveTime(&g)
	measurable := a.vouched() && ts != reading.NoTime && p.WhenWrong != reading.PolicyTrusted
	smp := sample{y: ts - a.boot, boot: a.boot, wallMinusBoot: a.wallMinusBoot, e: a.boundNS}
	if measurable {
		g.Source, g.SourceVerdict, g.ZoneMin = st.source.view(smp)
	}
	server := s.servers[r.Tag.Value().Input]
	if server != nil {
		g.Server, g.ServerVerdict = server.view(a.boot, a.wallMinusBoot, a.boundNS)
	}
	if r.Delivery.Has(reading.Rejudged) && provenByStream(r.Stamp.Reason) {
		g.History.Proven = r.Stamp.Reason
	}
	v := Judge(g)
	if live {
		st.judged(&v)
	}
	fill(r, v, a, p.WhenWrong)
	if v.Reason >= reading.OffsetAhead && v.Reason <= reading.GPSShaped {
		st.source.wrong++
	}
	switch {
	case v.Basis == reading.BasisServer && server != nil:
		server.segment = s.publish(server.segment, g.Server, g.ServerVerdict, 0)
		r.Stamp.Source = server.segment
	case measurable && st.source.measured():
		st.source.segment = s.publish(st.source.segment, g.Source, g.SourceVerdict, g.ZoneMin)
		r.Stamp.Source = st.source.segment
	}
	if live && measurable && !structuralReason(v.Reason) {
		st.source.feed(smp)
	}
}

// effectiveTime is the source's time as it was meant: in the right unit where the
// policy corrects that; NoTime where there is none to measure a clock by.
func effectiveTime(g *Given) int64 {
	if g.Fault != reading.TimeOK && !g.Number.Sent {
		return reading.NoTime
	}
	if g.Number.Sent {
		fits, r := g.Number.fault()
		switch {
		case r == reading.UnitMismatch && g.Policy == reading.PolicyCorrectUnit:
			return g.Number.in(fits)
		case r != reading.OK:
			return reading.NoTime
		}
	}
	if g.SourceNS == reading.NoTime || g.SourceNS < sentinelBelow || g.SourceNS >= sentinelFrom {
		return reading.NoTime
	}
	return g.SourceNS
}

// structuralReason reports whether r is one of step 1: such a time says nothing
// about the source's clock.
func structuralReason(r reading.Reason) bool {
	return r >= reading.SourceDeclaredBad && r <= reading.TSSentinel
}

// provenByStream reports whether r needs the readings before this one as proof.
func provenByStream(r reading.Reason) bool {
	return r == reading.Frozen || r == reading.UptimeCounter || r == reading.Regression
}

// arrival finds what vouches for r's ingest time: for what arrived under a
// trusted clock, the segment of its arrival; else, on a second verdict, what was
// found out since.
func (c *Clock) arrival(r *reading.Reading) arrival {
	seg := r.Stamp.Clock
	if seg == nil {
		return arrival{boundNS: noBound}
	}
	a := arrival{
		state: seg.State, boot: r.IngestNS - seg.WallMinusBootNS, wallMinusBoot: seg.WallMinusBootNS,
		local: seg.Method == reading.MethodLocal,
	}
	a.boundNS = segmentBound(seg, a.boot)
	if !r.Delivery.Has(reading.Rejudged) {
		return a
	}
	now := c.now.Load().segment
	c.certified(r, seg, now, &a)
	if seg.Boot != now.Boot { // what is known of sources is in terms of this boot
		a.boot = r.IngestNS + a.retroNS - now.WallMinusBootNS
		a.wallMinusBoot = now.WallMinusBootNS
	}
	return a
}

// certified adds what was found out since about an arrival under a clock that was
// not trusted.
func (c *Clock) certified(r *reading.Reading, seg, now *reading.ClockSegment, a *arrival) {
	if seg.State.Trusted() {
		return
	}
	if now.Method == reading.MethodLocal {
		a.state, a.local, a.boundNS = now.State, true, now.E0NS
		return
	}
	if !now.State.Trusted() {
		a.state = now.State
		return
	}
	c.mu.Lock()
	retro, bound, ok := c.epochs.ingest(seg.Boot, seg.Epoch, r.IngestNS)
	c.mu.Unlock()
	if ok {
		a.state, a.retroNS, a.boundNS = now.State, retro, bound
		a.wallMinusBoot += retro
	}
}

// given gathers what is known without the source's history.
func (c *Clock) given(r *reading.Reading, p *InputPolicy, a arrival) Given {
	g := Given{
		IngestNS: r.IngestNS, RetroNS: a.retroNS, State: a.state, BoundNS: a.boundNS, LocalTrust: a.local,
		LeapWindow: c.now.Load().leap.window(r.IngestNS + a.retroNS),
		SourceNS:   r.Source.NS, Fault: r.Source.Fault, Number: numberOf(r.Source),
		TZAssumed:   r.Source.Given() && !r.Source.Zoned,
		TimeQuality: r.Stamp.TimeQuality, HasTimeQuality: r.Stamp.TimeQuality != 0,
		Source: Unmeasured, Server: Unmeasured, ServerNS: r.ServerNS, History: History{PrevNS: reading.NoTime},
		Historical: r.Delivery.Has(reading.Historical), Initial: r.Delivery.Has(reading.Initial),
		Policy: p.WhenWrong, FutureNS: orDefault(p.Future, DefaultFutureNS), PastNS: orDefault(p.Past, DefaultPastNS),
		DelayNS: orDefault(p.Delay, DefaultDelayNS),
	}
	if p.Use == reading.BasisServer || p.Use == reading.BasisIngest {
		g.SourceNS, g.Fault, g.Number = reading.NoTime, reading.TimeNull, Number{}
		g.TZAssumed, g.HasTimeQuality = false, false
	}
	if p.Use == reading.BasisIngest {
		g.ServerNS = reading.NoTime
	}
	if p.Window != nil {
		g.WindowNS = p.Window(r.Tag).Nanoseconds()
	}
	return g
}

func orDefault(d time.Duration, def int64) int64 {
	if d == 0 {
		return def
	}
	return d.Nanoseconds()
}

// fill writes the verdict into r's stamp.
func fill(r *reading.Reading, v Verdict, a arrival, policy reading.Policy) {
	s := &r.Stamp
	s.Disposition, s.Reason, s.Basis, s.Policy, s.Flags = v.Disposition, v.Reason, v.Basis, policy, 0
	s.IngestBound = reading.MakeBound(a.boundNS)
	s.EventBound, s.EventNS, s.WatermarkMS, s.Source = 0, reading.NoTime, reading.NoTime, nil
	if !v.Disposition.Accepted() {
		return
	}
	s.Flags, s.EventBound, s.EventNS = v.Flags, reading.MakeBound(v.EventBound), v.EventNS
	if !r.Delivery.Has(reading.Initial | reading.Historical | reading.Rejudged) {
		s.WatermarkMS = reading.FloorMS(v.WatermarkNS)
	}
}
