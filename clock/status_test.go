package clock_test

import (
	"strings"
	"testing"
	"time"

	"tidemark/clock"
	"tidemark/reading"
)

// One wrong reading among right ones is a glitch, and nobody waits.
func TestAGlitchIsNobodysWait(t *testing.T) {
	onBench(t, clock.InputPolicy{}, func(b *bench) {
		for i := range int64(40) {
			off := -5 * second / 1000
			if i%4 == 3 {
				off = 3600 * second
			}
			b.judge(b.from("d", "s", b.trueNS()+off, i))
			time.Sleep(time.Second)
		}
		if s := b.c.Status().Sources[0]; len(s.KeptOut) != 0 || s.Wrong != 0 && s.Advice != "" {
			t.Errorf("%+v", s)
		}
	})
}

// Status says whose tags wait, why, and what helps; the worst source comes first.
func TestStatusNamesTheNextStep(t *testing.T) {
	onBench(t, clock.InputPolicy{}, func(b *bench) {
		sensors := []string{"a", "b", "c"}
		for i := range int64(30) {
			for _, s := range sensors {
				b.judge(b.from("plc", s, b.trueNS()+3660*second, i))
				b.judge(b.from("right", s, b.trueNS()-5e6, i))
			}
			seconds := b.from("meter", "a", 0, i)
			seconds.Source = reading.SourceTime{NS: b.trueNS() / 1e9 * 1e6, Zoned: true, Unit: reading.UnitMillis}
			b.judge(seconds)
			time.Sleep(10 * time.Second)
		}
		for i, want := range []struct{ device, policy, advice, reason string }{
			{"plc", "correct_offset", "3 tags of in plc wait: its clock is 61 min ahead: set `when_wrong: correct_offset`, or its clock", "OFFSET_AHEAD"},
			{"meter", "correct_unit", "1 tag of in meter wait for UNIT_MISMATCH", "UNIT_MISMATCH"},
			{"right", "", "", ""},
		} {
			s := b.c.Status().Sources[i]
			if s.Device != want.device || s.Policy != want.policy || !strings.HasPrefix(s.Advice, want.advice) || (want.advice == "") != (s.Advice == "") {
				t.Errorf("source %d: %+v, want %+v", i, s, want)
			}
			if n := s.KeptOut[want.reason]; want.reason != "" && n != s.Tags {
				t.Errorf("%s: %d of %d tags kept out: %v", s.Device, n, s.Tags, s.KeptOut)
			}
		}
	})
}
