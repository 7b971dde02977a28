package clock_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/clock"
)

// TestVectors runs the published scenarios, and those of rules.jsonl, which go
// through the text of SEMANTICS sentence by sentence: every key of a step's expect
// must be in the result.
func TestVectors(t *testing.T) {
	for file, want := range map[string]int{"clock.jsonl": 60, "rules.jsonl": 177} {
		t.Run(file, func(t *testing.T) {
			if n := runVectors(t, "testdata/"+file); n != want {
				t.Errorf("%d steps, want %d", n, want)
			}
		})
	}
}

func runVectors(t *testing.T, file string) (steps int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]any{}
	err = clock.JudgeScenarios(bytes.NewReader(data), func(r clock.StepResult) error {
		b, err := json.Marshal(r.Result)
		if err != nil {
			return err
		}
		got[fmt.Sprint(r.ID, " ", r.Step)] = object(t, b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var sc struct {
			ID, Title string
			Steps     []struct{ Expect json.RawMessage }
		}
		if err := json.Unmarshal(lines.Bytes(), &sc); err != nil {
			t.Fatal(err)
		}
		for i, s := range sc.Steps {
			steps++
			res := got[fmt.Sprint(sc.ID, " ", i)]
			for k, want := range object(t, s.Expect) {
				if !sameValue(k, want, res[k]) {
					t.Errorf("%s step %d (%s): %s is %v, want %v", sc.ID, i, sc.Title, k, res[k], want)
				}
			}
		}
	}
	return steps
}

func object(t *testing.T, b []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

func sameValue(key string, want, got any) bool {
	switch key {
	case "flags": // a set
		names := func(list any) (out []string) {
			for _, n := range list.([]any) {
				out = append(out, n.(string))
			}
			slices.Sort(out)
			return out
		}
		return got != nil && slices.Equal(names(want), names(got))
	case "event_time", "wm_max":
		if want == nil || got == nil {
			return want == got
		}
		w, err1 := time.Parse(time.RFC3339Nano, want.(string))
		g, err2 := time.Parse(time.RFC3339Nano, got.(string))
		return err1 == nil && err2 == nil && w.Equal(g)
	case "drift_ppb":
		w, err1 := want.(json.Number).Float64()
		g, err2 := got.(json.Number).Float64()
		return err1 == nil && err2 == nil && math.Abs(w-g) <= 1
	}
	return cmp.Equal(want, got)
}

func TestMalformedScenariosNameTheirLine(t *testing.T) {
	good := `{"id":"a","op":"poll","steps":[{"given":{"poll_s":64,"event":"RATE"}}]}` + "\n\n"
	for name, bad := range map[string]string{
		"no JSON":         `{"id":`,
		"no object":       `[]`,
		"no id":           `{"op":"poll","steps":[]}`,
		"no steps":        `{"id":"x","op":"poll"}`,
		"no given":        `{"id":"x","op":"poll","steps":[{}]}`,
		"unknown op":      `{"id":"x","op":"guess","steps":[{"given":{}}]}`,
		"wrong type":      `{"id":"x","op":"poll","steps":[{"given":{"poll_s":"64"}}]}`,
		"missing number":  `{"id":"x","op":"violation","steps":[{"given":{}}]}`,
		"unknown state":   `{"id":"x","op":"step","steps":[{"given":{"state":"FINE","d_real_minus_boot_ns":0}}]}`,
		"no ingest time":  `{"id":"x","op":"reading","steps":[{"given":{"gw_state":"UNKNOWN"}}]}`,
		"unknown unit":    `{"id":"x","op":"reading","steps":[{"given":{"t_i":0,"gw_state":"UNKNOWN","raw":1,"unit":"h"}}]}`,
		"unknown policy":  `{"id":"x","op":"reading","steps":[{"given":{"t_i":0,"gw_state":"UNKNOWN","policy":"HOPE"}}]}`,
		"unknown verdict": `{"id":"x","op":"reading","steps":[{"given":{"t_i":0,"gw_state":"UNKNOWN","source_verdict":"FINE"}}]}`,
		"no samples":      `{"id":"x","op":"oneway","steps":[{"given":{}}]}`,
		"no exchanges":    `{"id":"x","op":"cristian","steps":[{"given":{}}]}`,
		"answer first":    `{"id":"x","op":"cristian","steps":[{"given":{"exchanges":[{"T1_ns":2,"T4_ns":1,"V_ns":0}]}}]}`,
		"half a server":   `{"id":"x","op":"select","steps":[{"given":{"servers":[{"theta_ns":1}]}}]}`,
		"unknown method":  `{"id":"x","op":"bound","steps":[{"given":{"method":"HOPE"}}]}`,
		"bad refid":       `{"id":"x","op":"bound","steps":[{"given":{"method":"CHRONY","refid":"GPS!"}}]}`,
	} {
		n := 0
		err := clock.JudgeScenarios(strings.NewReader(good+bad+"\n"+good), func(clock.StepResult) error { n++; return nil })
		if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") {
			t.Errorf("%s: error %v, want one of line 3", name, err)
		}
		if n != 1 {
			t.Errorf("%s: %d results, want those of the line before", name, n)
		}
	}
}

func FuzzJudgeScenarios(f *testing.F) {
	data, err := os.ReadFile("testdata/clock.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = clock.JudgeScenarios(bytes.NewReader(data), func(r clock.StepResult) error {
			if _, err := json.Marshal(r.Result); err != nil {
				t.Errorf("%s step %d: %v", r.ID, r.Step, err)
			}
			return nil
		})
	})
}
