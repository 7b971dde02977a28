package test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestClockRulesAreCited: each rule of part 2 of SEMANTICS is named by a test, or
// by a scenario that a test runs. What nobody cites, nobody checks.
func TestClockRulesAreCited(t *testing.T) {
	semantics, err := os.ReadFile("../docs/SEMANTICS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, clocks, _ := strings.Cut(string(semantics), "# Part 2: clocks")
	before, list, _ := strings.Cut(clocks, "**Disposition**")
	var rules [][]string
	for _, r := range regexp.MustCompile(`(?:- |\. )([KS][0-9]+) \p{Lu}`).FindAllStringSubmatch(before, -1) {
		rules = append(rules, []string{"", r[1]})
	}
	for _, n := range regexp.MustCompile(`(?m)^([0-9]+)\. `).FindAllStringSubmatch(list, -1) {
		rules = append(rules, []string{"", "Disposition " + n[1]})
	}
	if len(rules) != 7+3+9 {
		t.Fatalf("found %d rules: %v", len(rules), rules)
	}
	tests := readTests(t, "../clock", "../windowing", "../gateway")
	for _, r := range rules {
		if !regexp.MustCompile(`\b` + r[1] + `\b`).MatchString(tests) {
			t.Errorf("no test cites rule %s", r[1])
		}
	}
}

// readTests returns the text of all tests and scenarios below some directories.
func readTests(t *testing.T, dirs ...string) string {
	var all strings.Builder
	for _, dir := range dirs {
		err := fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, "_test.go") && path.Ext(name) != ".jsonl" {
				return err
			}
			data, err := os.ReadFile(path.Join(dir, name))
			all.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
