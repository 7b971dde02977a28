package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The late reading is in the reconciled view and not in what was served, and what
// was served stays as it is.
func TestReconcile(t *testing.T) {
	p := newPlant(t)
	p.story()
	served := results(t, p.sent("feature"))
	file := filepath.Join(t.TempDir(), "view.jsonl")
	_, errOut, code := p.try("reconcile", "-c", p.file, "--out", file, "--view", "v1")
	if want := "view v1: 3 windows, 3 of them partial\n"; code != exitOK || errOut != want {
		t.Fatalf("exit %d, %q, want %q", code, errOut, want)
	}
	check := func(text, view string) {
		t.Helper()
		var got []string
		for _, r := range jsonLines(t, text) {
			if r["type"] != "reconciled" || r["view"] != view || r["gateway"] != "plant" || r["generation"].(float64) == 0 || r["revision"] != nil {
				t.Errorf("head of %v", r)
			}
			if at, err := time.Parse(time.RFC3339, r["reconciled_at"].(string)); err != nil || time.Since(at) > time.Minute {
				t.Errorf("reconciled at %v", r["reconciled_at"])
			}
			values, _ := json.Marshal(r["values"])
			got = append(got, fmt.Sprint(r["asset"], " ", r["window_start"], " ", string(values), " ", r["partial_because"]))
		}
		slices.Sort(got)
		want := []string{
			`press-1 2026-01-01T12:00:00Z {"count":4,"mean":40,"sum":160} [before_store]`,
			`press-2 2026-01-01T12:01:00Z {"count":1,"mean":1,"sum":1} [before_store]`,
			`press-2 2026-01-01T12:02:00Z {"count":1,"mean":1,"sum":1} [before_store not_over]`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	check(string(text), "v1")
	if now := results(t, p.sent("feature")); !slices.Equal(now, served) || len(p.sent("reconciled")) > 0 {
		t.Errorf("what was served has changed from %v to %v", served, now)
	}
	p.stop()
	check(p.ask("reconcile", "--store", p.store, "--view", "v2"), "v2")
	if out := p.ask("reconcile", "--store", p.store, "--sensor", "press-2/temp", "--from", minute(2, 0)); strings.Count(out, "\n") != 1 {
		t.Errorf("one window was asked for, and came\n%s", out)
	}
	_, errOut, code = p.try("reconcile", "--store", p.store, "--feature", "hour")
	if code != exitUsage || !strings.Contains(errOut, `"hour"`) {
		t.Errorf("exit %d, %q", code, errOut)
	}
}
