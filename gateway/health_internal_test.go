package gateway

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"tidemark/clock"
	"tidemark/reading"
)

// A reload does not make what was wrong before it new, nor what was right.
func TestVerdictOutlivesAReload(t *testing.T) {
	clk := clock.New(clock.Config{}, clock.Options{})
	var log bytes.Buffer
	h := newHealth(zerolog.New(&log))
	h.begin(clk)
	good := h.verdict()
	h.set("uplink a", "the broker is away")
	bad := h.verdict()
	if good.degraded || good.since == "" || !bad.degraded || bad.since <= good.since {
		t.Fatalf("%+v, then %+v", good, bad)
	}

	h.begin(clk) // of a configuration that is taken back at once
	h.begin(clk)
	h.set("uplink a", "connecting")
	h.set("input b", "connecting")
	h.set("input b", "")
	h.set("uplink a", "the broker is away")
	if got := h.verdict(); got != bad {
		t.Errorf("%+v, was degraded since %+v", got, bad)
	}
	if f := h.list(); len(f) != 1 || f[0].Since != bad.since || f[0].Detail != "the broker is away" {
		t.Errorf("%+v", f)
	}
	if n := strings.Count(log.String(), `"fault":"uplink a"`); n != 1 {
		t.Errorf("the same fault is logged %d times:\n%s", n, &log)
	}

	h.set("uplink a", "")
	good = h.verdict()
	h.begin(clk)
	h.set("uplink a", "connecting")
	h.set("uplink a", "")
	if got := h.verdict(); got != good {
		t.Errorf("%+v, was trustworthy since %+v", got, good)
	}
	h.settledNS = clk.Now().BootNS - 1
	h.set("uplink a", "the broker is away")
	h.set("uplink a", "")
	if got := h.verdict(); got.degraded || got.since <= good.since {
		t.Errorf("%+v, after a fault of its own", got)
	}
}

// A fault that the session before had and this one does not find has gone.
func TestFaultEndsWithAReload(t *testing.T) {
	var log bytes.Buffer
	h := newHealth(zerolog.New(&log))
	clk := clock.New(clock.Config{}, clock.Options{})
	h.begin(clk)
	h.set("feature x", "left out")
	h.begin(clk)
	if v := h.verdict(); v.degraded {
		t.Errorf("%+v", v)
	}
	h.settledNS = clk.Now().BootNS - 1
	h.set("input a", "")
	if !strings.Contains(log.String(), "did not come again") || h.old != nil {
		t.Errorf("%s", &log)
	}
}

func TestFaultsWorstFirst(t *testing.T) {
	h := newHealth(zerolog.Nop())
	h.begin(clock.New(clock.Config{}, clock.Options{}))
	want := []string{"disk", "store", "clock", "input a", "source clocks", "feature f", "times of input a", "disk space", "uplink u", "configuration", "precision of feature f", "write budget"}
	for i := range want {
		h.set(want[len(want)-1-i], "x")
	}
	for i, f := range h.list() {
		if f.Name != want[i] {
			t.Errorf("%d: %s, want %s", i, f.Name, want[i])
		}
		if f.rank() < 0 {
			t.Errorf("%s has no severity", f.Name)
		}
	}
	if l := h.line(); l != "degraded: "+strings.Join(want, ", ")+": x" {
		t.Error(l)
	}
}

// One clock that is off has one remedy, wherever its readings are shown.
func TestRemedies(t *testing.T) {
	r := newRemedies([]clock.SourceStatus{
		{Input: "a", Device: "d0", Verdict: "OFFSET_AHEAD", Advice: "its clock is 61 min ahead"},
		{Input: "a", Device: "d1", Verdict: "OK"},
		{Input: "b", Device: "d0", Advice: "behind"}, {Input: "b", Device: "d1", Advice: "ahead"},
		{Input: "c", Server: true, Advice: "the server's"},
	})
	for _, c := range []struct {
		input, sender string
		why           reading.Reason
		want          string
	}{
		{"a", "d0", reading.OffsetAhead, "its clock is 61 min ahead"},
		{"a", "d0", reading.Future, "its clock is 61 min ahead"},
		{"a", "d0", reading.UnitMismatch, clock.NextStep(reading.UnitMismatch)},
		{"a", "d1", reading.Future, clock.NextStep(reading.Future)},
		{"c", "", reading.Future, clock.NextStep(reading.Future)},
	} {
		if got := r.of(c.input, c.sender, c.why); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	steps := nextSteps([]InputStatus{
		{Name: "a", Quarantine: map[string]uint64{"FUTURE": 3, "FROZEN": 1}},
		{Name: "b", Quarantine: map[string]uint64{"FUTURE": 1}},
		{Name: "c"},
	}, r)
	if steps["a"]["FUTURE"] != "its clock is 61 min ahead" || steps["a"]["FROZEN"] != clock.NextStep(reading.Frozen) ||
		steps["b"]["FUTURE"] != clock.NextStep(reading.Future) || len(steps) != 2 {
		t.Errorf("%v", steps)
	}
}
