package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tidemark/history"
	"tidemark/reading"
)

// lifeOf asks for a window's life and reduces it to what does not depend on when the
// test runs.
func lifeOf(t *testing.T, p *plant, args ...string) string {
	t.Helper()
	var x struct {
		Windows []struct {
			Feature   string
			Start     string `json:"window_start"`
			State     string
			Revisions []struct {
				Revision int
				Cause    string
				Values   map[string]any
				HeldBy   []string `json:"held_by"`
				Proved   bool
			}
			Closing  *struct{ Revision int }
			Readings []struct {
				ID, Verdict, Reason, Quality string
				Revision                     int
			}
		}
	}
	if err := json.Unmarshal([]byte(p.ask(append([]string{"explain", "--json"}, args...)...)), &x); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, w := range x.Windows {
		fmt.Fprintln(&b, w.Feature, w.Start, w.State)
		for _, r := range w.Revisions {
			fmt.Fprintln(&b, r.Revision, r.Cause, r.Values["sum"], r.HeldBy, r.Proved)
		}
		if w.Closing != nil {
			fmt.Fprintln(&b, "closed", w.Closing.Revision)
		}
		for _, r := range w.Readings {
			fmt.Fprintln(&b, strings.TrimSpace(strings.Join([]string{r.ID, fmt.Sprint(r.Revision), r.Quality, r.Verdict, r.Reason}, " ")))
		}
	}
	return b.String()
}

func TestExplain(t *testing.T) {
	p := newPlant(t)
	p.story()
	want := `minute 2026-01-01T12:00:00Z closed
1 watermark 30 [line] true
2 late_reading 60 [line] true
closed 2
a 1 good accepted
b 1 good accepted
b 0 good duplicate
c 1 bad accepted
e 2 good accepted
g 0 good late window_closed
`
	if got := lifeOf(t, p, "-c", p.file, "press-1/temp", minute(0, 0)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	latest := "minute 2026-01-01T12:02:00Z open\nf 0 good accepted\n"
	before := "minute 2026-01-01T12:01:00Z provisional\n1 watermark 1 [line] true\nd 1 good accepted\n"
	for args, want := range map[string]string{"press-2/temp latest": latest, "press-2/temp -1": before, "--feature minute press-2/temp 1767268925000": latest} {
		if got := lifeOf(t, p, append([]string{"-c", p.file}, strings.Fields(args)...)...); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", args, got, want)
		}
	}
	for args, want := range map[string]string{
		"press-1/tmep latest":                    "there is no sensor press-1/tmep; did you mean press-1/temp?",
		"press-1/temp yesterday":                 `"yesterday" names no window`,
		"yard/weight latest":                     "there is no sensor yard/weight among 2 sensors",
		"press-1/temp latest --feature hour":     "no feature of that name or any other selects press-1/temp",
		"press-1 latest":                         "names no sensor",
		"press-1/temp latest --socket none.sock": "the gateway is not running: nobody listens at none.sock",
	} {
		_, errOut, code := p.try(append([]string{"explain", "-c", p.file}, strings.Fields(args)...)...)
		wantCode := exitUsage
		if strings.Contains(args, "none.sock") {
			wantCode = exitRuntime
		}
		if code != wantCode || !strings.Contains(errOut, want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, want %q", args, code, errOut, want)
		}
	}
	p.stop()
	if got := lifeOf(t, p, "--store", p.store, "press-2/temp", "-1"); got != before {
		t.Errorf("of the store at rest: got\n%s\nwant\n%s", got, before)
	}
}

func held(id, source, ingest, value string, revision uint32, v history.Verdict, reason string, flags ...string) history.Held {
	return history.Held{Revision: revision, Reading: history.Reading{
		ID: id, Value: json.RawMessage(value), Unit: "Cel", SourceTime: source, IngestTime: ingest, Quality: "good",
		Verdict: v, Reason: reason, Flags: flags, Device: "d1",
	}}
}

func stat(name string, v reading.Value, unit string) history.Statistic {
	return history.Statistic{Name: name, Value: v, Unit: unit}
}

func TestExplanationForPeople(t *testing.T) {
	day := func(s string) string { return "2026-01-01T12:0" + s + "Z" }
	w := history.Window{
		Feature: "bearing-temp-5m", Version: 1, Lifecycle: "SN-1182", Start: day("0:00"), End: day("5:00"), State: history.WindowClosed, Partial: true,
		Revisions: []history.Revision{
			{Revision: 1, Cause: "watermark", KnownAt: day("5:21.034"), Watermark: day("4:59.999"), HeldBy: []string{"kepware-3", "vibration"},
				Stalled: []string{"yard"}, Proved: true,
				Values: history.Statistics{stat("count", reading.IntValue(15), ""), stat("mean", reading.FloatValue(20.5), "Cel"), stat("p95", reading.Value{}, "Cel")}},
			{Revision: 2, Cause: "late_reading", KnownAt: day("6:02"), Watermark: day("5:40"), Partial: true,
				Values: history.Statistics{stat("count", reading.IntValue(16), ""), stat("mean", reading.FloatValue(21), "Cel")}},
		},
		Closing: &history.Closing{Revision: 2, KnownAt: day("9:00"), Watermark: day("7:00"), Proved: true},
		Counts:  map[history.Verdict]int{history.Accepted: 16, history.Late: 1, history.Quarantined: 1},
		Clocks:  []history.ClockSeen{{Segment: 4, State: "synchronized", Method: "ntp", Servers: 4, Worst: 4.1}},
		Sources: []history.SourceSeen{{Device: "d1", Verdict: "OK", MinMS: -2.5, MaxMS: 998}},
	}
	for i := range 15 {
		at := day(fmt.Sprintf("0:%02d", i))
		w.Readings = append(w.Readings, held(fmt.Sprint("e", i), at, at[:len(at)-1]+".25Z", "20.5", 1, history.Accepted, ""))
	}
	w.Readings = append(w.Readings,
		held("e15", day("0:40"), day("6:01"), "28.5", 2, history.Accepted, "", "FUTURE_POSSIBLE"),
		held("e16", day("0:41"), day("9:30"), "40", 0, history.Late, "window_closed"),
		held("e17", "", day("0:42"), "41", 0, history.Quarantined, "TS_UNPARSEABLE"))
	w.Readings[17].SourceTimeSent = "noon"
	open := history.Window{
		Feature: "hour", Version: 2, Start: day("0:00"), End: "2026-01-01T13:00:00Z", State: history.WindowOpen,
		Progress: &history.Progress{Watermark: day("9:10"), ResultAt: "2026-01-01T12:59:59.999Z", ClosingAt: "2026-01-01T13:09:59.999Z", HeldBy: []string{"kepware-3"}},
	}
	idle := open
	idle.Feature, idle.Progress = "day", &history.Progress{ResultAt: "2026-01-01T23:59:59.999Z", Idle: []string{"kepware-3"}}
	x := &history.Explanation{Asset: "press-07", Sensor: "bearing-temp", Windows: []history.Window{w, open, idle},
		Journal: history.Reach{First: 12, Last: 900, OldestAt: day("0:20"), From: 20, To: 700, Readings: 4321}}
	var out bytes.Buffer
	if err := printExplanation(&out, x, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "explain.txt", out.String())
	x.Windows = x.Windows[:1]
	out.Reset()
	if err := printExplanation(&out, x, true); err != nil || strings.Count(out.String(), "accepted") != 17 {
		t.Errorf("%v: with --all %d are listed as accepted, want 16 and the count:\n%s", err, strings.Count(out.String(), "accepted"), &out)
	}
}
