package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runConfig runs the command line over a configuration of that text, and returns
// what it printed with the file's path as FILE.
func runConfig(t *testing.T, text string, args ...string) (code int, out, errOut string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "t.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	code = run(t.Context(), append(args, "-c", file), strings.NewReader(""), &o, &e)
	name := strings.NewReplacer(file, "FILE", filepath.Dir(file), "DIR")
	return code, name.Replace(o.String()), name.Replace(e.String())
}

const validConfig = `
gateway: {id: g}
clock: {trust: local}
store: {path: t.db}
inputs: [{name: a, mqtt: {url: "mqtt://127.0.0.1", subscribe: [{topic: "x/{sensor}"}]}}]
features: [{name: f}]
uplinks: [{name: u, mqtt: {url: "mqtt://127.0.0.1"}}]
`

func TestCheck(t *testing.T) {
	for _, x := range []struct {
		name, text, out, errOut string
		code                    int
	}{
		{"valid", validConfig, `notice: FILE:3:16: the gateway's own clock is taken as it is (trust: local): for benches; every reading says clock unknown
FILE: ok (1 input, 1 feature, 1 uplink)
`, "", 0},
		{"faults", "gatway: {}\nstore: {quota: 2G}\n", `FILE:1:1: unknown key "gatway" (did you mean "gateway"?)
FILE:2:16: "G" is no unit of size; use B, KB, MB, GB, TB or KiB, MiB, GiB, TiB (did you mean "2GiB"?)
`, "tidemark: FILE has 2 faults\n", 2},
		{"a faulty feature", strings.Replace(validConfig, "{name: f}", "{name: f, window: 5}", 1), `FILE:6:30: 5 needs a unit: ns, us, ms, s, m, h or d
notice: FILE:3:16: the gateway's own clock is taken as it is (trust: local): for benches; every reading says clock unknown
notice: FILE: feature "f" would be left out for its faults; everything else would run
`, "tidemark: FILE has 1 fault\n", 2},
		{"what it names is not there", strings.Replace(validConfig, `{url: "mqtt://127.0.0.1"}`, `{url: "mqtts://h", tls: {ca: ca.pem}}`, 1), `FILE:7:51: cannot read tls.ca: open DIR/ca.pem: no such file or directory
notice: FILE:3:16: the gateway's own clock is taken as it is (trust: local): for benches; every reading says clock unknown
`, "tidemark: FILE has 1 fault\n", 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			code, out, errOut := runConfig(t, x.text, "check")
			if code != x.code || out != x.out || errOut != x.errOut {
				t.Errorf("exit %d\n%s%s\nwant exit %d\n%s%s", code, out, errOut, x.code, x.out, x.errOut)
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	for _, x := range []struct {
		text             string
		ok               bool
		code             int
		features, faults int
	}{
		{validConfig, true, 0, 1, 0},
		{"gatway: {}\n", false, 2, 0, 1},
	} {
		code, out, _ := runConfig(t, x.text, "check", "--json")
		var got struct {
			OK       bool
			Features []struct{ Name, Definition, Tuning string }
			Faults   []struct {
				Line, Column int
				Reason       string
				Nearest      string `json:"did_you_mean"`
			}
			Notices []struct{ Text string }
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		if code != x.code || got.OK != x.ok || len(got.Features) != x.features || len(got.Faults) != x.faults || got.Notices == nil {
			t.Errorf("exit %d: %s", code, out)
		}
	}
}

func TestCheckWithoutAFile(t *testing.T) {
	for _, args := range [][]string{{"check", "-c", "/nowhere/t.yaml"}, {"check", "-c", t.TempDir()}} {
		var out, errOut bytes.Buffer
		if code := run(t.Context(), args, strings.NewReader(""), &out, &errOut); code != exitUsage || errOut.Len() == 0 || out.Len() > 0 {
			t.Errorf("%v: exit %d, %q, %q", args, code, out.String(), errOut.String())
		}
	}
}
