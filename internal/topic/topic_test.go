package topic_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/topic"
)

// matches is MQTT 5, 4.7, level by level.
func matches(filter, name []string) bool {
	switch {
	case len(filter) == 0:
		return len(name) == 0
	case filter[0] == "#":
		return true
	case len(name) == 0:
		return false
	}
	return (filter[0] == "+" || strings.HasPrefix(filter[0], "{") || filter[0] == name[0]) && matches(filter[1:], name[1:])
}

func matchesWhole(filter string, name []string) bool {
	f := strings.Split(filter, "/")
	if strings.HasPrefix(name[0], "$") && !strings.HasPrefix(f[0], "$") {
		return false
	}
	return matches(f, name)
}

// names are all topics of up to four levels, with a word that stands in no filter.
func names() (all [][]string) {
	rows := [][]string{{}}
	for range 4 {
		var next [][]string
		for _, row := range rows {
			for _, word := range []string{"a", "b", "$s", "", "other"} {
				next = append(next, append(row[:len(row):len(row)], word))
			}
		}
		rows = next
		all = append(all, rows...)
	}
	return all
}

// Both say what looking at every topic says.
func TestCoversAndMeet(t *testing.T) {
	all := names()
	level := rapid.SampledFrom([]string{"a", "b", "$s", "", "+", "{asset}"})
	filter := rapid.Custom(func(t *rapid.T) string {
		f := rapid.SliceOfN(level, 1, 3).Draw(t, "levels")
		switch rapid.IntRange(0, 3).Draw(t, "deep") {
		case 0:
			f = append(f, "#")
		case 1:
			f[len(f)-1] = "#"
		}
		return strings.Join(f, "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := filter.Draw(t, "a"), filter.Draw(t, "b")
		covers, meet := true, false
		for _, name := range all {
			inA, inB := matchesWhole(a, name), matchesWhole(b, name)
			covers = covers && (inA || !inB)
			meet = meet || inA && inB
		}
		if got := topic.Covers(a, b); got != covers {
			t.Errorf("%s covers %s: %v", a, b, got)
		}
		if got := topic.Meet(a, b); got != meet || topic.Meet(b, a) != meet {
			t.Errorf("%s meets %s: %v", a, b, got)
		}
	})
}
