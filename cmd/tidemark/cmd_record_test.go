package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// results reduces records, or lines of a replay, to what a consumer keeps.
func results(t *testing.T, records []map[string]any) (list []string) {
	t.Helper()
	for _, r := range records {
		if r["type"] != "feature" && r["type"] != "closed" {
			continue
		}
		values, err := json.Marshal(r["values"])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(r["type"], " ", r["asset"], "/", r["sensor"], " ", r["feature"], " ", r["window_start"],
			" ", r["revision"], " ", r["status"], " ", r["cause"], " ", string(values)))
	}
	return list
}

func jsonLines(t *testing.T, text string) (list []map[string]any) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		var r map[string]any
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// What a gateway has sent follows from what is recorded of it, in the same order:
// from the running gateway, and from its store when it has stopped.
func TestRecordedJournalReplaysToWhatWasSent(t *testing.T) {
	p := newPlant(t)
	p.story()
	sent := slices.Concat(p.sent("feature"), p.sent("closed"))
	want := results(t, sent)
	if len(want) < 4 {
		t.Fatalf("only %d results were sent: %v", len(want), want)
	}
	slices.Sort(want)
	replayed := func(args ...string) []string {
		t.Helper()
		trace := filepath.Join(t.TempDir(), "trace.jsonl")
		p.ask(append([]string{"record", "-o", trace}, args...)...)
		got := results(t, jsonLines(t, p.ask("replay", "--as-recorded", trace)))
		slices.Sort(got)
		return got
	}
	if diff := cmp.Diff(want, replayed("-c", p.file)); diff != "" {
		t.Errorf("recorded from the running gateway (-sent +replayed):\n%s", diff)
	}
	p.stop()
	before, err := os.ReadFile(p.store)
	if err != nil {
		t.Fatal(err)
	}
	got := replayed("--store", p.store)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recorded from the store at rest (-sent +replayed):\n%s", diff)
	}
	after, err := os.ReadFile(p.store)
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("looking into a store changed it (%v)", err)
	}
}

func TestRecordOfOneSensor(t *testing.T) {
	p := newPlant(t)
	p.story()
	lines := jsonLines(t, p.ask("record", "-c", p.file, "--sensor", "press-2/temp"))
	var ids []string
	for _, l := range lines {
		rs, _ := l["readings"].([]any)
		for _, r := range rs {
			ids = append(ids, fmt.Sprint(r.(map[string]any)["id"]))
		}
	}
	if fmt.Sprint(ids) != "[d f]" {
		t.Errorf("recorded %v, want the readings of press-2 alone", ids)
	}
}

func TestJournalsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	nothing, text, begun := filepath.Join(dir, "none.db"), filepath.Join(dir, "text.db"), filepath.Join(dir, "trace")
	if err := os.WriteFile(text, []byte("no store at all"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &plant{t: t}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"record --store " + nothing, exitStorage, "no such file"},
		{"record --store " + text, exitStorage, "is no store"},
		{"record --socket " + nothing, exitRuntime, "the gateway is not running"},
		{"record --from noon", exitUsage, "no time"},
		{"record --sensor temp --socket x", exitUsage, "names no sensor"},
		{"record --store " + nothing + " -o " + text, exitUsage, "there already"},
		{"record --store " + nothing + " -o " + begun, exitStorage, "no such file"},
		{"advise --store " + nothing, exitStorage, "no such file"},
		{"advise --socket x trace.jsonl", exitUsage, "not both"},
	} {
		out, errOut, code := p.try(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errOut, c.want) || strings.Count(errOut, "\n") != 1 || out != "" {
			t.Errorf("%s: exit %d, %q; want exit %d and %q in one line", c.args, code, errOut, c.code, c.want)
		}
	}
	if _, err := os.Stat(begun); !os.IsNotExist(err) {
		t.Errorf("a trace that could not be written was left (%v)", err)
	}
}

// Over the journal, advise says what it says over the trace of the journal.
func TestAdviseOverTheJournal(t *testing.T) {
	p := newPlant(t)
	p.story()
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	p.ask("record", "-c", p.file, "-o", trace)
	var live, recorded advice
	for args, a := range map[string]*advice{"advise --json --socket " + p.socket: &live, "advise --json " + trace: &recorded} {
		if err := json.Unmarshal([]byte(p.ask(strings.Fields(args)...)), a); err != nil {
			t.Fatal(err)
		}
	}
	if live.Report == nil || live.Readings != 9 || !strings.HasPrefix(live.Trace, "journal of plant since 2") {
		t.Errorf("measured %+v of %q, want 9 readings", live.Report, live.Trace)
	}
	if diff := cmp.Diff(recorded.Report, live.Report); diff != "" {
		t.Errorf("(-trace +journal):\n%s", diff)
	}
}
