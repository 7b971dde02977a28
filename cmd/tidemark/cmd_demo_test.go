package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestDemo runs the whole product for a few seconds: long enough for the clock to
// be trusted and for the first wrongly stamped reading to be set aside.
func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"demo", "--for", "7s", "--format", "json"}, nil, &out, &errOut); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &errOut)
	}
	types := map[string]int{}
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		var r struct{ Type, Gateway string }
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil || r.Gateway != "demo" {
			t.Errorf("no record: %s", lines.Bytes())
		}
		types[r.Type]++
	}
	if types["quarantine"] == 0 || types["event"] == 0 {
		t.Errorf("records by type: %v\n%s", types, &errOut)
	}
	if !strings.Contains(errOut.String(), "every reading is accounted for") {
		t.Errorf("no summary:\n%s", &errOut)
	}
	if want := fmt.Sprintf(" quarantined %d ", types["quarantine"]); !strings.Contains(errOut.String(), want) {
		t.Errorf("the summary counts otherwise than the records (%s):\n%s", want, &errOut)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDemoKeepsWhatItIsToldTo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var out, errOut bytes.Buffer
	if code := run(ctx, []string{"demo", "--keep"}, nil, &out, &errOut); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &errOut)
	}
	dir := strings.TrimSpace(strings.TrimPrefix(errOut.String(), "kept: "))
	for _, name := range []string{"demo.yaml", "demo.db", "demo.log"} {
		if _, err := os.Stat(dir + "/" + name); err != nil {
			t.Error(err)
		}
	}
	if code := run(t.Context(), []string{"check", "-c", dir + "/demo.yaml"}, nil, &out, &errOut); code != exitOK {
		t.Errorf("the kept configuration does not pass the check: %s%s", &out, &errOut)
	}
}

func TestDemoRefuses(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := run(t.Context(), append([]string{"demo"}, args...), nil, &out, &errOut); code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
		if !strings.Contains(errOut.String(), want) || out.Len() > 0 {
			t.Errorf("%v: %s%s", args, &out, &errOut)
		}
	}
	f("text or json", "--format", "xml")
	f("-1s is in the past", "--for", "-1s")
	f("5 needs a unit: ns, us, ms, s, m, h or d", "--for", "5")
	f("unknown", "now")
}

// closedPipe is an output whose reader has gone after the first write.
type closedPipe struct{ writes int }

func (p *closedPipe) Write(b []byte) (int, error) {
	if p.writes++; p.writes > 1 {
		return 0, os.ErrClosed
	}
	return len(b), nil
}

func TestDemoEndsWhenNobodyReads(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var errOut bytes.Buffer
	if code := run(t.Context(), []string{"demo", "--for", "20s"}, nil, &closedPipe{}, &errOut); code != exitRuntime {
		t.Errorf("exit code %d: %s", code, &errOut)
	}
}
