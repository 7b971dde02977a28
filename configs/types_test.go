package configs_test

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/configs"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "0d": 0, "20ms": 20 * time.Millisecond, "1.5h": 90 * time.Minute, "7d": 7 * 24 * time.Hour,
		"1d12h": 36 * time.Hour, "-2d": -48 * time.Hour, "-1d1s": -24*time.Hour - time.Second, "106751d": 106751 * 24 * time.Hour,
	} {
		if got, err := configs.ParseDuration(text); err != nil || got.Std() != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", "d", "5", "5 s", "d1", "1d-1h", "1d+1h", "--1d", "1h1d", "106752d", "106751d24h", "∞", "1dd", "0x10s"} {
		if got, err := configs.ParseDuration(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestDurationPrintsWhatItReads(t *testing.T) {
	for d, want := range map[configs.Duration]string{
		0: "0s", configs.Day: "1d", configs.Day + configs.Duration(time.Minute): "1d1m", configs.Duration(90 * time.Minute): "1h30m",
		configs.Duration(time.Hour): "1h", configs.Duration(64 * time.Second): "1m4s", -configs.Day: "-1d", configs.Duration(20 * time.Millisecond): "20ms",
		configs.Duration(time.Hour + time.Second): "1h0m1s",
	} {
		if got := d.String(); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := configs.Duration(rapid.Int64Min(math.MinInt64+1).Draw(t, "ns"))
		if back, err := configs.ParseDuration(d.String()); err != nil || back != d {
			t.Fatalf("%s reads as %v, %v", d, back, err)
		}
	})
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]configs.Bytes{
		"0": 0, "1B": 1, "64KB": 64000, "64KiB": 65536, "2GiB": 2 << 30, "1.5MB": 1_500_000, "40 GB": 40e9, "1TiB": 1 << 40,
	} {
		if got, err := configs.ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "B", "5", "5K", "5kb", "-1KB", "1e300GB", "NaNGB", "0x10B", "9223372036854775808B"} {
		if got, err := configs.ParseBytes(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := configs.Bytes(rapid.Int64Range(0, 1<<53).Draw(t, "bytes"))
		if back, err := configs.ParseBytes(b.String()); err != nil || back != b {
			t.Fatalf("%s reads as %d, %v; want %d", b, back, err, b)
		}
	})
}

func TestTime(t *testing.T) {
	for text, want := range map[string]string{
		"2026-05-03T10:03:00Z": "2026-05-03T10:03:00Z", "2026-05-03T12:03:00.25+02:00": "2026-05-03T10:03:00.25Z",
		"1767225600123": "2026-01-01T00:00:00.123Z", "-1": "1969-12-31T23:59:59.999Z", "0": "1970-01-01T00:00:00Z",
	} {
		if got, err := configs.ParseTime(text); err != nil || got.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "2026-05-03", "2026-05-03T10:03:00", "1.5", "0001-01-01T00:00:00Z", "9223372036855"} {
		if got, err := configs.ParseTime(text); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}

// Patterns against regular expressions.
func TestPatterns(t *testing.T) {
	if !(configs.Patterns{}).Match("anything") {
		t.Error("no pattern must hold for everything")
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.RuneFrom([]rune("ab*?")), 0, 8, -1).Draw(t, "pattern")
		name := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 12, -1).Draw(t, "name")
		re := regexp.MustCompile("^" + strings.NewReplacer("*", ".*", "?", ".").Replace(pattern) + "$")
		if pattern == "" {
			return // holds for every name
		}
		if got, want := (configs.Patterns{"zzz", configs.Pattern(pattern)}).Match(name), re.MatchString(name); got != want {
			t.Fatalf("%q on %q: %v, want %v", pattern, name, got, want)
		}
	})
}

// Times, texts and zones that look like something else in YAML stay what they
// are.
func TestScalarsKeepTheirText(t *testing.T) {
	c := mustParse(t, `
gateway: {id: 007}
inputs:
  - name: 1.10
    mqtt:
      url: mqtt://h
      subscribe:
        - {topic: "x/{sensor}", lifecycle: 0x1F, asset: 2026-05-03, device: no, quality: {path: q, map: {1: good, true: bad, 1.0: uncertain}}}
    timestamps: {zone: Europe/Berlin}
`)
	s := c.Inputs[0].MQTT.Subscribe[0]
	for _, x := range []struct{ got, want string }{
		{c.Gateway.ID, "007"}, {c.Inputs[0].Name, "1.10"}, {s.Lifecycle.Text, "0x1F"}, {s.Asset.Text, "2026-05-03"}, {s.Device.Text, "no"},
		{c.Inputs[0].Timestamps.Zone.String(), "Europe/Berlin"},
	} {
		if x.got != x.want {
			t.Errorf("%q, want %q", x.got, x.want)
		}
	}
	for _, key := range []string{"1", "true", "1.0"} {
		if _, ok := s.Quality.Map[key]; !ok {
			t.Errorf("quality map lost %q: %v", key, s.Quality.Map)
		}
	}
}
