package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/gateway"
)

const backedUpConfig = `
gateway: {id: g}
clock: {trust: local}
store: {path: state/t.db}
inputs: [{name: a, mqtt: {url: "mqtt://127.0.0.1:1", login: {user: u, password: {file: secret}}, subscribe: [{topic: "x/{sensor}"}]}}]
features: [{name: f}]
`

// backedUp runs a gateway and saves it while it runs.
func backedUp(t *testing.T) (dir, out string, before *gateway.Status) {
	t.Helper()
	dir = t.TempDir()
	put(t, filepath.Join(dir, "t.yaml"), backedUpConfig)
	put(t, filepath.Join(dir, "secret"), "hush\n")
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "t.yaml")
	stop := runGateway(t, file)
	statusBecomes(t, file, "serving", func(st *gateway.Status) bool { before = st; return st.Block > 0 && st.Generation > 0 })
	out = filepath.Join(dir, "out.tar.gz")
	if code, text, errOut := runIn(t, "backup", "-c", file, "-o", out); code != exitOK || !strings.Contains(text, "the store and 2 files of gateway g") {
		t.Fatalf("exit %d, %s%s", code, text, errOut)
	}
	if code, log := stop(); code != exitOK {
		t.Fatalf("exit %d, %s", code, log)
	}
	return dir, out, before
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBackupIsForItsOwnerOnly(t *testing.T) {
	_, out, _ := backedUp(t)
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// On the same machine: nothing is overwritten unasked, a store never, and what
// goes on has a generation above.
func TestRestoreContinuesUnderANewGeneration(t *testing.T) {
	dir, out, before := backedUp(t)
	file, store := filepath.Join(dir, "t.yaml"), filepath.Join(dir, "state", "t.db")
	put(t, filepath.Join(dir, "secret"), "other\n")
	code, _, errOut := runIn(t, "restore", out)
	if code != exitUsage || !strings.Contains(errOut, store+"\n") || !strings.Contains(errOut, "--overwrite") {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "secret")); string(data) != "other\n" {
		t.Fatalf("a refused restore wrote %q", data)
	}
	code, text, errOut := runIn(t, "restore", "--overwrite", out)
	kept, _ := filepath.Glob(store + ".before-restore-*")
	if code != exitOK || len(kept) != 1 || !strings.Contains(text, kept[0]) {
		t.Fatalf("exit %d, kept %v, %s%s", code, kept, text, errOut)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "secret")); string(data) != "hush\n" {
		t.Errorf("restored %q", data)
	}
	for range 2 { // the second start is an ordinary one
		stop := runGateway(t, file)
		var after *gateway.Status
		statusBecomes(t, file, "serving", func(st *gateway.Status) bool {
			after = st
			return st.Generation > before.Generation && st.Block > before.Block
		})
		if code, log := stop(); code != exitOK {
			t.Fatalf("exit %d, %s", code, log)
		}
		if after.Emitted["event"] <= before.Emitted["event"] {
			t.Errorf("nothing said that it was restored: %v, then %v", before.Emitted, after.Emitted)
		}
		*before = *after
		before.Generation--
		before.Block--
		before.Emitted["event"]--
	}
}

// For another machine's file system, and with the gateway's store in use.
func TestRestoreBelowARoot(t *testing.T) {
	dir, out, _ := backedUp(t)
	root := t.TempDir()
	if code, text, errOut := runIn(t, "restore", "--root", root, out); code != exitOK || !strings.Contains(text, filepath.Join(root, dir, "t.yaml")) {
		t.Fatalf("exit %d, %s%s", code, text, errOut)
	}
	for _, name := range []string{"t.yaml", "secret", "state/t.db"} {
		if _, err := os.Stat(filepath.Join(root, dir, name)); err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(data)
	flipped[len(data)-8] ^= 1 // of the checksum
	damaged := filepath.Join(dir, "damaged.tar.gz")
	for how, content := range map[string][]byte{"cut short": data[:len(data)-100], "without its end": data[:len(data)-1], "flipped": flipped} {
		put(t, damaged, string(content))
		if code, _, errOut := runIn(t, "restore", "--overwrite", damaged); code != exitRuntime || !strings.Contains(errOut, "cannot restore") {
			t.Errorf("%s: exit %d, %s", how, code, errOut)
		}
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "state", "*.before-restore-*")); len(kept) > 0 {
		t.Errorf("a damaged backup moved the store to %v", kept)
	}
}

// A restore that does not come to its end, for whatever reason, leaves the store that
// was there: one that does not know that it was restored would count its revisions on.
func TestRestoreThatFailsLeavesTheStore(t *testing.T) {
	dir, out, _ := backedUp(t)
	secret, store := filepath.Join(dir, "secret"), filepath.Join(dir, "state", "t.db")
	if err := errors.Join(os.Remove(secret), os.Mkdir(secret, 0o700)); err != nil { // no file can take its name
		t.Fatal(err)
	}
	before, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := runIn(t, "restore", "--overwrite", out); code != exitRuntime || !strings.Contains(errOut, secret) {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	if after, err := os.ReadFile(store); err != nil || !bytes.Equal(after, before) {
		t.Errorf("another store is there, %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "state", "*")); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	if code, text, errOut := runIn(t, "restore", "--overwrite", out); code != exitOK {
		t.Errorf("exit %d, %s%s", code, text, errOut)
	}
}

func TestRestoreRefusesWhileTheGatewayRuns(t *testing.T) {
	dir, out, _ := backedUp(t)
	file := filepath.Join(dir, "t.yaml")
	stop := runGateway(t, file)
	statusBecomes(t, file, "serving", func(st *gateway.Status) bool { return st.Generation > 0 })
	if code, _, errOut := runIn(t, "restore", "--overwrite", out); code == exitOK || !strings.Contains(errOut, "in use") {
		t.Errorf("exit %d, %s", code, errOut)
	}
	if code, log := stop(); code != exitOK {
		t.Errorf("exit %d, %s", code, log)
	}
}
