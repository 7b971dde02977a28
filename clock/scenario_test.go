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
	for file, want := range map[string]int{"clock.jsonl": 60, "rules.jsonl": 162} {
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

// The reference rule by rule where the published scenarios have no number.
func TestReferenceCases(t *testing.T) {
	const given = `"t_i":"2026-10-01T12:00:00.1Z","gw_state":"SYNCHRONIZED","E_g_ns":5000000,`
	for name, tc := range map[string]struct{ op, given, want string }{
		"chrony lost its source": {"bound", `{"method":"CHRONY","refid":"CB00710F","leap":"Not synchronised","system_time_ns":1,"root_delay_ns":3,"root_dispersion_ns":5}`,
			`{"state":"FREE_RUNNING","traceability":"UTC","E_ns":8}`},
		"growth rounds up": {"bound", `{"method":"HELD","E0_ns":0,"elapsed_boottime_ns":1}`, `{"E_ns":1,"state":"SYNCHRONIZED"}`},
		"another rho":      {"bound", `{"method":"HELD","E0_ns":0,"elapsed_boottime_ns":1000000000,"rho_ppb":500000}`, `{"E_ns":500000}`},
		"no evidence":      {"bound", `{"method":"HELD"}`, `{"state":"UNKNOWN","traceability":"NONE","E_ns":null}`},
		"eight missed":     {"bound", `{"method":"HELD","E0_ns":1,"polls_missed":8}`, `{"state":"FREE_RUNNING"}`},
		"exactly a second": {"bound", `{"method":"HELD","E0_ns":1000000000}`, `{"state":"SYNCHRONIZED"}`},
		"touching servers": {"select", `{"servers":[{"theta_ns":0,"lambda_ns":5},{"theta_ns":10,"lambda_ns":5}]}`, `{"ok":false,"state":"UNRELIABLE"}`},
		"one server":       {"select", `{"servers":[{"theta_ns":7,"lambda_ns":5}]}`, `{"ok":true,"lo_ns":2,"hi_ns":12,"E_ns":12,"falsetickers":[]}`},
		"far off":          {"select", `{"servers":[{"theta_ns":70000000000,"lambda_ns":5}]}`, `{"ok":true,"E_ns":70000000005,"state":"UNKNOWN"}`},
		"a small step":     {"step", `{"state":"SYNCHRONIZED","E_ns":5,"d_real_minus_boot_ns":1000000}`, `{"event":"NONE","new_epoch":false,"retro_correction_ns":null,"E_ns":5}`},
		"short sleep":      {"step", `{"state":"SYNCHRONIZED","E_ns":5000000,"d_real_minus_boot_ns":0,"suspend_ns":447000000000}`, `{"event":"SUSPEND","state":"SYNCHRONIZED","E_ns":27350000}`},
		"leap beats known": {"step", `{"state":"SYNCHRONIZED","E_ns":5,"d_real_minus_boot_ns":-1000000000,"known_correction_ns":-1000000000,"leap_pending":true}`, `{"event":"LEAP","retro_correction_ns":0}`},
		"RSTR":             {"poll", `{"poll_s":64,"event":"RSTR"}`, `{"server_usable":false}`},
		"RATE at the top":  {"poll", `{"poll_s":1000,"event":"RATE"}`, `{"next_poll_s":1024,"server_usable":true}`},
		"below the floor":  {"poll", `{"poll_s":4,"event":"NONE"}`, `{"next_poll_s":15}`},
		"stepped source":   {"cristian", `{"E_g_ns":0,"exchanges":[{"T1_ns":0,"T4_ns":2,"V_ns":5},{"T1_ns":10,"T4_ns":12,"V_ns":500}]}`, `{"verdict":"STEP"}`},
		"ninth is forgotten": {"cristian", `{"E_g_ns":0,"exchanges":[{"T1_ns":0,"T4_ns":2,"V_ns":5000},{"T1_ns":10,"T4_ns":12,"V_ns":11},{"T1_ns":10,"T4_ns":12,"V_ns":11},{"T1_ns":10,"T4_ns":12,"V_ns":11},{"T1_ns":10,"T4_ns":12,"V_ns":11},{"T1_ns":10,"T4_ns":12,"V_ns":11},{"T1_ns":10,"T4_ns":12,"V_ns":11},{"T1_ns":10,"T4_ns":12,"V_ns":11},{"T1_ns":10,"T4_ns":12,"V_ns":11}]}`,
			`{"theta_lo_ns":-1,"theta_hi_ns":1,"verdict":"OK"}`},
		"GPS time":           {"oneway", `{"E_g_ns":5000000,"samples":[[0,17990000000]]}`, `{"verdict":"GPS_SHAPED"}`},
		"behind is proven":   {"oneway", `{"E_g_ns":5000000,"samples":[[0,-2010000000]]}`, `{"verdict":"OFFSET_BEHIND"}`},
		"behind is possible": {"oneway", `{"E_g_ns":5000000,"samples":[[0,-1000000000]]}`, `{"verdict":"OFFSET_POSSIBLE"}`},
		"high drift":         {"oneway", `{"E_g_ns":0,"fit":true,"samples":[[0,0],[1000000000,300000],[2000000000,600000]]}`, `{"drift_ppb":300000,"drift_high":true}`},
		"no zone given":      {"reading", `{` + given + `"t_s":"2026-10-01T12:00:00.06"}`, `{"disposition":"FLAG","flags":["TZ_ASSUMED"]}`},
		"no time":            {"reading", `{` + given + `"t_s":"yesterday"}`, `{"disposition":"QUARANTINE","reason":"TS_UNPARSEABLE"}`},
		"the year 2300":      {"reading", `{` + given + `"t_s":"2300-01-01T00:00:00Z"}`, `{"disposition":"QUARANTINE","reason":"TS_SENTINEL"}`},
		"milliseconds":       {"reading", `{"t_i":1790856000100,"gw_state":"SYNCHRONIZED","E_g_ns":0,"t_s":1790856000060}`, `{"disposition":"ACCEPT","event_time":"2026-10-01T12:00:00.06Z"}`},
		"nanoseconds declared ms stay exact": {"reading", `{` + given + `"raw":1790856000060000001,"unit":"ms","policy":"CORRECT_UNIT"}`,
			`{"disposition":"FLAG","flags":["CORRECTED"],"event_time":"2026-10-01T12:00:00.060000001Z"}`},
		"a fraction of a second": {"reading", `{` + given + `"raw":1790856000.060000001,"unit":"s"}`, `{"disposition":"ACCEPT","event_time":"2026-10-01T12:00:00.060000001Z"}`},
		"offset corrected": {"reading", `{` + given + `"t_s":"2026-10-01T12:00:10Z","theta_lo_ns":9900000000,"theta_hi_ns":10100000000,"source_verdict":"OFFSET_AHEAD","policy":"CORRECT_OFFSET"}`,
			`{"disposition":"FLAG","flags":["CORRECTED"],"event_time":"2026-10-01T12:00:00Z","E_e_ns":105000000}`},
		"server instead of future": {"reading", `{` + given + `"t_s":"2026-10-01T12:00:10Z","server_ts":"2026-10-01T12:00:00.09Z","server_theta_lo_ns":-20000000,"server_theta_hi_ns":20000000,"policy":"USE_SERVER"}`,
			`{"disposition":"FLAG","flags":["SERVER_TS_USED"],"event_time":"2026-10-01T12:00:00.09Z","E_e_ns":25000000}`},
		"no server: ingest": {"reading", `{` + given + `"t_s":"2026-10-01T12:00:10Z","policy":"USE_SERVER"}`, `{"flags":["INGEST_USED"],"E_e_ns":1005000000}`},
		"server in the future too": {"reading", `{` + given + `"t_s":"2026-10-01T12:00:10Z","server_ts":"2026-10-01T12:00:09Z","policy":"USE_SERVER"}`,
			`{"disposition":"QUARANTINE","reason":"FUTURE","flags":[]}`},
		"ingest, and the gateway unknown": {"reading", `{"t_i":0,"gw_state":"UNKNOWN","raw":1839,"unit":"s","policy":"USE_INGEST"}`, `{"disposition":"PENDING","reason":"GW_UNKNOWN"}`},
		"null, and the gateway unknown":   {"reading", `{"t_i":0,"gw_state":"UNKNOWN","t_s":null}`, `{"disposition":"PENDING","reason":"GW_UNKNOWN"}`},
		"trusted ignores the lead":        {"reading", `{` + given + `"t_s":"2026-11-01T00:00:00Z","policy":"TRUSTED"}`, `{"disposition":"ACCEPT","wm_max":"2026-11-01T00:00:00Z"}`},
		"trusted needs no gateway clock":  {"reading", `{"t_i":0,"gw_state":"UNKNOWN","E_g_ns":null,"t_s":"2026-11-01T00:00:00Z","policy":"TRUSTED"}`, `{"disposition":"ACCEPT","E_e_ns":null}`},
		"trusted is not above structure":  {"reading", `{` + given + `"raw":1790856000,"unit":"ms","policy":"TRUSTED"}`, `{"disposition":"QUARANTINE","reason":"UNIT_MISMATCH","fits_unit":"s"}`},
	} {
		t.Run(name, func(t *testing.T) {
			line := fmt.Sprintf(`{"id":"x","op":%q,"steps":[{"given":%s}]}`, tc.op, tc.given)
			err := clock.JudgeScenarios(strings.NewReader(line), func(r clock.StepResult) error {
				b, err := json.Marshal(r.Result)
				if err != nil {
					return err
				}
				got := object(t, b)
				for k, want := range object(t, []byte(tc.want)) {
					if !sameValue(k, want, got[k]) {
						t.Errorf("%s is %v, want %v", k, got[k], want)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
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
