package clock_test

import (
	"testing"

	"pgregory.net/rapid"

	"tidemark/clock"
	"tidemark/reading"
)

const hour = 3600 * second

// anyGiven draws what may be known of a reading, wrong and right alike.
func anyGiven(t *rapid.T) clock.Given {
	ti := genesis.UnixNano() + rapid.Int64Range(-hour, hour).Draw(t, "ti")
	lead := rapid.OneOf(rapid.Int64Range(-5*second, 5*second), rapid.Int64Range(-400*hour, 400*hour)).Draw(t, "lead")
	g := clock.Given{
		IngestNS: ti, RetroNS: rapid.SampledFrom([]int64{0, 0, 3 * second, -hour}).Draw(t, "retro"),
		State:    reading.ClockState(rapid.IntRange(0, 4).Draw(t, "state")),
		BoundNS:  rapid.OneOf(rapid.Just(int64(-1)), rapid.Int64Range(0, 10*second)).Draw(t, "E"),
		SourceNS: ti + lead, ServerNS: reading.NoTime,
		LocalTrust: rapid.Bool().Draw(t, "local"), LeapWindow: rapid.Bool().Draw(t, "leap"),
		SourceVerdict: reading.SourceVerdict(rapid.IntRange(0, 7).Draw(t, "verdict")),
		ZoneMin:       120, Historical: rapid.Bool().Draw(t, "historical"), Initial: rapid.Bool().Draw(t, "initial"),
		Policy:   reading.Policy(rapid.IntRange(0, 6).Draw(t, "policy")),
		WindowNS: rapid.SampledFrom([]int64{0, second, 300 * second}).Draw(t, "window"),
		FutureNS: clock.DefaultFutureNS, PastNS: clock.DefaultPastNS, DelayNS: clock.DefaultDelayNS,
		History: clock.History{PrevNS: ti + lead + rapid.Int64Range(-3*second, 3*second).Draw(t, "prev"), Ordered: rapid.Bool().Draw(t, "ordered"),
			SameTimeRun: rapid.IntRange(0, 5).Draw(t, "run"), ValueChanged: rapid.Bool().Draw(t, "changed")},
	}
	lo := rapid.Int64Range(-hour, hour).Draw(t, "lo")
	g.Source = clock.Interval{LoNS: lo, HiNS: lo + rapid.Int64Range(0, second).Draw(t, "width")}
	g.Server = clock.Interval{LoNS: -second / 50, HiNS: second / 50}
	if rapid.Bool().Draw(t, "null") {
		g.SourceNS, g.Fault = reading.NoTime, reading.TimeNull
	}
	if rapid.Bool().Draw(t, "server") {
		g.ServerNS = ti + rapid.Int64Range(-hour, hour).Draw(t, "server lead")
	}
	return g
}

// relative are the reasons that need a bound of the gateway's own clock.
func relative(r reading.Reason) bool { return r >= reading.OffsetAhead && r <= reading.BoundTooWide }

func TestAGatewayThatCannotVouchForItselfAccusesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGiven(t)
		vouches := g.State.Trusted() || g.State == reading.ClockUnknown && g.LocalTrust
		v := clock.Judge(g)
		if (!vouches || g.BoundNS < 0) && relative(v.Reason) {
			t.Errorf("accused of %v by a gateway that is %v with bound %d", v.Reason, g.State, g.BoundNS)
		}
		if !vouches && v.Disposition.Accepted() && g.Policy != reading.PolicyTrusted {
			t.Errorf("accepted by a gateway that is %v", g.State)
		}
	})
}

func TestTheWatermarkNeverPassesWhatTheGatewayVouchesFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGiven(t)
		v := clock.Judge(g)
		if v.WatermarkNS == reading.NoTime {
			return
		}
		if !v.Disposition.Accepted() || g.Historical {
			t.Errorf("%v with a watermark candidate", v.Disposition)
		}
		if v.WatermarkNS > v.EventNS {
			t.Errorf("the candidate passes the reading's own time")
		}
		if limit := g.IngestNS + g.RetroNS - g.BoundNS; g.Policy != reading.PolicyTrusted && v.WatermarkNS > limit {
			t.Errorf("the candidate passes t_i − E by %d ns", v.WatermarkNS-limit)
		}
	})
}

// What is accepted passes again, and what is refused is refused again for the
// same reason: the verdict hangs on nothing but the evidence.
func TestJudgingTwiceIsTheSameAsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGiven(t)
		v := clock.Judge(g)
		if again := clock.Judge(g); again != v {
			t.Errorf("judged as %+v, then as %+v", v, again)
		}
		if v.Disposition.Accepted() != (v.EventNS != reading.NoTime) {
			t.Errorf("%v with event time %d", v.Disposition, v.EventNS)
		}
		if (v.Disposition == reading.Flag) != (v.Flags != 0) {
			t.Errorf("%v with flags %v", v.Disposition, v.Flags.Names())
		}
	})
}
