package clock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tidemark/clock"
	"tidemark/reading"
)

// still is a device on which no time passes.
func still() clock.Device {
	return clock.Device{
		Clocks: func() (int64, int64) { return genesis.UnixNano(), 0 },
		Pair:   func() (int64, int64) { return genesis.UnixNano(), 1e9 },
		BootID: 7,
		Chrony: func() (clock.Chrony, error) { return clock.Chrony{}, errNone },
		Kernel: func() (clock.Kernel, error) { return clock.Kernel{}, errNone },
	}
}

func TestDamagedStateStartsUnknown(t *testing.T) {
	for name, b := range map[string]string{
		"empty":                  "",
		"no JSON":                "{",
		"another version":        `{"version":9}`,
		"no such state":          `{"version":1,"machine":{"state":9}}`,
		"trust without evidence": `{"version":1,"machine":{"state":1}}`,
		"an interval inside out": `{"version":1,"machine":{"held":{"lo_ns":2,"hi_ns":1}}}`,
		"negative growth":        `{"version":1,"certificates":[{"selection":{"rho_ppb":-1}}]}`,
	} {
		c := clock.NewOn(clock.Config{}, clock.Options{}, still())
		if err := c.Restore([]byte(b)); err == nil || !strings.Contains(err.Error(), "starting unknown") {
			t.Errorf("%s: error %v", name, err)
		}
		if c.Now().State != reading.ClockUnknown {
			t.Errorf("%s: state %v", name, c.Now().State)
		}
	}
	c := clock.NewOn(clock.Config{}, clock.Options{}, still())
	for _, b := range []string{"", "{", `{"version":9}`} {
		if err := c.RestoreSources([]byte(b)); err == nil {
			t.Errorf("source clocks of %q are taken", b)
		}
	}
}

// Whatever is restored, a clock that is trusted has a bound, and judging goes on.
func FuzzRestore(f *testing.F) {
	f.Add([]byte(`{"version":1,"boot":7,"boot_ns":1000000000,"wall_minus_boot_ns":1790855999000000000,"machine":{"state":1,"has_held":true,"held":{"lo_ns":-1,"hi_ns":1,"rho_ppb":50000}}}`),
		[]byte(`{"version":1,"sources":[{"i":"in","d":"d1","lo":-5,"n":3,"alo":7200000000000,"an":30,"am":5,"a":true,"age":0}]}`))
	f.Fuzz(func(t *testing.T, state, sources []byte) {
		c := clock.NewOn(clock.Config{}, clock.Options{Log: zerolog.Nop()}, still())
		_ = c.Restore(state)
		_ = c.RestoreSources(sources)
		now := c.Now()
		if now.State.Trusted() && now.BoundNS < 0 {
			t.Errorf("%v without a bound", now.State)
		}
		r := reading.Reading{Tag: reading.MakeTag(reading.Series{Input: "in", Device: "d1", Sensor: "s"}), IngestNS: now.WallNS,
			Source: reading.SourceTime{NS: now.WallNS + 7200*second, Zoned: true}, ServerNS: reading.NoTime}
		r.Stamp.Clock = now.Segment
		c.JudgeReading(&r, clock.InputPolicy{})
		_, _ = c.Status(), c.Persist()
		if err := c.RestoreSources(c.PersistSources()); err != nil {
			t.Error(err)
		}
	})
}

func FuzzParseNumber(f *testing.F) {
	for _, s := range []string{"0", "1790856000.06", "1e400", "-1", "9223372036854775807", "1790856000060000001"} {
		f.Add(s, uint8(2))
	}
	f.Fuzz(func(t *testing.T, text string, unit uint8) {
		u := reading.TimeUnit(unit%4 + 1)
		n, ok := clock.ParseNumber(text, u)
		if ok && n.NS != reading.NoTime && n.Whole && n.Int != 0 && n.NS/u.Nanos() != n.Int {
			t.Errorf("%q: %+v", text, n)
		}
	})
}

// What happened before Run is told by Run, when whoever listens is there.
func TestEventsBeforeRunAreKept(t *testing.T) {
	run(t, four, func(t *testing.T, w *world, c *clock.Clock) {
		w.step(800 * time.Millisecond)
		time.Sleep(10 * time.Second)
		stored := c.Persist()
		w.step(-800 * time.Millisecond) // explained, while nobody ran
		var got []clock.Event
		again := clock.NewOn(clock.Config{}, clock.Options{OnEvent: func(e clock.Event) { got = append(got, e) }}, w.device())
		if err := again.Restore(stored); err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			t.Errorf("told before Run: %+v", got)
		}
		ctx, cancel := timeout(t, time.Second)
		defer cancel()
		if err := again.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(got) < 2 || got[0].Step != "STEP_EXPLAINED" || got[1].Kind != clock.EventEpochCorrection || max(got[1].CorrectionNS+800e6, -got[1].CorrectionNS-800e6) > 1e6 {
			t.Errorf("told by Run: %+v", got)
		}
	})
}
