package uplink_test

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"tidemark/reading"
	"tidemark/uplink"
	"tidemark/windowing"
)

func topicOf(t rapid.TB, c uplink.Encoder, e windowing.Emission) string {
	t.Helper()
	return message(t, c, &e).Topic
}

func TestTopicLevels(t *testing.T) {
	for asset, want := range map[string]string{
		"press-07":     "press-07",
		"":             "_",
		"_":            "_",
		"a/b":          "a%2Fb",
		"a+b#c%d":      "a%2Bb%23c%25d",
		"$SYS":         "%24SYS",
		"a$b":          "a$b",
		"a\x00b":       "a%00b",
		"tab\tand\x7f": "tab%09and%7F",
		"Ölpumpe 3":    "Ölpumpe 3",
		"\u0085":       "%C2%85",
		"\ufffe\ufdd0": "%EF%BF%BE%EF%B7%90",
		"\ufffd":       "\ufffd",
		"\xffx":        "%FFx",
		"😀":            "😀",
	} {
		e := feature()
		e.Asset = asset
		if got, want := topicOf(t, enc, e), "tidemark/v1/line-3/feature/"+want+"/bearing-temp/bearing-temp-5m"; got != want {
			t.Errorf("asset %q: topic %q, want %q", asset, got, want)
		}
	}
}

func TestTopics(t *testing.T) {
	c := enc
	c.Prefix, c.Gateway = "acme/muc", "a/b"
	for want, e := range map[string]windowing.Emission{
		"acme/muc/v1/a%2Fb/feature/press-07/bearing-temp/bearing-temp-5m": feature(),
		"acme/muc/v1/a%2Fb/closed/press-07/bearing-temp/bearing-temp-5m":  closed(),
		"acme/muc/v1/a%2Fb/late/vibration":                                late(),
		"acme/muc/v1/a%2Fb/quarantine/kepware-3":                          quarantined(),
		"acme/muc/v1/a%2Fb/event/silent":                                  silent(),
		"acme/muc/v1/a%2Fb/event/resumed":                                 resumed(),
	} {
		if got := topicOf(t, c, e); got != want {
			t.Errorf("topic %q, want %q", got, want)
		}
	}
	if got, want := c.StatusTopic(), "acme/muc/v1/a%2Fb/status"; got != want {
		t.Errorf("topic %q, want %q", got, want)
	}
	c.Prefix = ""
	if got, want := c.StatusTopic(), "v1/a%2Fb/status"; got != want {
		t.Errorf("topic %q, want %q", got, want)
	}
}

// Whatever names are made of, a topic has its levels, holds nothing that a broker
// may refuse, and names that differ have topics that differ.
func TestTopicLaws(t *testing.T) {
	name := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "/", "+", "#", "%", "$", "\x00", "\xff", "é", "2", "F", "\u0090", "_"}), 0, 6).Draw(t, "parts"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		topic := func(asset string) string {
			e := feature()
			e.Asset = asset
			return topicOf(t, enc, e)
		}
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		got := topic(a)
		if n := strings.Count(got, "/"); n != 6 {
			t.Fatalf("%q has %d slashes", got, n)
		}
		if strings.ContainsAny(got, "+#") || strings.ContainsFunc(got, unicode.IsControl) || strings.ToValidUTF8(got, "") != got {
			t.Fatalf("a broker may refuse %q", got)
		}
		if empty := a == "_" || b == "_"; a != b && !empty && got == topic(b) {
			t.Fatalf("%q and %q share %q", a, b, got)
		}
	})
}

// Names that come from elsewhere get into no topic unencoded.
func TestTopicOfEvent(t *testing.T) {
	var m uplink.Message
	if err := enc.Encode(&m, uplink.Record{Kind: uplink.KindEvent, Data: uplink.NewEvent("a/#", 0, reading.ClockUnknown).Record()}); err != nil {
		t.Fatal(err)
	}
	if want := "tidemark/v1/line-3/event/a%2F%23"; m.Topic != want {
		t.Errorf("topic %q, want %q", m.Topic, want)
	}
}
