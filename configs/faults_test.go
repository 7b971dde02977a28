package configs_test

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidemark/configs"
)

var update = flag.Bool("update", false, "rewrite testdata")

// TestFaults runs the stories of testdata: a name, a file, and what is said about
// it. "left out" names the features that a gateway would run without.
func TestFaults(t *testing.T) {
	for _, file := range []string{"testdata/faults.txt", "testdata/notices.txt"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, rest, _ := strings.Cut(string(data), "=== ")
		out := []string{head}
		for story := range strings.SplitSeq(rest, "\n=== ") {
			name, body, _ := strings.Cut(story, "\n")
			input, want, ok := strings.Cut(body, "----\n")
			if !ok {
				t.Fatalf("%s: %q has no ----", file, name)
			}
			if strconv.IntSize == 32 { // a store is no larger there
				want = strings.ReplaceAll(want, "16MiB to 1TiB", "16MiB to 512MiB")
			}
			got := verdict(input, strings.HasSuffix(file, "notices.txt"))
			out = append(out, name+"\n"+input+"----\n"+got)
			t.Run(name, func(t *testing.T) {
				if want := strings.TrimRight(want, "\n"); strings.TrimRight(got, "\n") != want && !*update {
					t.Errorf("got:\n%swant:\n%s", got, want)
				}
			})
		}
		if *update {
			text := out[0] + "=== " + strings.Join(out[1:], "\n=== ")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func verdict(input string, notices bool) string {
	input = strings.NewReplacer(`\t`, "\t", `\xff`, "\xff", `\x07`, "\x07").Replace(input)
	c, err := configs.Parse("f.yaml", []byte(input), "host-1")
	var lines []string
	if err != nil {
		lines = append(lines, err.Error())
	}
	if c != nil {
		for _, d := range c.Disabled {
			lines = append(lines, "left out: "+d.Name)
		}
		for _, n := range c.Notices {
			if notices {
				lines = append(lines, n.String())
			}
		}
	}
	return strings.Join(append(lines, ""), "\n")
}

// A fault in a feature takes that feature only (and one elsewhere takes all).
func TestFaultyFeatureLeavesTheRest(t *testing.T) {
	text := `
inputs: [{name: a, mqtt: {url: "mqtt://h", subscribe: [{topic: "x/{sensor}"}]}}]
features:
  - {name: good}
  - {name: bad, window: 5}
  - {name: also-good, select: {input: a}}
`
	c, err := configs.Parse("f.yaml", []byte(text), "h")
	var faults configs.Faults
	if !errors.As(err, &faults) || len(faults) != 1 || c == nil {
		t.Fatalf("config %v, error %v", c != nil, err)
	}
	var names []string
	for _, f := range c.Features {
		names = append(names, f.Name)
	}
	if want := []string{"good", "also-good"}; !slices.Equal(names, want) {
		t.Errorf("features %v, want %v", names, want)
	}
	if len(c.Disabled) != 1 || c.Disabled[0].Name != "bad" || len(c.Disabled[0].Faults) != 1 {
		t.Errorf("disabled %v", c.Disabled)
	}
	if c, err := configs.Parse("f.yaml", []byte(text+"uplink: []\n"), "h"); c != nil || err == nil {
		t.Errorf("a fault outside features left a configuration")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"tidemark.yaml", "demo.yaml"} {
		data, err := configs.Files.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add([]byte(uncommented(string(data))))
	}
	stories, err := os.ReadFile("testdata/faults.txt")
	if err != nil {
		f.Fatal(err)
	}
	for story := range strings.SplitSeq(string(stories), "\n=== ") {
		_, body, _ := strings.Cut(story, "\n")
		input, _, _ := strings.Cut(body, "----\n")
		f.Add([]byte(input))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := configs.Parse("f.yaml", data, "h")
		if err == nil {
			if c == nil {
				t.Fatal("neither configuration nor faults")
			}
			return
		}
		var faults configs.Faults
		if !errors.As(err, &faults) || len(faults) == 0 {
			t.Fatalf("not faults: %v", err)
		}
		for i, x := range faults {
			if x.Line < 1 || x.Column < 1 || x.Reason == "" {
				t.Errorf("fault without a place or reason: %+v", x)
			}
			if i > 0 && faults[i-1].Line > x.Line {
				t.Errorf("faults out of order: line %d after %d", x.Line, faults[i-1].Line)
			}
		}
		if _, again := configs.Parse("f.yaml", data, "h"); again.Error() != err.Error() {
			t.Errorf("two readings of one file differ:\n%v\n\n%v", err, again)
		}
	})
}
