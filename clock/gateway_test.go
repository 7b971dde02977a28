package clock_test

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tidemark/clock"
	"tidemark/reading"
)

func four(w *world) clock.Config {
	return clock.Config{Servers: w.addServers("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")}
}

func wantState(t *testing.T, c *clock.Clock, want reading.ClockState) {
	t.Helper()
	if got := c.Now().State; got != want {
		t.Errorf("state %v, want %v; %s", got, want, c.Advice())
	}
}

// State and bound: two polls with a majority, K4: the burst at the start.
func TestStartsUnknownAndNeedsTwoPolls(t *testing.T) {
	run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
		wantState(t, c, reading.ClockUnknown)
		time.Sleep(time.Second)
		wantState(t, c, reading.ClockUnknown) // one poll agreed
		if c.Now().BoundNS != -1 {
			t.Errorf("an unknown clock states a bound")
		}
		time.Sleep(2 * time.Second) // the burst's second poll
		wantState(t, c, reading.ClockSynchronized)
		if got := c.Now().Segment.Servers; got != 4 {
			t.Errorf("%d servers agree, want 4", got)
		}
		inBound(t, w, c)
	})
}

// K1: four servers tolerate a liar.
func TestOneLiarOfFourIsNamed(t *testing.T) {
	run(t, func(w *world) clock.Config {
		cfg := four(w)
		w.servers["10.0.0.4"].off = 200 * time.Millisecond
		return cfg
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(10 * time.Second)
		wantState(t, c, reading.ClockSynchronized)
		inBound(t, w, c)
		for _, s := range c.Status().Servers {
			want := "truechimer"
			if s.Address == "10.0.0.4" {
				want = "falseticker"
			}
			if s.Verdict != want {
				t.Errorf("%s is a %s, want %s", s.Address, s.Verdict, want)
			}
		}
	})
}

// K1: half of the servers are no majority.
func TestTwoLiarsOfFourAreNoMajority(t *testing.T) {
	run(t, func(w *world) clock.Config {
		cfg := four(w)
		w.servers["10.0.0.3"].off = time.Hour
		w.servers["10.0.0.4"].off = time.Hour
		return cfg
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(10 * time.Second)
		wantState(t, c, reading.ClockUnreliable)
		w.set(func() { w.servers["10.0.0.4"].off = 0 })
		time.Sleep(3 * time.Minute)
		wantState(t, c, reading.ClockSynchronized)
		inBound(t, w, c)
	})
}

// Two liars that remain when the honest servers are away must not win.
func TestFewAnswersAreNoMajorityOfAll(t *testing.T) {
	run(t, func(w *world) clock.Config {
		cfg := four(w)
		for _, s := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
			w.servers[s].err = clock.TimeoutError()
		}
		w.servers["10.0.0.4"].off = time.Hour
		return cfg
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(5 * time.Minute)
		wantState(t, c, reading.ClockUnknown)
	})
}

// K3: the bound grows on CLOCK_BOOTTIME and never shrinks without evidence.
func TestOutageGrowsTheBoundAndEnds(t *testing.T) {
	run(t, func(w *world) clock.Config { w.drift = 40_000; return four(w) }, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(5 * time.Minute)
		wantState(t, c, reading.ClockSynchronized)
		w.set(func() {
			for _, s := range w.servers {
				s.err = clock.TimeoutError()
			}
		})
		last := c.Now().BoundNS
		for range 40 {
			time.Sleep(time.Minute)
			inBound(t, w, c)
			if e := c.Now().BoundNS; e < last {
				t.Fatalf("the bound shrank from %d to %d ns without evidence", last, e)
			} else {
				last = e
			}
		}
		wantState(t, c, reading.ClockFreeRunning)
		w.set(func() {
			for _, s := range w.servers {
				s.err = nil
			}
		})
		time.Sleep(2 * time.Minute)
		wantState(t, c, reading.ClockSynchronized)
		inBound(t, w, c)
	})
}

// K5: an unexplained step, and one that takes away what was measured.
func TestUnexplainedStepDisruptsAndRequalifies(t *testing.T) {
	run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(time.Minute)
		before := c.Now()
		w.step(time.Hour)
		after := c.Now() // noticed by the very next look
		if after.State != reading.ClockDisrupted || after.BoundNS != -1 {
			t.Errorf("after a step: %v with bound %d", after.State, after.BoundNS)
		}
		if after.Segment.Epoch != before.Segment.Epoch+1 {
			t.Errorf("a step opens no epoch")
		}
		if d := after.GatewayMS - before.GatewayMS; d < 0 || d > 100 {
			t.Errorf("gateway time moved by %d ms with the wall clock", d)
		}
		time.Sleep(2 * time.Minute)
		if got := c.Now().State; got != reading.ClockUnknown { // an hour off is not to be believed
			t.Errorf("an hour off and %v", got)
		}
		w.step(-time.Hour)
		if got := c.Now().State; got != reading.ClockSynchronized { // taken away as measured
			t.Errorf("after the explained step back: %v", got)
		}
		inBound(t, w, c)
	})
}

// A boot that believes in 1970 is unknown until the daemon sets the clock; what
// arrived before can be certified after.
func TestBootIn1970(t *testing.T) {
	run(t, func(w *world) clock.Config {
		w.ofs = -genesis.UnixNano() + 3600e9
		return four(w)
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(20 * time.Second)
		wantState(t, c, reading.ClockUnknown)
		r := live(c, w, "t1", 0)
		c.JudgeReading(&r, clock.InputPolicy{})
		if r.Stamp.Disposition != reading.Pending || r.Stamp.Reason != reading.GWUnknown {
			t.Errorf("before the sync: %v %v", r.Stamp.Disposition, r.Stamp.Reason)
		}
		event := r.Source.NS
		w.set(func() { w.ofs = 2e6 })              // chronyd steps it to within 2 ms
		wantState(t, c, reading.ClockSynchronized) // by the very next look
		inBound(t, w, c)
		r.Delivery |= reading.Rejudged
		c.JudgeReading(&r, clock.InputPolicy{})
		s := r.Stamp
		if s.Disposition != reading.Flag || s.Flags != reading.RetroCorrected || s.EventNS != event || s.WatermarkMS != reading.NoTime {
			t.Errorf("after the sync: %v %v %v event %d", s.Disposition, s.Reason, s.Flags.Names(), s.EventNS-event)
		}
		if !s.IngestBound.Known() || s.IngestBound.NS() > 50e6 {
			t.Errorf("the ingest time is certified to %d ns", s.IngestBound.NS())
		}
	})
}

// K7: a clock of 2090 does not raise the time floor, and is judged like any other.
func TestBootIn2090(t *testing.T) {
	run(t, func(w *world) clock.Config {
		w.ofs = int64(64*365*24) * hour
		return four(w)
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(5 * time.Minute)
		wantState(t, c, reading.ClockUnknown)
		if f := c.Status().FloorNS; f != 0 {
			t.Errorf("time floor %d", f)
		}
		w.set(func() { w.ofs = 0 })
		time.Sleep(2 * time.Second)
		wantState(t, c, reading.ClockSynchronized)
		inBound(t, w, c)
		corrected := false
		for _, e := range w.events {
			corrected = corrected || e.Kind == clock.EventEpochCorrection && e.CorrectedEpoch == 0 && e.CorrectionBoundNS < 100e6
		}
		if !corrected {
			t.Errorf("no correction of the first epoch: %+v", w.events)
		}
	})
}

// K7: a clock below the highest time ever confirmed is wrong, not early, even where
// the host's clock is believed unchecked.
func TestTimeFloor(t *testing.T) {
	run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(10 * time.Minute)
		stored := c.Persist()
		w.set(func() { w.bootID, w.ofs = w.bootID+1, -24*hour })
		again := clock.NewOn(clock.Config{Trust: clock.TrustLocal}, clock.Options{}, w.device())
		if err := again.Restore(stored); err != nil {
			t.Fatal(err)
		}
		if again.Trusted() || again.Advice() == "" {
			t.Errorf("a clock a day below the floor is trusted: %q", again.Advice())
		}
	})
}

// K3: suspend counts.
func TestSuspendCountsAsMissedPolls(t *testing.T) {
	run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(time.Minute)
		before := c.Now()
		w.set(func() { w.slept += 2 * 3600e9 })
		after := c.Now()
		if after.State != reading.ClockFreeRunning || after.Segment.Epoch != before.Segment.Epoch {
			t.Errorf("after two hours of sleep: %v, epoch %d", after.State, after.Segment.Epoch)
		}
		if d := after.GatewayMS - before.GatewayMS; d < 7_200_000 {
			t.Errorf("gateway time slept: %d ms", d)
		}
		if after.BoundNS < before.BoundNS+7200*50_000 {
			t.Errorf("the bound did not grow over the sleep: %d", after.BoundNS)
		}
	})
}

// K6: new evidence that contradicts the held bound makes the clock unreliable.
func TestContradictedHoldover(t *testing.T) {
	run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(10 * time.Minute)
		w.set(func() {
			for _, s := range w.servers {
				s.off = 3 * time.Second
			}
		})
		for range 150 {
			time.Sleep(time.Second)
			if c.Now().State == reading.ClockUnreliable {
				break
			}
		}
		wantState(t, c, reading.ClockUnreliable)
		var suspect clock.Event
		for _, e := range w.events {
			if e.SuspectFromNS != 0 {
				suspect = e
			}
		}
		if d := suspect.SuspectToNS - suspect.SuspectFromNS; d <= 0 || d > 200e9 {
			t.Errorf("suspect are %d ns, want those since the last good selection", d)
		}
	})
}

// K4: the selection survives a restart within the boot, and only that.
func TestRestartWithinABootResumes(t *testing.T) {
	run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(time.Minute)
		stored, gateway := c.Persist(), c.Now().GatewayMS
		time.Sleep(30 * time.Second)
		again := clock.NewOn(clock.Config{Servers: []string{"10.0.0.1"}}, clock.Options{Log: zerolog.Nop()}, w.device())
		if err := again.Restore(stored); err != nil {
			t.Fatal(err)
		}
		again.ResumeGateway(gateway)
		wantState(t, again, reading.ClockSynchronized)
		inBound(t, w, again)
		if now := again.Now(); now.GatewayMS != gateway || now.Segment.Method != reading.MethodHeld {
			t.Errorf("gateway time %d, want %d; method %v", now.GatewayMS, gateway, now.Segment.Method)
		}
		w.step(time.Minute)
		third := clock.NewOn(clock.Config{}, clock.Options{Log: zerolog.Nop()}, w.device())
		if err := third.Restore(stored); err != nil {
			t.Fatal(err)
		}
		wantState(t, third, reading.ClockDisrupted)
		w.bootID++
		other := clock.NewOn(clock.Config{}, clock.Options{Log: zerolog.Nop()}, w.device())
		if err := other.Restore(stored); err != nil {
			t.Fatal(err)
		}
		wantState(t, other, reading.ClockUnknown)
	})
}

// K5: a start that takes long, because a store recovers, sees a step at whatever
// point of it the wall clock is set, and tells it once.
func TestAStepWhileAStartRecovers(t *testing.T) {
	for _, c := range []struct {
		when      string
		step      int // before this of three looks at the clock; the second is Restore's
		rebooted  bool
		state     reading.ClockState
		newEpochs uint32
	}{
		{"before restoring", 0, false, reading.ClockDisrupted, 1},
		{"seen by restoring", 1, false, reading.ClockDisrupted, 1},
		{"after restoring", 2, false, reading.ClockDisrupted, 1},
		{"before restoring, another boot", 0, true, reading.ClockUnknown, 1},
		{"seen by restoring, another boot", 1, true, reading.ClockUnknown, 1},
		{"after restoring, another boot", 2, true, reading.ClockDisrupted, 2}, // the boot's own, and the step's
	} {
		t.Run(c.when, func(t *testing.T) {
			run(t, four, func(t *testing.T, w *world, running *clock.Clock) {
				time.Sleep(time.Minute)
				w.step(time.Millisecond * 10)
				time.Sleep(time.Minute)
				stored, before := running.Persist(), running.Now()
				if c.rebooted {
					w.bootID++
				}
				var told []clock.Event
				again := clock.NewOn(four(w), clock.Options{Log: zerolog.Nop(), OnEvent: func(e clock.Event) { told = append(told, e) }}, w.device())
				looks := []func(){
					func() { again.Now() },
					func() {
						if err := again.Restore(stored); err != nil {
							t.Fatal(err)
						}
						again.ResumeGateway(before.GatewayMS)
					},
					func() { again.Now() },
				}
				for i, look := range looks {
					if i == c.step {
						w.step(100 * time.Millisecond)
					}
					look()
					time.Sleep(time.Second)
				}
				wantState(t, again, c.state)
				now := again.Now()
				if now.BoundNS != -1 || now.Segment.Epoch != before.Segment.Epoch+c.newEpochs || now.GatewayMS < before.GatewayMS {
					t.Errorf("bound %d, %d epochs on, gateway time %d after %d", now.BoundNS, now.Segment.Epoch-before.Segment.Epoch, now.GatewayMS, before.GatewayMS)
				}
				r := live(again, w, "t1", 0)
				if again.JudgeReading(&r, clock.InputPolicy{}); r.Stamp.Disposition != reading.Pending || r.Stamp.WatermarkMS != reading.NoTime {
					t.Errorf("after the step: %v, watermark %d", r.Stamp.Disposition, r.Stamp.WatermarkMS)
				}

				ctx, cancel := timeout(t, time.Minute)
				defer cancel()
				if err := again.Run(ctx); err != nil {
					t.Fatal(err)
				}
				wantState(t, again, reading.ClockSynchronized)
				inBound(t, w, again)
				r.Delivery |= reading.Rejudged
				if again.JudgeReading(&r, clock.InputPolicy{}); r.Stamp.Disposition != reading.Flag && r.Stamp.Disposition != reading.Accept {
					t.Errorf("judged again: %v %v", r.Stamp.Disposition, r.Stamp.Reason)
				}
				steps := 0
				for _, e := range told {
					if e.Step == "STEP_UNEXPLAINED" {
						steps++
						if e.Epoch <= before.Segment.Epoch {
							t.Errorf("a step into epoch %d was told, after epoch %d", e.Epoch, before.Segment.Epoch)
						}
					}
				}
				if want := c.state == reading.ClockDisrupted; (steps == 1) != want {
					t.Errorf("%d steps were told: %+v", steps, told)
				}
			})
		})
	}
}

// K4: RATE doubles the interval, DENY ends the server.
func TestKissCodes(t *testing.T) {
	run(t, func(w *world) clock.Config {
		cfg := four(w)
		w.servers["10.0.0.1"].err = clock.KissError("RATE")
		w.servers["10.0.0.2"].err = clock.KissError("DENY")
		return cfg
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(time.Hour)
		if n := w.polls("10.0.0.2"); n != 1 {
			t.Errorf("a server that denies was asked %d times", n)
		}
		if n := w.polls("10.0.0.1"); n > 10 { // 128, 256, 512, 1024 s …
			t.Errorf("a server that limits the rate was asked %d times in an hour", n)
		}
		wantState(t, c, reading.ClockSynchronized)
	})
}

// A kiss code says how often to ask and nothing about the time (RFC 5905 §7.4): the
// server's last answer votes on, whether the code is RATE or one that has no
// significance.
func TestAKissCodeIsNoFalseTime(t *testing.T) {
	for _, code := range []string{"RATE", "INIT", "XFOO"} {
		run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
			time.Sleep(10 * time.Second)
			w.set(func() {
				for _, s := range w.servers {
					s.err = clock.KissError(code)
				}
				w.servers["10.0.0.1"].err = nil
			})
			time.Sleep(2 * time.Minute)
			wantState(t, c, reading.ClockSynchronized)
			if now := c.Now(); now.Segment.Servers != 4 {
				t.Errorf("%s: %d servers agree, want 4", code, now.Segment.Servers)
			}
			inBound(t, w, c)
			s := c.Status().Servers[1]
			if s.Verdict != "kiss_"+code || s.Faults["kiss"] == 0 || s.Ended {
				t.Errorf("%s: %+v", code, s)
			}
		})
	}
}

// K4: 64 s to 1024 s, and never below the floor.
func TestPollingLimits(t *testing.T) {
	run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(6 * time.Hour)
		if n := w.polls("10.0.0.1"); n < 20 || n > 90 {
			t.Errorf("%d polls in six calm hours", n)
		}
	})
	run(t, func(w *world) clock.Config {
		cfg := four(w)
		for _, s := range w.servers {
			s.err = clock.TimeoutError()
		}
		return cfg
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(time.Hour)
		if n := w.polls("10.0.0.1"); n > 3600/15+4 {
			t.Errorf("%d polls in an hour without answers", n)
		}
	})
}

// K2: the daemon stands in where no server is configured; a local reference does not.
func TestHostDaemonStandsIn(t *testing.T) {
	run(t, func(w *world) clock.Config {
		w.chrony = func() (clock.Chrony, error) {
			return clock.Chrony{RefID: 0xCB00710F, Synchronised: true, SystemTimeNS: -6523, RootDelayNS: 13639022, RootDispersionNS: 1100737}, nil
		}
		return clock.Config{}
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(5 * time.Second)
		wantState(t, c, reading.ClockSynchronized)
		if now := c.Now(); now.BoundNS < 7926771 || now.BoundNS > 9e6 || now.Segment.Method != reading.MethodChrony {
			t.Errorf("bound %d by %v", now.BoundNS, now.Segment.Method)
		}
		w.set(func() {
			w.chrony = func() (clock.Chrony, error) { return clock.Chrony{RefID: 0x7F7F0101, Synchronised: true}, nil }
		})
		time.Sleep(20 * time.Minute)
		wantState(t, c, reading.ClockFreeRunning)
	})
	run(t, func(w *world) clock.Config { return clock.Config{} }, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(time.Minute)
		wantState(t, c, reading.ClockUnknown)
		if c.Advice() == "" || c.Trusted() {
			t.Errorf("no source of time, and trusted %v, advice %q", c.Trusted(), c.Advice())
		}
	})
}

// A daemon that is sure of another time than the servers makes nobody right.
func TestDisjointMethods(t *testing.T) {
	run(t, func(w *world) clock.Config {
		w.ofs = int64(500 * time.Millisecond)
		w.chrony = func() (clock.Chrony, error) {
			return clock.Chrony{RefID: 0xCB00710F, Synchronised: true, RootDelayNS: 1e6, RootDispersionNS: 1e6}, nil
		}
		return four(w)
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(10 * time.Second)
		wantState(t, c, reading.ClockUnreliable)
	})
}

// clock.trust: local, with the configured bound and state unknown.
func TestTrustLocal(t *testing.T) {
	run(t, func(w *world) clock.Config {
		return clock.Config{Trust: clock.TrustLocal, LocalBound: 50 * time.Millisecond}
	},
		func(t *testing.T, w *world, c *clock.Clock) {
			wantState(t, c, reading.ClockUnknown)
			if now := c.Now(); !c.Trusted() || now.BoundNS != 50e6 || now.Segment.Method != reading.MethodLocal {
				t.Errorf("trusted %v with bound %d by %v", c.Trusted(), now.BoundNS, now.Segment.Method)
			}
			r := live(c, w, "t1", -10*time.Millisecond)
			c.JudgeReading(&r, clock.InputPolicy{})
			if r.Stamp.Disposition != reading.Accept {
				t.Errorf("%v %v", r.Stamp.Disposition, r.Stamp.Reason)
			}
		})
}

// K1: stratum 10 and above is a local reference.
func TestLocalReferencesDoNotVote(t *testing.T) {
	run(t, func(w *world) clock.Config {
		cfg := four(w)
		for _, s := range w.servers {
			s.stratum = 10
		}
		return cfg
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(time.Minute)
		wantState(t, c, reading.ClockUnknown)
		if got := c.Status().Servers[0].Verdict; got != "local" {
			t.Errorf("verdict %q", got)
		}
	})
}

// live makes a reading that arrives now, stamped lag ahead of true time.
func live(c *clock.Clock, w *world, sensor string, ahead time.Duration) reading.Reading {
	now := c.Now()
	w.mu.Lock()
	ts := w.trueNS() + ahead.Nanoseconds()
	w.mu.Unlock()
	r := reading.Reading{
		Tag: reading.MakeTag(reading.Series{Input: "in", Device: "d1", Sensor: sensor}), Value: reading.IntValue(ts),
		Source: reading.SourceTime{NS: ts, Zoned: true}, ServerNS: reading.NoTime, IngestNS: now.WallNS,
	}
	r.Stamp.Clock, r.Stamp.IngestBound = now.Segment, reading.MakeBound(now.BoundNS)
	return r
}

// A server whose name resolves to nothing is silent and counted, and votes once it
// does; the clock waits for no one.
func TestAServerThatResolvesLater(t *testing.T) {
	run(t, func(w *world) clock.Config {
		cfg := four(w)
		w.servers["10.0.0.4"].err = clock.DNSError()
		return cfg
	}, func(t *testing.T, w *world, c *clock.Clock) {
		time.Sleep(10 * time.Second)
		wantState(t, c, reading.ClockSynchronized)
		if s := c.Status().Servers[3]; s.Verdict != "dns" || s.Faults["dns"] == 0 || s.Error == "" {
			t.Errorf("while it resolves to nothing: %+v", s)
		}
		w.set(func() { w.servers["10.0.0.4"].err = nil })
		time.Sleep(3 * time.Minute)
		if s := c.Status().Servers[3]; s.Verdict != "truechimer" || c.Now().Segment.Servers != 4 {
			t.Errorf("once it resolves: %+v", s)
		}
	})
}
