package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tidemark/gateway"
)

func TestPrintQuarantine(t *testing.T) {
	var out bytes.Buffer
	err := printQuarantine(&out, &gateway.Quarantine{Count: 250, Gone: 7, Releasing: true, Groups: []gateway.KeptGroup{
		{Input: "kepware-3", Device: "plc-7", Reason: "TZ_SHAPED", Count: 248, Oldest: "2026-01-01T12:00:00.5Z", Newest: "2026-01-01T13:00:00Z", NextStep: "set its zone"},
		{Input: "line", Reason: "TS_SENTINEL", Count: 1, Oldest: "2026-01-01T12:00:00Z", Newest: "2026-01-01T12:00:00Z", NextStep: "set its clock"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "quarantine.txt", out.String())
}

// As a plant engineer would: look, release, look again.
func TestQuarantineOfARunningGateway(t *testing.T) {
	p := newPlant(t)
	p.say("press-1", "a", "yesterday", 1, "good")
	p.say("press-1", "b", "1970-01-01T00:00:10Z", 1, "good")
	p.say("press-1", "c", minute(0, 1), 1, "good")
	p.received(3)
	list := func() (q gateway.Quarantine) {
		t.Helper()
		if err := json.Unmarshal([]byte(p.ask("quarantine", "list", "-c", p.file, "--json")), &q); err != nil {
			t.Fatal(err)
		}
		return q
	}
	if q := list(); q.Count != 2 || len(q.Groups) != 2 || q.Gone != 0 || q.Release != nil {
		t.Errorf("at first: %+v", q)
	}
	if text := p.ask("quarantine", "list", "-c", p.file, "--reason", "ts_sentinel"); !strings.Contains(text, "1 reading of line d1, TS_SENTINEL") {
		t.Errorf("one reason:\n%s", text)
	}
	if text := p.ask("quarantine", "release", "-c", p.file, "--all"); text != "2 readings judged again: accepted 0, quarantined again 2\n" {
		t.Errorf("released:\n%s", text)
	}
	if q := list(); q.Count != 2 || q.Release.Quarantined != 2 || q.Releasing {
		t.Errorf("at last: %+v", q)
	}
	for want, args := range map[string][]string{
		"did you mean TS_SENTINEL?": {"quarantine", "list", "-c", p.file, "--reason", "TS_SENTINAL"},
		"or --all":                  {"quarantine", "release", "-c", p.file},
		"nothing like that":         {"quarantine", "release", "-c", p.file, "--device", "d9"},
		"list or release":           {"quarantine"},
	} {
		if _, errOut, code := p.try(args...); code == exitOK || !strings.Contains(errOut, want) {
			t.Errorf("%v: exit %d, %q, want %q", args, code, errOut, want)
		}
	}
}
