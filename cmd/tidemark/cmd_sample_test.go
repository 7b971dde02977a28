package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/gateway"
)

const sampleConfig = `
gateway: {id: plant}
clock: {trust: local}
store: {path: t.db}
inputs:
  - name: line
    mqtt:
      url: mqtt://127.0.0.1:1
      max_payload: 4KiB
      subscribe:
        - topic: "line/{asset}/{device}"
          format: json
          each: list
          time: {path: ts}
          id: {path: id}
          sensors: {temp: {unit: Cel, path: v, type: number}}
  - name: other
    mqtt:
      url: mqtt://127.0.0.1:1
      subscribe: [{topic: "line/+/d2", format: json, asset: all, sensors: {v: {}}}]
features:
  - {name: minute, version: 1, select: {input: line}, window: 1m}
`

func TestSample(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(file, []byte(sampleConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	now, future := time.Now().UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	payload := fmt.Sprintf(`{"list":[{"id":"a","ts":%q,"v":20.5},{"id":"b","ts":%q,"v":1},{"id":"c","ts":%q,"v":"warm"},{"id":"d","ts":"noon","v":2}]}`, now, future, now)
	p := &plant{t: t}
	try := func(topic, payload string, more ...string) (out, errOut string, code int) {
		t.Helper()
		from := filepath.Join(dir, "p.json")
		if err := os.WriteFile(from, []byte(payload), 0o644); err != nil {
			t.Fatal(err)
		}
		return p.try(append([]string{"check", "-c", file, "--sample", topic, from}, more...)...)
	}
	out, errOut, code := try("line/press-1/d1", payload, "--json")
	var s gateway.Sample
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	if want := "tidemark: 1 refused, 2 would be quarantined\n"; code != exitRuntime || errOut != want {
		t.Errorf("exit %d, %q, want %q", code, errOut, want)
	}
	var got []string
	for _, in := range s.Inputs {
		for _, r := range in.Readings {
			got = append(got, strings.TrimSpace(fmt.Sprint(in.Input, " ", r.Asset, "/", r.Sensor, " ", string(r.Value), " ", r.Unit, " ", r.ID, " ", r.Verdict, " ", r.Reason, " ", r.Features)))
		}
		for _, r := range in.Refused {
			got = append(got, fmt.Sprint(r.Kind, " ", r.Reason, " ", r.ID))
		}
	}
	want := "line press-1/temp 20.5 Cel a#0 accepted  [minute]\nline press-1/temp 1 Cel b#1 quarantined FUTURE [minute]\n" +
		"line press-1/temp 2 Cel d#3 quarantined TS_UNPARSEABLE [minute]\nmalformed not_a_number c#2"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	out, _, _ = try("line/press-1/d1", payload)
	for _, part := range []string{"to input line: 3 readings, 1 refused", "id a#0", "accepted", "quarantined FUTURE", "refused (malformed, not_a_number): topic line/press-1/d1:"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
	if out, _, code = try("line/press-1/d2", `{"v":1,"list":[]}`, "--json"); code != exitOK || strings.Count(out, `"input": "other"`) != 2 {
		t.Errorf("a topic of two inputs: exit %d\n%s", code, out)
	}
	for _, c := range []struct {
		topic, payload, want string
		code                 int
	}{
		{"line/press-1", "{}", "no subscription is for topic line/press-1: look at inputs", exitRuntime},
		{"line/press-1/d1", strings.Repeat(" ", 5000), "1 refused", exitRuntime},
		{"line/press-1/d1", "", "1 refused", exitRuntime},
		{"line/+/d1", "{}", "without wildcards", exitUsage},
	} {
		if _, errOut, code = try(c.topic, c.payload); code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit %d, %q, want %q", c.topic, code, errOut, c.want)
		}
	}
	if _, errOut, code = p.try("check", "-c", file, "--sample", "line/a/b"); code != exitUsage || !strings.Contains(errOut, "takes one file") {
		t.Errorf("no file: exit %d, %q", code, errOut)
	}
}
