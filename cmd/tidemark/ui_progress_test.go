package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestProgressLine(t *testing.T) {
	for want, share := range map[string]float64{
		"reading [                              ]   0 %":                  0,
		"reading [███████                       ]  25 %, about 30s to go": 0.25,
		"reading [██████████████████████████████] 100 %":                  1.5,
	} {
		if got := progressLine("reading", share, 10*time.Second); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Whatever is interrupted says so, ends with 1, and leaves neither a file that looks
// whole nor a begun one.
func TestInterruptedWork(t *testing.T) {
	path := storeFile(t)
	dir := filepath.Dir(path)
	config, trace := filepath.Join(dir, "t.yaml"), filepath.Join(dir, "trace.jsonl")
	for file, text := range map[string]string{config: "gateway: {id: g}\nstore: {path: t.db}\n", trace: `{"op":"advance","time":0}` + "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	backup := filepath.Join(t.TempDir(), "backup.tar.gz")
	if code := run(t.Context(), []string{"backup", "-c", config, "-o", backup}, nil, io.Discard, os.Stderr); code != exitOK {
		t.Fatal("no backup")
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"store check t.db", "store check --replay t.db", "store stats t.db", "store compact t.db", "store salvage t.db new.db",
		"record --store t.db -o out", "record --store t.db", "reconcile --store t.db -o out", "explain --store t.db a/b latest",
		"advise --store t.db", "advise trace.jsonl", "replay trace.jsonl", "backup -c t.yaml -o out", "restore --root root " + backup,
	} {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		fields := strings.Fields(args)
		for i, f := range fields {
			switch f {
			case "t.db", "t.yaml", "new.db", "out", "root", "trace.jsonl":
				fields[i] = filepath.Join(dir, f)
			}
		}
		var out, errOut bytes.Buffer
		code := run(ctx, fields, strings.NewReader(""), &out, &errOut)
		if code != exitRuntime || errOut.String() != "tidemark: interrupted before the end\n" || out.Len() > 0 {
			t.Errorf("%s: exit %d, %q, %q", args, code, out.String(), errOut.String())
		}
		after, err := os.ReadDir(dir)
		if err != nil || len(after) != len(before) {
			t.Errorf("%s: left %v", args, after)
		}
	}
}
