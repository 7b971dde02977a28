package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/configs"
	"tidemark/windowing/disorder"
)

func adviseOK(t *testing.T, flags []string, trace string) string {
	t.Helper()
	return traceOK(t, "advise", flags, trace)
}

// plantTrace is 12,000 readings of a press in order, of a mill on the same input
// that is always 7 s behind it, and of a pump whose every 500th reading comes 90 s
// late; with some of everything that is left out.
func plantTrace() string {
	var b strings.Builder
	b.WriteString(`{"op":"inputs","names":["line","yard"]}` + "\n" + `{"op":"watermark","input":"line","time":0}` + "\n")
	const start = 1_767_225_600_000
	send := func(input, device, asset, sensor string, source, ingest int64) {
		fmt.Fprintf(&b, `{"op":"reading","input":%q,"device":%q,"asset":%q,"sensor":%q,"source_time":%d,"ingest_time":%d,"value":1}`+"\n",
			input, device, asset, sensor, source, ingest)
	}
	for i := range int64(4000) {
		at := start + i*1000
		send("line", "gw-1", "press-07", "temp", at, at+20)
		send("line", "gw-2", "mill-02", "temp", at-7000, at+35)
		pump := at - 4
		if i%500 == 499 {
			pump -= 90_000
		}
		send("yard", "", "pump", "flow", pump, at-1)
	}
	b.WriteString(`{"op":"reading","input":"yard","asset":"pump","sensor":"flow","source_time":"2500-01-01T00:00:00Z","value":1}` + "\n")
	b.WriteString(`{"op":"batch","readings":[{"input":"yard","asset":"pump","sensor":"flow\u001b[2J","source_time":"2026-01-01T01:06:40Z","value":1},` +
		`{"input":"yard","asset":"pump","sensor":"flow","source_time":"2026-01-01T01:06:40.5Z","ingest_time":"2026-01-01T01:06:40Z","value":1}],"time":"2026-01-01T01:07:00Z"}` + "\n")
	return b.String()
}

func TestAdvise(t *testing.T) {
	golden(t, "advise.txt", adviseOK(t, []string{"--top", "2"}, plantTrace()))
	golden(t, "advise.json", adviseOK(t, []string{"--top", "1", "--json"}, plantTrace()))
}

// Names of a trace cannot move the cursor.
func TestAdviseQuotesNames(t *testing.T) {
	if out := adviseOK(t, nil, plantTrace()); strings.Contains(out, "\x1b") || !strings.Contains(out, `yard / pump / "flow\x1b[2J"`) {
		t.Error(out)
	}
}

func TestAdviseOfLittle(t *testing.T) {
	one := `{"op":"reading","input":"A","sensor":"s","source_time":0,"value":1}` + "\n"
	ahead := `{"op":"reading","input":"A","sensor":"s","source_time":"2200-01-01T00:00:00Z","value":1}` + "\n"
	for _, c := range []struct{ name, trace string }{
		{"empty", ""},
		{"one", one},
		{"out_of_range", strings.Replace(one, `"source_time":0`, `"source_time":9223372036854775807`, 1)},
		{"clock_once_ahead", ahead + one},
	} {
		golden(t, "advise_"+c.name+".txt", adviseOK(t, nil, c.trace))
		if out := adviseOK(t, []string{"--json"}, c.trace); !json.Valid([]byte(out)) {
			t.Errorf("%s: %s", c.name, out)
		}
	}
}

// The state of things at a subscription and what a history brings say nothing of the
// order in which a source sends, in a trace as in the journal.
func TestAdviseLeavesOutWhatIsOutOfOrder(t *testing.T) {
	line := `{"op":"reading","input":"A","sensor":"s","source_time":%d,"value":1%s}` + "\n"
	sent := fmt.Sprintf(line, 900_000, "") + fmt.Sprintf(line, 901_000, "")
	for _, delivery := range []string{"initial", "historical", "rejudged"} {
		if got := adviseOK(t, nil, sent+fmt.Sprintf(line, 0, `,"delivery":["`+delivery+`"]`)); got != adviseOK(t, nil, sent) {
			t.Errorf("%s:\n%s", delivery, got)
		}
	}
}

func TestAdviseFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(file, []byte(contractTrace), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut strings.Builder
	if code := run(t.Context(), []string{"advise", file}, strings.NewReader(""), &out, &errOut); code != exitOK {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	if want := adviseOK(t, nil, contractTrace); strings.TrimPrefix(out.String(), file) != strings.TrimPrefix(want, "-") {
		t.Errorf("from the file came\n%s, from standard input\n%s", out.String(), want)
	}
}

func TestAdviseStopsAtAMalformedLine(t *testing.T) {
	code, out, errOut := runTrace(t, "advise", nil, contractTrace+"\n"+`{"op":"reading","input":"A"}`)
	if code != exitUsage || out != "" || errOut != "tidemark: -: line 13: sensor is missing\n" {
		t.Errorf("exit %d: %s%s", code, errOut, out)
	}
}

func TestAdviseUsage(t *testing.T) {
	checkUsage(t, "advise", []usage{
		{[]string{"one", "two"}, "accepts at most 1 arg"},
		{[]string{"no-such-trace"}, "cannot read the trace: open no-such-trace"},
		{[]string{"--top", "-1", "-"}, "--top -1"},
		{[]string{"-c", "no-such-file", "-"}, "no-such-file"},
	})
	var errOut strings.Builder
	code := run(t.Context(), []string{"advise", "-"}, strings.NewReader(contractTrace), brokenWriter{}, &errOut)
	if code != exitRuntime || !strings.Contains(errOut.String(), "no space left on device") {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
}

// The default is that of the configuration; with a file its features' budgets are
// looked at instead.
func TestAdviseBudgetsInUse(t *testing.T) {
	plain, err := configs.Parse("t.yaml", []byte(validConfig), "host")
	if err != nil {
		t.Fatal(err)
	}
	if f := plain.Features[0]; f.OutOfOrderness.MS() != defaultBudget.OutOfOrdernessMS || f.AllowedLateness.MS() != defaultBudget.AllowedLatenessMS {
		t.Errorf("the default is %v, %v", f.OutOfOrderness, f.AllowedLateness)
	}
	file := filepath.Join(t.TempDir(), "t.yaml")
	text := strings.Replace(validConfig, "{name: f}", "{name: hot, out_of_orderness: 1500ms, allowed_lateness: 2d}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := adviseOK(t, []string{"-c", file}, contractTrace)
	if !strings.Contains(out, "  hot\n") || !strings.Contains(out, "\n1.5s+2d ") || strings.Contains(out, "default") {
		t.Error(out)
	}
}

// With one partition, windows of 1 ms and an emission after every reading the
// model is the engine: it corrects and refuses exactly the readings that advise
// counts.
func TestAdviseAgreesWithTheEngine(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range disorder.Candidates() {
		c.OutOfOrdernessMS /= 1000 // so that everything lies within some seconds
		c.AllowedLatenessMS /= 1000
		var ops strings.Builder
		for i := range 400 {
			fmt.Fprintf(&ops, `{"op":"reading","input":"A","sensor":"s","id":"%d","source_time":%d,"value":1}`+"\n"+`{"op":"advance","time":%d}`+"\n",
				i, i*10-rnd.IntN(1+rnd.IntN(1+rnd.IntN(8000))), i)
		}
		out := replayOK(t, []string{"--window", "1ms", "--out-of-orderness", exactMS(c.OutOfOrdernessMS), "--allowed-lateness", exactMS(c.AllowedLatenessMS),
			"--idle-after", "0s", "--emit", "feature,late"}, ops.String())
		var corrected, late uint64
		for line := range strings.Lines(out) {
			var e struct {
				After int
				Type  string
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			switch {
			case e.Type == "late":
				late++
			case e.After%2 == 0: // at the reading itself, not at the advance
				corrected++
			}
		}
		m := disorder.New([]disorder.Budget{c})
		cmd := newAdviseCmd()
		cmd.SetContext(t.Context())
		cmd.SetIn(strings.NewReader(ops.String()))
		if err := measure(cmd, m, "-"); err != nil {
			t.Fatal(err)
		}
		for _, s := range m.Report(0).Scopes {
			if got := s.Budgets[0]; got.CorrectedReadings != corrected || got.TooLateReadings != late {
				t.Errorf("%+v, the engine corrects %d and is too late for %d", got, corrected, late)
			}
		}
	}
}
