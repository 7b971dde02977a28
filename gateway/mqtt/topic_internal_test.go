package mqtt

import (
	"strings"
	"testing"
)

func TestMatchTopic(t *testing.T) {
	for _, c := range []struct {
		pattern, topic, want string // want: asset device sensor lifecycle; - is no match
	}{
		{"vib/{asset}/{device}/telemetry", "vib/p1/d1/telemetry", "p1 d1  "},
		{"vib/{asset}/{device}/telemetry", "vib/p1/telemetry", "-"},
		{"vib/{asset}/{device}/telemetry", "vib/p1/d1/telemetry/x", "-"},
		{"{sensor}", "a", "  a "},
		{"{sensor}", "", "   "},
		{"{sensor}", "$SYS", "-"},
		{"#", "$SYS/x", "-"},
		{"$SYS/#", "$SYS/x", "   "},
		{"#", "a/b", "   "},
		{"a/#", "a", "   "},
		{"a/#", "ab", "-"},
		{"a/+/{lifecycle}/#", "a/b/c", "   c"},
		{"a/+/{lifecycle}/#", "a/b/c/d/e", "   c"},
		{"a/+", "a/", "   "},
		{"a/+", "a", "-"},
		{"/{asset}", "/x", "x   "},
	} {
		p, err := parsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		got := "-"
		if n, ok := p.match(c.topic); ok {
			got = strings.Join([]string{n[assetPart], n[devicePart], n[sensorPart], n[lifecyclePart]}, " ")
		}
		if got != c.want {
			t.Errorf("%s on %s: got %q, want %q", c.pattern, c.topic, got, c.want)
		}
	}
}
