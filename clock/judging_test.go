package clock_test

import (
	"testing"
	"time"

	"tidemark/clock"
	"tidemark/reading"
)

// bench judges readings against a synchronized clock in a fake world.
type bench struct {
	t *testing.T
	w *world
	c *clock.Clock
	p clock.InputPolicy

	dispositions map[reading.Disposition]int
	reasons      map[reading.Reason]int
	last         reading.Stamp
}

func onBench(t *testing.T, p clock.InputPolicy, f func(b *bench)) {
	t.Helper()
	run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(10 * time.Second)
		b := &bench{t: t, w: w, c: c, p: p, dispositions: map[reading.Disposition]int{}, reasons: map[reading.Reason]int{}}
		f(b)
	})
}

// from makes a reading that arrives now with the given stamp.
func (b *bench) from(device, sensor string, ts int64, value int64) reading.Reading {
	r := live(b.c, b.w, sensor, 0)
	r.Tag = reading.MakeTag(reading.Series{Input: "in", Device: device, Sensor: sensor})
	r.Source.NS, r.Value = ts, reading.IntValue(value)
	return r
}

func (b *bench) judge(r reading.Reading) reading.Stamp {
	b.c.JudgeReading(&r, b.p)
	b.last = r.Stamp
	b.dispositions[r.Stamp.Disposition]++
	b.reasons[r.Stamp.Reason]++
	return r.Stamp
}

func (b *bench) trueNS() int64 {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.w.trueNS()
}

// allAccepted fails if any reading was not.
func (b *bench) allAccepted() {
	b.t.Helper()
	if n := b.dispositions[reading.Quarantine] + b.dispositions[reading.Pending]; n > 0 {
		b.t.Errorf("%d readings not accepted: %v", n, b.reasons)
	}
}

const second = int64(time.Second)

// Honest workloads are left alone.
func TestHonestWorkloads(t *testing.T) {
	t.Run("an hour of backlog", func(t *testing.T) {
		onBench(t, clock.InputPolicy{Window: fiveMinutes}, func(b *bench) {
			for i := range 60 {
				b.judge(b.from("d", "s", b.trueNS()-20e6, int64(i)))
				time.Sleep(time.Second)
			}
			start := b.trueNS()
			for i := range int64(3600) { // then it drains at 30 readings a second
				time.Sleep(time.Second / 30)
				b.judge(b.from("d", "s", start-3600*second+i*second, i))
			}
			b.allAccepted()
		})
	})
	t.Run("backlog from the first reading on", func(t *testing.T) {
		onBench(t, clock.InputPolicy{Window: fiveMinutes}, func(b *bench) {
			start := b.trueNS()
			for i := range int64(3600) {
				time.Sleep(time.Second / 4)
				b.judge(b.from("d", "s", start-3600*second+i*second, i))
			}
			b.allAccepted()
		})
	})
	t.Run("a static tag", func(t *testing.T) {
		onBench(t, clock.InputPolicy{Ordered: true, Window: fiveMinutes}, func(b *bench) {
			ts := b.trueNS()
			for range 600 {
				b.judge(b.from("d", "s", ts, 5))
				time.Sleep(time.Second)
			}
			b.allAccepted()
		})
	})
	t.Run("disorder of 15 s on one connection", func(t *testing.T) {
		onBench(t, clock.InputPolicy{Window: fiveMinutes}, func(b *bench) {
			for i := range int64(600) {
				lag := b.w.rng.Int64N(15 * second)
				b.judge(b.from("d", "s", b.trueNS()-lag, i))
				time.Sleep(time.Second)
			}
			b.allAccepted()
		})
	})
	for res, name := range map[int64]string{second: "second", 60 * second: "minute"} {
		t.Run(name+"-resolution stamps at 10 Hz", func(t *testing.T) {
			onBench(t, clock.InputPolicy{Ordered: true, Window: fiveMinutes}, func(b *bench) {
				for i := range int64(3000) {
					b.judge(b.from("d", "s", b.trueNS()/res*res, i))
					time.Sleep(100 * time.Millisecond)
				}
				b.allAccepted()
			})
		})
	}
	t.Run("a PLC set back by an hour in autumn", func(t *testing.T) {
		onBench(t, clock.InputPolicy{Ordered: true, Window: fiveMinutes}, func(b *bench) {
			for i := range int64(300) { // summer time labelled as standard time
				b.judge(b.from("d", "s", b.trueNS()+3600*second-10e6, i))
				time.Sleep(time.Second)
			}
			if b.last.Reason != reading.TZShaped || b.last.Source.ZoneMin != 60 {
				t.Errorf("an hour ahead for five minutes: %v %v", b.last.Disposition, b.last.Reason)
			}
			clear(b.dispositions)
			clear(b.reasons)
			for i := range int64(300) {
				b.judge(b.from("d", "s", b.trueNS()-10e6, i))
				time.Sleep(time.Second)
			}
			b.allAccepted()
			if b.last.Disposition != reading.Accept {
				t.Errorf("set right for five minutes: %v %v", b.last.Disposition, b.last.Flags.Names())
			}
		})
	})
	t.Run("one stamp of the future among right ones", func(t *testing.T) {
		onBench(t, clock.InputPolicy{Window: fiveMinutes}, func(b *bench) {
			for i := range int64(300) {
				b.judge(b.from("d", "s", b.trueNS()-10e6, i))
				if i%20 == 7 {
					if s := b.judge(b.from("d", "s2", b.trueNS()+3600*second, i)); s.Reason != reading.Future {
						t.Errorf("an hour ahead: %v", s.Reason)
					}
				}
				time.Sleep(time.Second)
			}
			if n := b.dispositions[reading.Quarantine]; n != 15 {
				t.Errorf("%d quarantined, want the 15 wrong ones: %v", n, b.reasons)
			}
		})
	})
}

func fiveMinutes(reading.Tag) time.Duration { return 5 * time.Minute }

// Wrong clocks are named within 30 readings.
func TestWrongClocksAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		stamp   func(now int64) int64
		reason  reading.Reason
		verdict reading.SourceVerdict
	}{
		"3 s ahead":     {func(now int64) int64 { return now + 3*second }, reading.OffsetAhead, reading.SourceOffsetAhead},
		"TAI":           {func(now int64) int64 { return now + 37*second }, reading.TAIShaped, reading.SourceTAIShaped},
		"GPS":           {func(now int64) int64 { return now + 18*second }, reading.GPSShaped, reading.SourceGPSShaped},
		"UTC+2":         {func(now int64) int64 { return now + 7200*second }, reading.TZShaped, reading.SourceTZShaped},
		"1000 s ahead":  {func(now int64) int64 { return now + 1000*second }, reading.OffsetAhead, reading.SourceOffsetAhead},
		"UTC-5":         {func(now int64) int64 { return now - 18000*second }, reading.TZShaped, reading.SourceTZShaped},
		"1000 s behind": {func(now int64) int64 { return now - 1000*second }, reading.OffsetBehind, reading.SourceOffsetBehind},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, clock.InputPolicy{}, func(b *bench) {
				for i := range int64(30) {
					b.judge(b.from("d", "s", tc.stamp(b.trueNS()-b.w.rng.Int64N(second/5)), i))
					time.Sleep(10 * time.Second)
				}
				if b.last.Disposition != reading.Quarantine || b.last.Reason != tc.reason {
					t.Errorf("%v %v, want %v", b.last.Disposition, b.last.Reason, tc.reason)
				}
				s := b.c.Status().Sources[0]
				if s.Verdict != tc.verdict.String() || s.Advice == "" {
					t.Errorf("status says %s, %q", s.Verdict, s.Advice)
				}
			})
		})
	}
}

func TestCorrectionOfAMeasuredZone(t *testing.T) {
	onBench(t, clock.InputPolicy{WhenWrong: reading.PolicyCorrectTimezone}, func(b *bench) {
		for i := range int64(30) {
			b.judge(b.from("d", "s", b.trueNS()+7200*second, i))
			time.Sleep(10 * time.Second)
		}
		right := b.trueNS()
		s := b.judge(b.from("d", "s", right+7200*second, 0))
		if s.Disposition != reading.Flag || s.Flags != reading.Corrected || s.EventNS != right || s.Basis != reading.BasisCorrected {
			t.Errorf("%v %v %v, off by %d", s.Disposition, s.Reason, s.Flags.Names(), s.EventNS-right)
		}
	})
}

func TestStructuralFaultsNeedNoGatewayClock(t *testing.T) {
	run(t, func(w *world) clock.Config { return clock.Config{} }, func(t *testing.T, w *world, c *clock.Clock) {
		b := &bench{t: t, w: w, c: c, p: clock.InputPolicy{Ordered: true}, dispositions: map[reading.Disposition]int{}, reasons: map[reading.Reason]int{}}
		ts := b.trueNS() + 1234567
		for i := range int64(10) {
			b.judge(b.from("frozen", "s", ts, i))
			time.Sleep(time.Second)
		}
		if b.last.Reason != reading.Frozen {
			t.Errorf("a timestamp that stands still: %v", b.last.Reason)
		}
		b.judge(b.from("back", "s", ts, 0))
		if s := b.judge(b.from("back", "s", ts-3600*second, 1)); s.Reason != reading.Regression {
			t.Errorf("an hour backward in order: %v", s.Reason)
		}
		for i := range int64(10) {
			r := b.from("uptime", "s", 0, i)
			r.Source = reading.SourceTime{NS: (1839 + i) * second, Zoned: true, Unit: reading.UnitSeconds}
			b.judge(r)
			time.Sleep(time.Second)
		}
		if b.last.Reason != reading.UptimeCounter {
			t.Errorf("seconds since the start: %v", b.last.Reason)
		}
		r := b.from("unit", "s", 0, 0)
		r.Source = reading.SourceTime{NS: ts / 1e9 * 1e6, Zoned: true, Unit: reading.UnitMillis}
		if s := b.judge(r); s.Reason != reading.UnitMismatch {
			t.Errorf("seconds sent as milliseconds: %v", s.Reason)
		}
		r.Source = reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeUnparseable, Raw: "soon"}
		if s := b.judge(r); s.Reason != reading.TSUnparseable {
			t.Errorf("no time: %v", s.Reason)
		}
		if s := b.judge(b.from("fine", "s", ts, 0)); s.Reason != reading.GWUnknown || s.Disposition != reading.Pending {
			t.Errorf("right, and the gateway unknown: %v", s.Reason)
		}
	})
}

// The server's clock is measured both ways and judged apart from its devices'.
func TestServerClock(t *testing.T) {
	onBench(t, clock.InputPolicy{Use: reading.BasisServer}, func(b *bench) {
		ask := func(off int64) {
			sent := b.c.Now().BootNS
			time.Sleep(20 * time.Millisecond)
			v := b.trueNS() + off
			time.Sleep(20 * time.Millisecond)
			b.c.ObserveServer("in", reading.ServerExchange{SentBootNS: sent, ReceivedBootNS: b.c.Now().BootNS, ServerNS: v, ResolutionNS: 1e6})
		}
		ask(0)
		r := b.from("d", "s", b.trueNS(), 0)
		r.ServerNS = b.trueNS()
		if s := b.judge(r); s.Flags != reading.ServerTSUsed || s.EventNS != r.ServerNS || s.EventBound.NS() > 60e6 {
			t.Errorf("%v %v, bound %d ns", s.Disposition, s.Flags.Names(), s.EventBound.NS())
		}
		for range 10 {
			ask(5 * second) // it was set 5 s ahead
		}
		r.ServerNS = b.trueNS() + 5*second
		if s := b.judge(r); s.Reason != reading.OffsetAhead {
			t.Errorf("a server 5 s ahead: %v", s.Reason)
		}
		if s := b.c.Status().Sources[0]; !s.Server || s.Steps != 1 {
			t.Errorf("status: %+v", s)
		}
	})
}

func TestSourceEstimatesSurviveARestart(t *testing.T) {
	onBench(t, clock.InputPolicy{}, func(b *bench) {
		for i := range int64(30) {
			b.judge(b.from("wrong", "s", b.trueNS()+7200*second, i))
			b.judge(b.from("right", "s", b.trueNS()-5e6, i))
			time.Sleep(10 * time.Second)
		}
		state, sources := b.c.Persist(), b.c.PersistSources()
		time.Sleep(10 * time.Second)
		again := clock.NewOn(clock.Config{}, clock.Options{}, b.w.device())
		if err := again.Restore(state); err != nil {
			t.Fatal(err)
		}
		if err := again.RestoreSources(sources); err != nil {
			t.Fatal(err)
		}
		b.c = again
		if s := b.judge(b.from("wrong", "s", b.trueNS()+7200*second, 1)); s.Reason != reading.TZShaped {
			t.Errorf("after the restart: %v", s.Reason)
		}
		if s := b.judge(b.from("right", "s", b.trueNS()-5e6, 1)); s.Disposition != reading.Accept || s.Source == nil {
			t.Errorf("after the restart: %v %v", s.Disposition, s.Flags.Names())
		}
	})
}

// A step of the gateway's own clock changes nothing that is known of a source.
func TestAStepOfOursAccusesNobody(t *testing.T) {
	onBench(t, clock.InputPolicy{Window: fiveMinutes}, func(b *bench) {
		b.w.step(-800 * time.Millisecond)
		time.Sleep(5 * time.Minute)
		for i := range int64(60) {
			b.judge(b.from("d", "s", b.trueNS()-5e6, i))
			time.Sleep(time.Second)
		}
		b.w.step(800 * time.Millisecond) // as the polls have measured
		for i := range int64(60) {
			b.judge(b.from("d", "s", b.trueNS()-5e6, i))
			time.Sleep(time.Second)
		}
		b.allAccepted()
	})
}
