package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark/buffer"
)

// storeFile writes a store of three blocks with a record each; block 2 has the
// text SPOIL in it.
func storeFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.db")
	s, _, err := buffer.Open(path, buffer.Options{Quota: 8 << 20, Uplinks: []string{"plant"}, NowMS: 1_767_225_600_000})
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= 3; seq++ {
		data := bytes.Repeat([]byte{byte(seq)}, 5000)
		if seq == 2 {
			copy(data[4900:], "SPOIL")
		}
		if err := s.Commit(&buffer.Commit{
			Block:   &buffer.Block{Seq: seq, Readings: 10, Data: data},
			Records: []buffer.Record{{Kind: 1, Data: []byte("record")}},
			Meta:    map[string][]byte{"clock": {1}},
			AtMS:    1_767_225_600_000 + int64(seq)*1000,
		}); err != nil {
			t.Fatal(err)
		}
	}
	s.Outbox("plant").Delivered(buffer.Live, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func spoilStore(t *testing.T, path string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(file, []byte("SPOIL"), []byte("spoil")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func runStore(t *testing.T, dir string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{"store"}, args...), strings.NewReader(""), &o, &e)
	name := strings.NewReplacer(dir+"/", "")
	return code, name.Replace(o.String()), name.Replace(e.String())
}

func TestStoreOfASoundFile(t *testing.T) {
	path := storeFile(t)
	dir := filepath.Dir(path)
	code, out, errOut := runStore(t, dir, "check", path)
	if code != exitOK || out != "t.db: ok (3 blocks, 2 records, 0 pieces of evidence)\n" || errOut != "" {
		t.Errorf("check: %d %q %q", code, out, errOut)
	}
	// Its blocks hold no batches: they cannot be stepped, and that is said.
	code, _, errOut = runStore(t, dir, "check", path, "--replay")
	if code != exitStorage || !strings.Contains(errOut, "block") {
		t.Errorf("check --replay: %d %q", code, errOut)
	}
	code, out, errOut = runStore(t, dir, "stats", path)
	for _, want := range []string{
		"created   2026-01-01T00:00:00Z, 4 commits, the latest at 2026-01-01T00:00:03Z\n", "journal   1 to 3, ", ", 30 readings\n",
		"outbox    2 to 3, ", "          plant has delivered up to 1, 2 wait\n", "evidence  empty, the next is 1\n", "bucket    journal ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("stats lack %q:\n%s", want, out)
		}
	}
	if code != exitOK || errOut != "" {
		t.Errorf("stats: %d %q", code, errOut)
	}
	code, out, _ = runStore(t, dir, "stats", path, "--json")
	var r buffer.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK || r.Readings != 30 || strings.Contains(out, "null") {
		t.Errorf("stats --json: %d %v\n%s", code, err, out)
	}
	code, out, errOut = runStore(t, dir, "compact", path)
	if code != exitOK || !strings.HasPrefix(out, "t.db: ") || errOut != "" {
		t.Errorf("compact: %d %q %q", code, out, errOut)
	}
	if code, out, _ = runStore(t, dir, "check", path); code != exitOK {
		t.Errorf("after compacting: %d %q", code, out)
	}
}

func TestStoreOfADamagedFile(t *testing.T) {
	path := storeFile(t)
	dir := filepath.Dir(path)
	spoilStore(t, path)
	code, out, errOut := runStore(t, dir, "check", path)
	if code != exitStorage || !strings.HasPrefix(out, "offset ") || !strings.Contains(out, ": journal 2: chunk ") ||
		!strings.Contains(out, "not there: journal 2: ") || !strings.Contains(errOut, "2 faults") {
		t.Errorf("check: %d %q %q", code, out, errOut)
	}
	if code, out, errOut = runStore(t, dir, "compact", path); code != exitStorage || out != "" || !strings.Contains(errOut, "2 faults") {
		t.Errorf("compact: %d %q %q", code, out, errOut)
	}
	code, out, errOut = runStore(t, dir, "salvage", path, filepath.Join(dir, "new.db"))
	if code != exitOK || out != "wrote new.db: 2 blocks with 20 readings, 2 records, 0 pieces of evidence, 1 named value\nblock 2 is lost\n" {
		t.Errorf("salvage: %d %q %q", code, out, errOut)
	}
	if code, out, errOut = runStore(t, dir, "check", filepath.Join(dir, "new.db")); code != exitOK {
		t.Errorf("what was salvaged: %d %q %q", code, out, errOut)
	}
}

// Without its beginnings a store has one fault, and is brought back whole; a file
// that was never one is told apart.
func TestStoreWithoutABeginning(t *testing.T) {
	path := storeFile(t)
	dir := filepath.Dir(path)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(file[:2*4096])
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := runStore(t, dir, "check", path)
	if code != exitStorage || out != "offset 0: neither of the two meta pages is whole\n" || !strings.Contains(errOut, "1 fault;") {
		t.Errorf("check: %d %q %q", code, out, errOut)
	}
	if code, out, errOut = runStore(t, dir, "salvage", path, filepath.Join(dir, "new.db")); !strings.HasPrefix(out, "wrote new.db: 3 blocks with 30 readings, ") {
		t.Errorf("salvage: %d %q %q", code, out, errOut)
	}
	if err := os.WriteFile(path, []byte("gateway: {id: line-3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check"}, {"stats"}, {"compact"}, {"salvage", filepath.Join(dir, "newer.db")}} {
		code, out, errOut := runStore(t, dir, slices.Insert(slices.Clone(args), 1, path)...)
		if code != exitStorage || out != "" || !strings.Contains(errOut, `"t.db" is no store: `) || strings.Contains(errOut, "salvage") {
			t.Errorf("%v of another's file: %d %q %q", args, code, out, errOut)
		}
	}
}

func TestStoreUsage(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "check, stats, compact or salvage"},
		{[]string{"check"}, exitUsage, "FILE is missing"},
		{[]string{"check", filepath.Join(dir, "none.db")}, exitStorage, "no such file"},
		{[]string{"compact", filepath.Join(dir, "none.db")}, exitStorage, "no such file"},
		{[]string{"salvage", filepath.Join(dir, "none.db"), filepath.Join(dir, "new.db")}, exitStorage, "no such file"},
	} {
		if code, _, errOut := runStore(t, dir, x.args...); code != x.code || !strings.Contains(errOut, x.want) {
			t.Errorf("store %v: %d %q, want %d and %q", x.args, code, errOut, x.code, x.want)
		}
	}
}
