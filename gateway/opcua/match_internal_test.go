package opcua

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/reading"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
		series        reading.Series
	}{
		{"{asset}/{sensor}", "press/temp", true, reading.Series{Asset: "press", Sensor: "temp"}},
		{"{asset}/{sensor}", "press", false, reading.Series{}},
		{"{asset}/{sensor}", "press/a/temp", false, reading.Series{}},
		{"{asset}/*/{sensor}", "press/a/temp", true, reading.Series{Asset: "press", Sensor: "temp"}},
		{"{asset}/**/{sensor}", "press/temp", true, reading.Series{Asset: "press", Sensor: "temp"}},
		{"{asset}/**/{sensor}", "press/a/b/temp", true, reading.Series{Asset: "press", Sensor: "temp"}},
		{"**/{asset}/{sensor}", "hall/line/press/temp", true, reading.Series{Asset: "press", Sensor: "temp"}},
		{"Line*/{device}/{lifecycle}/{sensor}", "Line3/d/SN-1/temp", true, reading.Series{Device: "d", Lifecycle: "SN-1", Sensor: "temp"}},
		{"Line*/{sensor}", "Hall/temp", false, reading.Series{}},
		{"P_*_T/{sensor}", "P_12_T/x", true, reading.Series{Sensor: "x"}},
		{"P_*_T/{sensor}", "P_T/x", false, reading.Series{}},
		{"_System/**", "_System", true, reading.Series{}},
		{"_System/**", "_System/a/b", true, reading.Series{}},
		{"*/_Hints/**", "press/_Hints/max", true, reading.Series{}},
		{"*/_Hints/**", "press/temp", false, reading.Series{}},
		{"**", "a/b", true, reading.Series{}},
	} {
		var s reading.Series
		if got := parsePattern(c.pattern).match(strings.Split(c.path, "/"), &s); got != c.want || s != c.series {
			t.Errorf("%s on %s: %v %+v, want %v %+v", c.pattern, c.path, got, s, c.want, c.series)
		}
	}
}

// What leads nowhere is not browsed, and what matches is always led to.
func TestLeadsToEveryMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.SampledFrom([]string{"a", "b", "ab"})
		p := pattern(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "*", "**", "a*", "{sensor}"}), 1, 4).Draw(t, "pattern"))
		path := rapid.SliceOfN(level, 0, 5).Draw(t, "path")
		if !p.match(path, nil) {
			return
		}
		for n := range path {
			if !p.leads(path[:n]) {
				t.Fatalf("%v matches %v and does not lead to it from %v", p, path, path[:n])
			}
		}
		if p.whole(path) && !p.match(append(slices.Clone(path), level.Draw(t, "below")), nil) {
			t.Fatalf("%v takes in all below %v and does not", p, path)
		}
	})
}

func TestCheckMatch(t *testing.T) {
	f := func(pattern, want string) {
		t.Helper()
		err := checkMatch(pattern)
		if want == "" && err == nil {
			return
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", pattern, err, want)
		}
	}
	f("{asset}/{sensor}", "")
	f("**/{sensor}", "")
	f("{asset}/x", "{sensor}")
	f("{asset}//{sensor}", "empty level")
	f("{asset}/{asset}/{sensor}", "twice")
	f("{machine}/{sensor}", "is not known")
	f("T_{sensor}/{sensor}", "as a whole")
}

func TestPathsAndPlacesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.SliceOfN(rapid.StringN(1, 8, 20), 1, 4).Draw(t, "levels")
		if got, err := splitPath(joinPath(levels)); err != nil || !slices.Equal(got, levels) {
			t.Fatalf("%q came back as %q, %v", levels, got, err)
		}
		table := namespaces{"http://opcfoundation.org/UA/", rapid.StringN(1, 10, 30).Draw(t, "uri"), "urn:b%;c"}
		n, err := table.node("nsu=" + uriEscapes.Replace(table[rapid.IntRange(1, 2).Draw(t, "ns")]) + ";s=" + rapid.StringN(1, 10, 30).Draw(t, "id"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := table.node(table.place(n))
		if err != nil || again.String() != n.String() && table[1] != table[2] {
			t.Fatalf("%v came back as %v, %v", n, again, err)
		}
	})
}

func TestUneceCodes(t *testing.T) {
	for unit, code := range map[int32]string{4408652: "CEL", 17476: "DD", 12857: "29", -1: "\xff\xff\xff\xff", 0: ""} {
		if got := uneceCode(unit); got != code {
			t.Errorf("%d: %q, want %q", unit, got, code)
		}
	}
}
