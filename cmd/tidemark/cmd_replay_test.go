package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// contractTrace is a window's life: two readings, a first result, a correction,
// a repeated reading, an advance past the closing, and late evidence.
const contractTrace = `# a press on line 3
{"op":"reading","input":"A","device":"d1","asset":"press-07","lifecycle":"SN-1182","sensor":"bearing-temp","id":"A","source_time":"2026-01-01T12:00:10Z","ingest_time":"2026-01-01T12:00:10.2Z","value":10,"unit":"Cel","quality":"good"}
{"op":"reading","input":"A","asset":"press-07","lifecycle":"SN-1182","sensor":"bearing-temp","id":"B","source_time":"2026-01-01T12:04:59.999999999Z","value":20,"unit":"Cel"}

{"op":"batch","readings":[{"input":"A","asset":"press-07","lifecycle":"SN-1182","sensor":"bearing-temp","source_time":"2026-01-01T12:05:20Z","value":9007199254740993}],"time":"2026-01-01T12:05:21Z"}
{"op":"reading","input":"A","asset":"press-07","lifecycle":"SN-1182","sensor":"bearing-temp","id":"C","source_time":"2026-01-01T12:01:00Z","value":30,"unit":"Cel"}
{"op":"reading","input":"A","asset":"press-07","lifecycle":"SN-1182","sensor":"bearing-temp","id":"A","source_time":"2026-01-01T12:00:10Z","value":10,"unit":"Cel"}
{"op":"reading","input":"A","sensor":"mode","source_time":"2026-01-01T12:12:30Z","value":"RUN"}
{"op":"advance","time":"2026-01-01T12:12:31Z"}
{"op":"reading","input":"A","asset":"press-07","lifecycle":"SN-1182","sensor":"bearing-temp","id":"D","source_time":"2026-01-01T12:02:00Z","value":40,"unit":"Cel"}
{"op":"reading","input":"A","sensor":"far","source_time":"2500-01-01T00:00:00Z","value":1}
`

func TestReplayOfTheContract(t *testing.T) {
	golden(t, "replay.txt", promised(t, replayOK(t, nil, contractTrace)))
	golden(t, "replay_watermarks.txt", promised(t, replayOK(t, []string{"--emit", "watermark"}, contractTrace)))
}

// promised leaves of each line what the contract shows of it: lines may carry
// more of the record, and that is the record's to test. Numbers stay as printed.
func promised(t *testing.T, out string) string {
	t.Helper()
	var b strings.Builder
	for text := range strings.Lines(out) {
		var whole map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &whole); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, key := range []string{"after", "type", "feature", "version", "input", "asset", "lifecycle", "sensor", "id", "source_time", "value",
			"window_start", "window_end", "revision", "status", "cause", "values", "reason", "time", "watermark"} {
			if v, ok := whole[key]; ok {
				fmt.Fprintf(&b, "%s=%s ", key, v)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// The name of the trace may be - for standard input; both give the same bytes,
// again and again.
func TestReplayFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(file, []byte(contractTrace), 0o600); err != nil {
		t.Fatal(err)
	}
	want := replayOK(t, nil, contractTrace)
	var out, errOut strings.Builder
	if code := run(t.Context(), []string{"replay", file}, strings.NewReader(""), &out, &errOut); code != exitOK {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	if out.String() != want {
		t.Errorf("from the file came\n%s, from standard input\n%s", out.String(), want)
	}
}

// What came out before a malformed line stands; nothing after it is applied.
func TestReplayStopsAtAMalformedLine(t *testing.T) {
	whole := replayOK(t, nil, contractTrace)
	lines := strings.SplitAfter(contractTrace, "\n")
	broken := strings.Join(lines[:9], "") + `{"op":"reading","input":"A"}` + "\n" + strings.Join(lines[9:], "")
	code, out, errOut := runReplay(t, nil, broken)
	if code != exitUsage || errOut != "tidemark: -: line 10: sensor is missing\n" {
		t.Errorf("exit %d: %s", code, errOut)
	}
	if out == "" || !strings.HasPrefix(whole, out) || strings.Contains(out, `"late"`) {
		t.Errorf("came:\n%s", out)
	}
}

func TestReplayUsage(t *testing.T) {
	checkUsage(t, "replay", []usage{
		{[]string{}, "TRACE is missing"},
		{[]string{"no-such-trace"}, "cannot read the trace: open no-such-trace"},
		{[]string{"--window", "0s", "-"}, "window"},
		{[]string{"--window", "5", "-"}, `5 needs a unit`},
		{[]string{"--window", "1500us", "-"}, "whole milliseconds"},
		{[]string{"--offset", "5m", "-"}, "offset"},
		{[]string{"--allowed-lateness", "-1s", "-"}, "lateness"},
		{[]string{"--scope", "plant", "-"}, `--scope "plant" is none of input, device, sensor`},
		{[]string{"--watermarks", "magic", "-"}, `--watermarks "magic" is neither generated nor explicit`},
		{[]string{"--emit", "feature,all", "-"}, `--emit "all" is none of`},
		{[]string{"--functions", "count,average", "-"}, "average"},
	})
}

func TestReplayDurationsInDays(t *testing.T) {
	out := replayOK(t, []string{"--window", "7d", "--offset", "-1d", "--out-of-orderness", "0s", "--allowed-lateness", "1d12h"},
		`{"op":"reading","input":"A","sensor":"k","source_time":0,"value":1}`+"\n"+
			`{"op":"reading","input":"A","sensor":"k","source_time":"1970-02-01T00:00:00Z","value":1}`+"\n"+
			`{"op":"advance","time":1}`+"\n")
	if !strings.Contains(out, `"window_start":"1969-12-31T00:00:00Z","window_end":"1970-01-07T00:00:00Z"`) {
		t.Error(out)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestReplayTellsWhenItCannotWrite(t *testing.T) {
	var errOut strings.Builder
	code := run(t.Context(), []string{"replay", "-"}, strings.NewReader(contractTrace), brokenWriter{}, &errOut)
	if code != exitRuntime || !strings.Contains(errOut.String(), "no space left on device") {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
}

// With -c the features of the file are computed, and flags that would define one
// are refused.
func TestReplayOfAConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.yaml")
	text := strings.Replace(validConfig, "{name: f}", "{name: hot, version: 3, window: 1m, out_of_orderness: 0s, functions: [max]}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := replayOK(t, []string{"-c", file, "--emit", "feature"}, strings.ReplaceAll(contractTrace, `"input":"A"`, `"input":"a"`))
	if !strings.Contains(out, `"feature":"hot","version":3,"window_start":"2026-01-01T12:00:00Z","window_end":"2026-01-01T12:01:00Z"`) {
		t.Error(out)
	}
	if code, _, errOut := runReplay(t, []string{"-c", file, "--window", "5m"}, ""); code != exitUsage || !strings.Contains(errOut, "config") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

// A recorded trace says with its own configurations what it said then; without,
// only the birth of its store counts.
func TestReplayAsRecorded(t *testing.T) {
	recorded := `{"op":"config","floor":"2026-01-01T12:00:30Z","features":[{"name":"hot","version":2,"definition":"0000002a","window":60000,"functions":["max"]}],"expect":[{"alarm_after":1000}]}
{"op":"clock","segment":1,"state":"synchronized","error_ns":1000000}
{"op":"batch","seq":7,"time":1000,"readings":[{"input":"A","sensor":"t","source_time":"2026-01-01T12:00:10Z","value":1,"stamp":{}},{"input":"A","sensor":"t","source_time":"2026-01-01T12:00:40Z","value":5,"stamp":{"clock":1}}],"marks":[{"op":"catchup","input":"A","state":"begin"}]}
{"op":"evidence","input":"A","time":"2026-01-01T12:02:00Z"}
{"op":"catchup","input":"A","state":"end"}
{"op":"batch","seq":8,"time":2000,"readings":[{"input":"A","sensor":"u","source_time":"2026-01-01T12:01:30Z","value":2,"stamp":{}}]}
{"op":"batch","time":2001,"readings":[],"marks":[{"op":"active","input":"A"}]}
{"op":"batch","time":2100,"readings":[{"input":"A","sensor":"t","source_time":"2026-01-01T12:01:20Z","value":9,"stamp":{}}]}
`
	golden(t, "replay_recorded.txt", replayOK(t, []string{"--as-recorded"}, recorded)+"\n"+replayOK(t, []string{"--window", "30s"}, recorded))
	if code, _, errOut := runReplay(t, []string{"--as-recorded", "--window", "30s"}, recorded); code != exitUsage || !strings.Contains(errOut, "as-recorded") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

// With -c and evidence of the gateway's clock readings are judged; those with a
// verdict never again.
func TestReplayJudges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.yaml")
	text := strings.Replace(validConfig, "{name: f}", "{name: hot, window: 1m, out_of_orderness: 0s, functions: [max]}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const read = `{"op":"reading","input":"a","sensor":"t","source_time":"2026-01-01T12:00:10Z","ingest_time":"2026-01-01T12:00:05Z","value":1`
	ahead := read + "}\n"
	outcome := func(args []string, text string) string {
		_, out, errOut := runReplay(t, args, text)
		if i := strings.Index(out, `"reason":`); i >= 0 {
			reason, _, _ := strings.Cut(out[i+len(`"reason":"`):], `"`)
			return reason
		}
		return errOut
	}
	for _, c := range []struct{ name, text, want string }{
		{"no clock", ahead, ""},
		{"synchronized", `{"op":"clock","state":"synchronized","error_ns":1000000}` + "\n" + ahead, "FUTURE"},
		{"stamped", `{"op":"clock","state":"synchronized","error_ns":1000000}` + "\n" + read + `,"stamp":{}}` + "\n", ""},
		{"unknown", `{"op":"clock","state":"unknown"}` + "\n" + ahead, ""},
		{"no arrival", `{"op":"clock","state":"synchronized","error_ns":1000000}` + "\n" +
			`{"op":"reading","input":"a","sensor":"t","source_time":1,"value":1}` + "\n", "tidemark: -: line 2: ingest_time is missing: it is what the clock judges the source time by\n"},
	} {
		if got := outcome([]string{"-c", file}, c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := outcome(nil, `{"op":"clock","state":"synchronized","error_ns":1000000}`+"\n"+ahead); got != "" {
		t.Errorf("judged without a file: %s", got)
	}
}
