package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/gateway"
)

// What is kept is what went upstream, from the running gateway and from its store at
// rest.
func TestEvidenceIsWhatWentUpstream(t *testing.T) {
	p := newPlant(t)
	p.story()
	want := map[string]any{"late": p.sent("late")[0], "quarantined": p.sent("quarantine")[0]}
	kept := func(args ...string) map[string]any {
		t.Helper()
		got := map[string]any{}
		for _, l := range jsonLines(t, p.ask(append([]string{"evidence", "--json"}, args...)...)) {
			got[l["kind"].(string)] = l["record"]
		}
		return got
	}
	asAny := func(m map[string]any) (v any) {
		b, _ := json.Marshal(m)
		_ = json.Unmarshal(b, &v)
		return v
	}
	check := func(from ...string) {
		t.Helper()
		if diff := cmp.Diff(asAny(want), asAny(kept(from...))); diff != "" {
			t.Errorf("%v (-sent +kept):\n%s", from, diff)
		}
		for selection, n := range map[string]int{
			"--kind late": 1, "--kind late,quarantined": 2, "--kind unsent": 0,
			"--to 2026-01-01T12:00:00Z": 0, "--from 2026-01-01T12:00:00Z": 2, "--from 9999-01-01T12:00:00Z": 0,
		} {
			if got := kept(append(strings.Fields(selection), from...)...); len(got) != n {
				t.Errorf("%s: %v, want %d", selection, got, n)
			}
		}
		for _, line := range []string{
			"  late           press-1/temp 100 Cel of 2026-01-01T12:00:50Z, for minute 2026-01-01T12:00:00Z: window_closed\n",
			"  quarantined    press-1/temp 1 Cel of \"yesterday\": TS_UNPARSEABLE\n",
			"\n1 late: tidemark reconcile", "\n1 quarantined: tidemark quarantine list",
		} {
			if text := p.ask(append([]string{"evidence"}, from...)...); !strings.Contains(text, line) {
				t.Errorf("%v says nothing of %q:\n%s", from, line, text)
			}
		}
	}
	check("-c", p.file)
	p.stop()
	check("--store", p.store)
	if text := p.ask("evidence", "--store", p.store, "--kind", "unsent"); text != "no such evidence is kept\n" {
		t.Errorf("%q", text)
	}
	for want, args := range map[string]string{"did you mean undeliverable?": "--kind undelivrable", "there are late, quarantined": "--kind x", "no such file": "--store /none/x"} {
		if _, errOut, code := p.try(append([]string{"evidence"}, strings.Fields(args)...)...); code == exitOK || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit %d, %q, want %q", args, code, errOut, want)
		}
	}
}

func TestPrintEvidence(t *testing.T) {
	var out bytes.Buffer
	counts := map[gateway.EvidenceKind]uint64{}
	for _, e := range []gateway.Evidence{
		{Kind: gateway.EvidenceQuarantined, Record: json.RawMessage(`{"type":"event","kind":"quarantine","input":"line","reason":"TOO_OLD","count":250,"first_block":7,"last_block":9}`)},
		{Kind: gateway.EvidenceLate, Record: json.RawMessage(`{"type":"late","asset":"","sensor":"group","member":"temp","value":1.5,"source_time":null,"source_time_sent":null,"feature":"minute","window_start":"2026-01-01T12:00:00Z","reason":"window_closed"}`)},
		{Kind: gateway.EvidenceRejected, Record: json.RawMessage(`{"type":"event","kind":"malformed","input":"line","reason":"not_json","detail":"no\nobject"}`)},
		{Kind: gateway.EvidenceUndeliverable, Uplink: "up", Reason: "too large", Record: json.RawMessage(`{"type":"feature","asset":"press-1","sensor":"temp","feature":"minute","window_start":"2026-01-01T12:00:00Z","revision":3,"quality":{}}`)},
		{Kind: gateway.EvidenceUndeliverable, Uplink: "up", Reason: "too large", Record: json.RawMessage(`{"type":"event","kind":"config","reason":{}}`)},
		{Kind: gateway.EvidenceUndeliverable, Uplink: "up", Reason: "too large", Record: json.RawMessage(`{"type":"definition","feature":"minute"}`)},
		{Kind: gateway.EvidenceUnsent, Uplink: "up", Reason: "too large", Record: json.RawMessage(`{"type":"raw","asset":"press-1","sensor":"name","value":"` + strings.Repeat("long", 20) + `","source_time":"2026-01-01T12:00:00Z"}`)},
		{Fault: "a later version wrote it"},
	} {
		e.KeptAt = "2026-01-01T12:03:00.5Z"
		counts[e.Kind]++
		if err := printEvidence(&out, &e); err != nil {
			t.Fatal(err)
		}
	}
	if err := printEvidenceTotals(&out, counts); err != nil {
		t.Fatal(err)
	}
	golden(t, "evidence.txt", out.String())
}
