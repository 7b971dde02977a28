package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"tidemark/configs"
)

func runInit(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	host := fstest.MapFS{"etc/chrony/chrony.conf": {Data: []byte("server 10.0.3.1 iburst\npool 2.debian.pool.ntp.org iburst\n")}}
	cmd := initCmd(host, func() (string, error) { return "line-3", nil })
	var o, e bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.Execute()
	return o.String(), e.String(), err
}

func TestInit(t *testing.T) {
	text, _, err := runInit(t)
	if err != nil {
		t.Fatal(err)
	}
	c, err := configs.Parse("t.yaml", []byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	if c.Gateway.ID != "line-3" || len(c.Clock.Servers) != 1 || c.Clock.Servers[0] != "10.0.3.1" {
		t.Errorf("gateway %q, servers %v", c.Gateway.ID, c.Clock.Servers)
	}
	if !strings.Contains(text, "# 10.0.3.1: from /etc/chrony/chrony.conf\n") || !strings.Contains(text, "# Not proposed, since it is public: 2.debian.pool.ntp.org") {
		t.Errorf("the servers' origin is not told:\n%s", text)
	}
}

func TestInitWritesOnlyANewFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.yaml")
	out, errOut, err := runInit(t, "-o", file)
	if err != nil || out != "" || !strings.Contains(errOut, "tidemark check -c "+file) {
		t.Fatalf("%q, %q, %v", out, errOut, err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = runInit(t, "-o", file, "--reference")
	var e *exitError
	if !errors.As(err, &e) || e.code != exitRuntime || !strings.Contains(err.Error(), "exists") {
		t.Errorf("an existing file: %v", err)
	}
	if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
		t.Error("an existing file was changed")
	}
}

// The package's file is a list of what there is, and nobody's work.
func TestInitReplacesThePackagesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.yaml")
	for _, args := range [][]string{{"-o", file, "--reference"}, {"-o", file}} {
		if _, _, err := runInit(t, args...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "id: line-3") {
		t.Errorf("%v:\n%s", err, text)
	}
}

// What init writes is checked without a fault, and its store can be made, with
// nothing prepared.
func TestInitThenCheckThenRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.yaml")
	if _, _, err := runInit(t, "-o", file); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"check", "-c", file}, nil, &out, &errOut); code != exitOK {
		t.Fatalf("check: exit %d, %s%s", code, &out, &errOut)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	nobody := bytes.ReplaceAll(text, []byte("127.0.0.1:1883"), []byte("127.0.0.1:1")) // as far as this test goes
	if err := os.WriteFile(file, nobody, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer time.AfterFunc(300*time.Millisecond, stop).Stop()
	if code := run(ctx, []string{"run", "-c", file}, nil, &out, &errOut); code != exitOK {
		t.Fatalf("run: exit %d, %s", code, &errOut)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "tidemark.db")); err != nil {
		t.Error(err)
	}
}

func TestInitReference(t *testing.T) {
	text, _, err := runInit(t, "--reference")
	want, _ := configs.Files.ReadFile("tidemark.yaml")
	if err != nil || text != string(want) {
		t.Errorf("%v, %d bytes", err, len(text))
	}
}
