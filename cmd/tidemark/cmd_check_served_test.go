package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A definition that changed without a new version is a fault: the running gateway
// says so, and its store when it has stopped.
func TestCheckSeesAChangedDefinition(t *testing.T) {
	p := newPlant(t)
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(old, new string) string {
		t.Helper()
		file := filepath.Join(filepath.Dir(p.file), "edited.yaml")
		edited := strings.Replace(string(text), old, new, 1)
		if edited == string(text) {
			t.Fatalf("no %q to edit", old)
		}
		if err := os.WriteFile(file, []byte(edited), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	changed := regexp.MustCompile(`edited\.yaml:(\d+):\d+: the definition of minute version 1 has changed from [0-9a-f]{8} to [0-9a-f]{8}: raise its version to 2\n`)
	check := func(state string) {
		t.Helper()
		if out, errOut, code := p.try("check", "-c", p.file); code != exitOK || strings.Contains(out, "could not be seen") {
			t.Errorf("%s, unchanged: exit %d, %s%s", state, code, out, errOut)
		}
		for _, x := range [][2]string{
			{"functions: [count, sum, mean]", "functions: [count, sum]"},
			{"  - {name: minute,", "  - {name: broken, window: 5}\n  - {quality: good_only, name: minute,"},
		} {
			file := edit(x[0], x[1])
			edited, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before, _, _ := strings.Cut(string(edited), "name: minute")
			line := strconv.Itoa(1 + strings.Count(before, "\n"))
			out, errOut, code := p.try("check", "-c", file)
			if m := changed.FindStringSubmatch(out); code != exitUsage || m == nil || m[1] != line || !strings.Contains(out, `feature "minute" would be left out`) {
				t.Errorf("%s, changed in line %s: exit %d, %s%s", state, line, code, out, errOut)
			}
		}
		for _, x := range [][2]string{{"version: 1", "version: 2"}, {"out_of_orderness: 5s", "out_of_orderness: 6s"}} {
			if out, errOut, code := p.try("check", "-c", edit(x[0], x[1])); code != exitOK {
				t.Errorf("%s, %s: exit %d, %s%s", state, x[1], code, out, errOut)
			}
		}
	}
	check("running")
	p.stop()
	check("at rest")

	if err := os.WriteFile(p.store, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code := p.try("check", "-c", p.file)
	if code != exitUsage || !strings.Contains(out, "tidemark.yaml:4:15: ") || !strings.Contains(out, "is no store: ") {
		t.Errorf("a file that is no store: exit %d, %s", code, out)
	}
}
