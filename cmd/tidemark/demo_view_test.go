package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// demoStory is what a gateway sent upstream, a record a line, with what the view
// is told besides.
const demoStory = `
{"type":"definition","feature":"ten-seconds","version":1}
{"type":"feature","asset":"mixer-1","sensor":"temperature","window_start":"2026-01-01T12:00:00Z","window_end":"2026-01-01T12:00:10Z","revision":1,"status":"provisional","cause":"watermark","values":{"count":10,"sum":640.5,"mean":64.05,"min":61,"max":67.125},"units":{"sum":"Cel","mean":"Cel","min":"Cel","max":"Cel"}}
{"type":"feature","asset":"oven-3","sensor":"temperature","window_start":"2026-01-01T12:00:00Z","window_end":"2026-01-01T12:00:10Z","revision":1,"status":"provisional","partial_start":true,"values":{"count":8,"mean":171.2,"min":160,"max":179.5},"units":{"mean":"Cel"}}
machine tank-6 goes silent
{"type":"quarantine","asset":"press-5","sensor":"vibration","reason":"FUTURE","source_time":"2026-01-01T12:01:42Z","source_time_sent":1767268902000,"ingest_time":"2026-01-01T12:00:12.004Z"}
{"type":"quarantine","asset":"press-5","sensor":"vibration","reason":"FUTURE","source_time":"2026-01-01T12:01:46Z","source_time_sent":1767268906000,"ingest_time":"2026-01-01T12:00:16.004Z"}
{"type":"quarantine","asset":"fan-7","sensor":"vibration","reason":"UNIT_MISMATCH","source_time":"1970-01-21T10:54:28.800Z","source_time_sent":1767268800,"ingest_time":"2026-01-01T12:00:12.004Z"}
{"type":"feature","asset":"oven-3","sensor":"temperature","window_start":"2026-01-01T12:00:00Z","window_end":"2026-01-01T12:00:10Z","revision":2,"status":"corrected","partial_start":true,"materialized_at":"2026-01-01T12:00:15.1Z","values":{"count":9,"mean":171,"min":160,"max":179.5},"units":{"mean":"Cel"}}
{"type":"feature","asset":"mixer-1","sensor":"temperature","window_start":"2026-01-01T12:00:10Z","window_end":"2026-01-01T12:00:20Z","revision":1,"status":"provisional","values":{"count":0,"mean":null,"min":null,"max":null},"units":{}}
{"type":"closed","asset":"mixer-1","sensor":"temperature","window_start":"2026-01-01T12:00:00Z","window_end":"2026-01-01T12:00:10Z","revision":1}
{"type":"late","asset":"oven-3","sensor":"temperature","window_start":"2026-01-01T12:00:00Z","window_end":"2026-01-01T12:00:10Z","reason":"window_closed","source_time":"2026-01-01T12:00:07Z","ingest_time":"2026-01-01T12:00:32.020Z"}
{"type":"late","asset":"tank-6","sensor":"temperature","window_start":"2026-01-01T11:59:50Z","window_end":"2026-01-01T12:00:00Z","reason":"before_generation","source_time":"2026-01-01T11:59:59Z","ingest_time":"2026-01-01T12:00:00.020Z"}
`

var demoBegin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// tellStory plays demoStory, a second a line, and hands each event on.
func tellStory(t *testing.T, told func(record []byte, e *demoEvent)) *demoModel {
	t.Helper()
	m := newDemoModel()
	m.status = demoStatus{
		ClockState: "synchronized", BoundNS: 1_260_000, Agreeing: 3, Servers: 4, Liars: []demoLiar{{"127.0.0.1:4123", 7e9}},
		Received: 214, Accepted: 190, Duplicate: 9, Quarantined: 15, Late: 2, Conserved: true,
	}
	for i, line := range strings.Split(strings.TrimSpace(demoStory), "\n") {
		at := demoBegin.Add(time.Duration(i) * time.Second)
		if what, ok := strings.CutPrefix(line, "machine "); ok {
			name, words, _ := strings.Cut(what, " ")
			e := demoEvent{Kind: demoMachine, At: at, Series: name, Words: words}
			m.apply(&e)
			told(nil, &e)
			continue
		}
		e, ok, err := readDemoRecord([]byte(line), at)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			told([]byte(line), nil)
			continue
		}
		m.apply(&e)
		told([]byte(line), &e)
	}
	return m
}

func nobody([]byte, *demoEvent) {}

func TestDemoScreen(t *testing.T) {
	f := func(name string, m *demoModel, width, height int, colour bool) {
		t.Helper()
		now := demoBegin.Add(11500 * time.Millisecond)
		lines := m.frame(width, height, now, demoBegin)
		if len(lines) > height {
			t.Errorf("%s: %d lines on a screen of %d", name, len(lines), height)
		}
		var b []byte
		for _, line := range lines {
			bare := appendLine(nil, line, width, false)
			if n := utf8.RuneCount(bare); n > width {
				t.Errorf("%s: %d columns on a screen of %d: %s", name, n, width, bare)
			}
			b = append(appendLine(b, line, width, colour), '\n')
		}
		golden(t, name, strings.ReplaceAll(string(b), "\x1b", "ESC"))
	}
	m := tellStory(t, nobody)
	f("demo_screen_wide.txt", m, 150, 24, false)
	f("demo_screen_80.txt", m, 80, 24, false)
	f("demo_screen_40.txt", m, 40, 16, false)
	f("demo_screen_colour.txt", m, 120, 24, true)
	f("demo_screen_start.txt", newDemoModel(), 80, 24, false)
	waiting := newDemoModel()
	waiting.status = demoStatus{ClockState: "unknown", BoundNS: -1, Servers: 4, Pending: 12, Received: 12, Conserved: true}
	f("demo_screen_waiting.txt", waiting, 80, 24, false)
	for width := range 30 {
		for height := range 12 {
			for _, line := range m.frame(width, height, demoBegin, demoBegin) {
				if n := utf8.RuneCount(appendLine(nil, line, width, false)); n > width {
					t.Fatalf("%d columns on a screen of %d×%d", n, width, height)
				}
			}
		}
	}
}

func TestDemoTerminalUpdatesInPlace(t *testing.T) {
	var out bytes.Buffer
	v := &demoTerminal{screen: demoScreen{out: &out, size: func() (int, int) { return 90, 20 }}}
	m := newDemoModel()
	f := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f(v.begin(m, demoBegin))
	drawn := out.Len()
	f(v.tick(m, demoBegin.Add(100*time.Millisecond)))
	if out.Len() != drawn {
		t.Error("drew again without news")
	}
	m = tellStory(t, func(r []byte, e *demoEvent) { f(v.show(r, e)) })
	f(v.tick(m, demoBegin.Add(200*time.Millisecond)))
	if !strings.Contains(out.String()[drawn:], "\x1b[H") {
		t.Error("news did not go to the top left corner")
	}
	f(v.end(m, time.Minute))
	left := out.String()[strings.LastIndex(out.String(), "\x1b[?1049l")+8:]
	golden(t, "demo_terminal_end.txt", left)
}

func TestDemoLines(t *testing.T) {
	var out bytes.Buffer
	v := &demoLines{out: &out}
	_ = v.begin(nil, demoBegin)
	m := tellStory(t, func(r []byte, e *demoEvent) { _ = v.show(r, e) })
	_ = v.end(m, 61*time.Second)
	golden(t, "demo_lines.txt", out.String())
}

func TestDemoJSONPrintsRecordsAndNothingElse(t *testing.T) {
	var out, beside bytes.Buffer
	v := &demoJSON{out: &out, errOut: &beside}
	_ = v.begin(nil, demoBegin)
	var want strings.Builder
	m := tellStory(t, func(r []byte, e *demoEvent) {
		_ = v.show(r, e)
		if r != nil {
			fmt.Fprintf(&want, "%s\n", r)
		}
	})
	_ = v.end(m, time.Minute)
	if out.String() != want.String() {
		t.Errorf("got %q, want %q", &out, &want)
	}
	if !strings.Contains(beside.String(), "provisional at first") || !strings.Contains(beside.String(), "received 214 = accepted 190 + duplicate 9 + quarantined 15 + pending 0") {
		t.Errorf("beside it stands %q", &beside)
	}
}

func TestDemoRowsKeepWhatIsNewest(t *testing.T) {
	m := newDemoModel()
	f := func(kind demoKind, start, revision int) {
		at := demoBegin.Add(time.Duration(start) * time.Second)
		m.apply(&demoEvent{Kind: kind, Series: "mixer-1/temperature", Start: at, End: at.Add(10 * time.Second), Revision: revision, Count: int64(revision)})
	}
	f(demoProvisional, 0, 1)
	f(demoCorrected, 0, 3)
	f(demoCorrected, 0, 2) // an older revision comes again
	f(demoProvisional, 10, 1)
	f(demoClosed, 0, 3)
	f(demoProvisional, 20, 1)
	f(demoClosed, 0, 3) // no longer shown
	f(demoCorrected, 10, 2)
	var got strings.Builder
	for _, r := range m.table(99) {
		if r.Kind == "" {
			continue // another machine
		}
		fmt.Fprintf(&got, "%s %d %d;", r.Kind, r.Start.Second(), r.Revision)
	}
	if want := "provisional 20 1;corrected 10 2;"; got.String() != want {
		t.Errorf("got %s, want %s", &got, want)
	}
}

func TestEveryQuarantineReasonHasWordsThatFit(t *testing.T) {
	for reason := range quarantineReasons {
		r := demoRecord{Reason: reason}
		if w := r.quarantineWords(); w == "" || strings.Contains(w, "_") || len(w) > 80-34 {
			t.Errorf("%s: %q", reason, w)
		}
	}
	if w := (&demoRecord{Reason: "A_NEW_ONE"}).quarantineWords(); w != "a new one" {
		t.Errorf("unknown reason: %q", w)
	}
}

func TestStampUnit(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for want, n := range map[string]int64{"s": at.Unix(), "ms": at.UnixMilli(), "us": at.UnixMicro(), "ns": at.UnixNano()} {
		if got := stampUnit(float64(n), at.Add(2*time.Second)); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestDemoTellsWhatACorrectionCorrects(t *testing.T) {
	m := newDemoModel()
	result := func(kind demoKind, window, revision int, count int64, mean float64) string {
		start := demoBegin.Add(time.Duration(window) * 10 * time.Second)
		e := demoEvent{Kind: kind, Series: "oven-3/temperature", Start: start, End: start.Add(10 * time.Second),
			Revision: revision, Count: count, Mean: mean, Made: start.Add(15100 * time.Millisecond)}
		m.apply(&e)
		return e.told()
	}
	for window := range 5 { // more than the table shows
		result(demoProvisional, window, 1, 8, 178.43)
	}
	if got, want := result(demoCorrected, 0, 2, 9, 178.87), "12:00:00–10: 178.43 → 178.87, 8 → 9 readings, 5.1 s after its end"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := result(demoCorrected, 0, 3, 10, 178.9), "12:00:00–10: 178.87 → 178.90, 9 → 10 readings, 5.1 s after its end"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	result(demoCorrected, 0, 2, 9, 178.87) // comes again
	if got, want := result(demoCorrected, -9, 2, 9, 178.87), "11:58:30–40: 178.87, 9 readings, 5.1 s after its end"; got != want {
		t.Errorf("got %q, want %q: its first result was not seen", got, want)
	}
	if len(m.lane) != 3 {
		t.Errorf("the lane tells %d corrections, want 3", len(m.lane))
	}
}

func TestDemoFoldsWhatIsAlike(t *testing.T) {
	m := newDemoModel()
	for i, name := range []string{"press-5", "fan-7", "press-5", "press-5"} {
		m.apply(&demoEvent{Kind: demoQuarantined, Series: name + "/vibration", Fold: "FUTURE", Words: fmt.Sprint(i)})
	}
	var got []string
	for _, e := range m.lane {
		got = append(got, fmt.Sprintf("%s ×%d %s", e.asset(), e.Times, e.Words))
	}
	if want := "fan-7 ×1 1, press-5 ×3 3"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if m.counts[demoQuarantined] != 4 {
		t.Errorf("%d counted", m.counts[demoQuarantined])
	}
}

func TestDemoClockNews(t *testing.T) {
	news := demoClockNews{}
	for i, x := range []struct {
		s    demoStatus
		want string
	}{
		{demoStatus{ClockState: "unknown", BoundNS: -1, Servers: 4}, "unknown: readings wait until the time servers agree"},
		{demoStatus{ClockState: "unknown", BoundNS: -1, Servers: 4, Agreeing: 1}, ""},
		{demoStatus{ClockState: "synchronized", BoundNS: 1_260_000, Servers: 4, Agreeing: 2, Liars: []demoLiar{{"a:1", 7e9}}},
			"synchronized within 1.3 ms|outvoted, it lies: time server a:1 (+7.0 s)"},
		{demoStatus{ClockState: "synchronized", BoundNS: 1_260_000, Servers: 4, Agreeing: 3}, ""},
		{demoStatus{ClockState: "synchronized", BoundNS: 1_300_000, Servers: 4, Agreeing: 2, Liars: []demoLiar{{"a:1", 7.1e9}}}, ""},
		{demoStatus{ClockState: "holdover", BoundNS: 1e9}, "holdover within 1000.0 ms"},
		{demoStatus{ClockState: "synchronized", BoundNS: 1e6}, "synchronized within 1.0 ms"},
	} {
		if got := strings.Join(news.of(&x.s), "|"); got != x.want {
			t.Errorf("%d: got %q, want %q", i, got, x.want)
		}
	}
}
