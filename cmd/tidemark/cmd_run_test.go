package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/configs"
	"tidemark/gateway"
)

func TestRunSaysThatTheStoresDirectoryIsMissing(t *testing.T) {
	text := strings.Replace(validConfig, "path: t.db", "path: none/t.db", 1)
	code, _, errOut := runConfig(t, text, "run")
	want := "tidemark: the store's directory DIR/none does not exist; create it, or name another store.path\n"
	if code != exitStorage || !strings.HasSuffix(errOut, want) {
		t.Errorf("exit %d, %s", code, errOut)
	}
	code, out, _ := runConfig(t, text, "check")
	if want := "FILE:4:15: the store's directory DIR/none does not exist"; code != exitUsage || !strings.HasPrefix(out, want) {
		t.Errorf("check: exit %d, %s", code, out)
	}
}

// runGateway runs the command beside the test. What it returns waits for its end.
func runGateway(t *testing.T, file string) (stop func() (code int, log string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var errOut bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"run", "-c", file}, strings.NewReader(""), io.Discard, &errOut) }()
	return func() (int, string) {
		cancel()
		return <-code, errOut.String()
	}
}

// statusBecomes asks the gateway until the status is as wanted.
func statusBecomes(t *testing.T, file, what string, ok func(*gateway.Status) bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for {
		st, err := gateway.AskStatus(t.Context(), configs.StoreOf(file).Socket())
		if err == nil && ok(st) {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never %s: %+v, %v", what, st, err)
		}
	}
}

func TestRunAppliesAnEditedFileOnHangup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hangup := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	named := func(name string) func(*gateway.Status) bool {
		return func(st *gateway.Status) bool {
			return st.Block > 0 && len(st.Features) == 1 && st.Features[0].Name == name
		}
	}
	write(validConfig)
	stop := runGateway(t, file)
	statusBecomes(t, file, "serving", named("f"))
	write(strings.Replace(validConfig, "{name: f}", "{name: g}", 1))
	hangup()
	statusBecomes(t, file, "serving the edited file", named("g"))
	write(validConfig + "oops: 1\n")
	hangup()
	rejected := func(st *gateway.Status) bool { return st.Block > 0 && st.Configuration.Rejected != nil }
	statusBecomes(t, file, "telling of the fault", rejected)
	if code, _, errOut := runIn(t, "reload", "-c", file); code != exitUsage || !strings.Contains(errOut, "t.yaml:8:1: unknown key") {
		t.Errorf("reload of a faulty file: exit %d, %s", code, errOut)
	}
	write(strings.Replace(validConfig, "{name: f}", "{name: h}", 1))
	if code, out, errOut := runIn(t, "reload", "-c", file); code != exitOK || !strings.Contains(out, "t.yaml is in force") {
		t.Errorf("reload: exit %d, %s%s", code, out, errOut)
	}
	statusBecomes(t, file, "serving the reloaded file", named("h"))
	socket := configs.StoreOf(file).Socket()
	write("{{{")
	if code, _, errOut := runIn(t, "reload", "-c", file); code != exitUsage || !strings.Contains(errOut, "at fault and changed nothing") {
		t.Errorf("reload of a file that names no store: exit %d, %s", code, errOut)
	}
	moved := strings.Replace(validConfig, "path: t.db", "path: other.db", 1)
	write(moved)
	if code, _, errOut := runIn(t, "reload", "-c", file); code != exitRuntime || !strings.Contains(errOut, "store.path") {
		t.Errorf("reload of a file with another store: exit %d, %s", code, errOut)
	}
	if code, out, errOut := runIn(t, "reload", "-c", file, "--socket", socket); code != exitOK || !strings.Contains(out, "t.yaml is in force") {
		t.Errorf("reload to another store: exit %d, %s%s", code, out, errOut)
	}
	statusBecomes(t, file, "serving with another store", named("f"))
	write(validConfig + "oops: 1\n")
	if code, log := stop(); code != exitOK {
		t.Fatalf("exit %d, %s", code, log)
	}

	stop = runGateway(t, file)
	statusBecomes(t, file, "serving the last good file", rejected)
	if code, log := stop(); code != exitOK || !strings.Contains(log, "t.yaml:8:1: unknown key") {
		t.Errorf("exit %d, %s", code, log)
	}
	if code, _, errOut := runIn(t, "run", "-c", file, "--strict"); code != exitUsage || !strings.Contains(errOut, `unknown key "oops"`) {
		t.Errorf("strict: exit %d, %s", code, errOut)
	}
}

// runIn runs a command that ends by itself.
func runIn(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}
