package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// vector is a case of the conformance suite: flags and trace for a replay, and
// everything that must come out of it, by operation.
type vector struct {
	Name   string
	Source string // the public test or rule that it follows
	Flags  []string
	Trace  []json.RawMessage
	Expect []line
}

// line is a line of output, expected or got.
type line map[string]any

func (l line) after() int   { n, _ := l["after"].(float64); return int(n) }
func (l line) kind() string { s, _ := l["type"].(string); return s }

// TestWindowingVectors runs every case through the real command.
func TestWindowingVectors(t *testing.T) {
	f, err := os.Open("../../windowing/trace/testdata/windowing.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := bufio.NewScanner(f)
	cases.Buffer(nil, 1<<20)
	n := 0
	for ; cases.Scan(); n++ {
		var v vector
		if err := json.Unmarshal(cases.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		t.Run(v.Name, func(t *testing.T) {
			if v.check(t); t.Failed() {
				t.Log("this follows", v.Source)
			}
		})
	}
	if err := cases.Err(); err != nil || n < 77 {
		t.Fatalf("%d cases: %v", n, err)
	}
}

func (v *vector) check(t *testing.T) {
	var got []line
	for text := range strings.Lines(replayOK(t, v.Flags, joinLines(v.Trace))) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got = append(got, l)
	}
	for i, op := range v.Trace {
		at := func(l line) bool { return l.after() != i }
		want, came := slices.DeleteFunc(slices.Clone(v.Expect), at), slices.DeleteFunc(slices.Clone(got), at)
		left := slices.Clone(came)
		for _, w := range want {
			n := slices.IndexFunc(left, func(g line) bool { return same(w, g) })
			if n < 0 {
				t.Errorf("op %d %s: missing %v; came: %v", i, op, w, came)
				continue
			}
			left = slices.Delete(left, n, n+1)
		}
		for _, l := range left {
			t.Errorf("op %d %s: unexpected %v", i, op, l)
		}
		checkOrder(t, i, came, slices.Contains(v.Flags, "device") || slices.Contains(v.Flags, "sensor"))
	}
}

// checkOrder checks one operation's lines against SEMANTICS F4.
func checkOrder(t *testing.T, op int, lines []line, ownWatermarks bool) {
	t.Helper()
	var lastEnd time.Time
	closed := map[[3]any]bool{}
	for _, l := range lines {
		key := [3]any{l["asset"], l["sensor"], l["window_start"]}
		switch l.kind() {
		case "closed":
			closed[key] = true
		case "feature":
			end := clockTime(l["window_end"])
			if end.Before(lastEnd) && !ownWatermarks {
				t.Errorf("op %d: features not in order of window end", op)
			}
			if closed[key] {
				t.Errorf("op %d: a feature after its window's closing", op)
			}
			lastEnd = end
		}
	}
}

// same reports whether got has everything of want: numbers exactly, means within
// one part in 10^12, times as moments.
func same(want, got line) bool {
	for key, w := range want {
		g, there := got[key]
		switch {
		case !there && (key != "sensor" || w != ""):
			return false
		case key == "time" || key == "window_start" || key == "window_end":
			if !clockTime(w).Equal(clockTime(g)) {
				return false
			}
		case key == "values":
			if !sameValues(w.(map[string]any), g) {
				return false
			}
		case !reflect.DeepEqual(w, g):
			return false
		}
	}
	return true
}

func sameValues(want map[string]any, got any) bool {
	values, _ := got.(map[string]any)
	for name, w := range want {
		x, _ := w.(float64)
		y, ok := values[name].(float64)
		tolerance := 0.0
		if name == "mean" {
			tolerance = 1e-12 * max(1, math.Abs(x))
		}
		if !ok || math.Abs(x-y) > tolerance {
			return false
		}
	}
	return true
}

func clockTime(v any) time.Time {
	s, _ := v.(string)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

func joinLines(ops []json.RawMessage) string {
	var b strings.Builder
	for _, op := range ops {
		b.Write(op)
		b.WriteByte('\n')
	}
	return b.String()
}

// runReplay replays a trace from standard input.
func runReplay(t *testing.T, flags []string, trace string) (code int, out, errOut string) {
	t.Helper()
	return runTrace(t, "replay", flags, trace)
}

func replayOK(t *testing.T, flags []string, trace string) string {
	t.Helper()
	return traceOK(t, "replay", flags, trace)
}

// runTrace has a command read a trace from standard input.
func runTrace(t *testing.T, command string, flags []string, trace string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append(append([]string{command}, flags...), "-"), strings.NewReader(trace), &o, &e)
	return code, o.String(), e.String()
}

func traceOK(t *testing.T, command string, flags []string, trace string) string {
	t.Helper()
	code, out, errOut := runTrace(t, command, flags, trace)
	if code != exitOK || errOut != "" {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	return out
}

// usage is a call that a command refuses, and what it says of it.
type usage struct {
	args []string
	want string
}

func checkUsage(t *testing.T, command string, calls []usage) {
	t.Helper()
	for _, c := range calls {
		var out, errOut strings.Builder
		code := run(t.Context(), append([]string{command}, c.args...), strings.NewReader(""), &out, &errOut)
		if code != exitUsage || !strings.Contains(errOut.String(), c.want) || out.Len() > 0 {
			t.Errorf("%s %v: exit %d, %q, want %q", command, c.args, code, errOut.String(), c.want)
		}
	}
}
