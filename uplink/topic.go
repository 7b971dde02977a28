package uplink

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tidemark/windowing"
)

// topicVersion is the level below the prefix: the version of the topics' form.
const topicVersion = "v1"

// topic returns {prefix}/v1/{gateway}/{levels…}. Levels are data and are encoded;
// the prefix is configuration and stays as it is.
func (c *Encoder) topic(levels ...string) string {
	b := make([]byte, 0, 96)
	b = append(b, c.Prefix...)
	if c.Prefix != "" {
		b = append(b, '/')
	}
	b = append(b, topicVersion...)
	b = appendLevel(append(b, '/'), c.Gateway)
	for _, l := range levels {
		b = appendLevel(append(b, '/'), l)
	}
	return string(b)
}

// emissionTopic is where an emission goes.
func (c *Encoder) emissionTopic(e *windowing.Emission) string {
	switch e.Kind {
	case windowing.EmitLate, windowing.EmitQuarantine:
		return c.topic(typeName(e.Kind), e.Reading.Tag.Value().Input)
	case windowing.EmitSilent:
		return c.topic(typeEvent, EventSilent)
	case windowing.EmitResumed:
		return c.topic(typeEvent, EventResumed)
	default:
		return c.topic(typeName(e.Kind), e.Asset, e.Sensor, e.Feature.Name)
	}
}

// StatusTopic is the retained topic that says whether the gateway is connected;
// the last will is left there.
func (c *Encoder) StatusTopic() string { return c.topic("status") }

func (c *Encoder) definitionTopic(feature string, version int) string {
	return c.topic("definition", feature, strconv.Itoa(version))
}

// appendLevel appends s as one level of a topic. An empty one is "_". What would
// end the level or be taken for a wildcard is percent-encoded, as is the percent
// sign itself, a leading $, and whatever a broker may refuse in a topic name
// (MQTT 5, 1.5.4: control characters, non-characters, what is no UTF-8): a
// refused topic would break the connection, for ever.
func appendLevel(b []byte, s string) []byte {
	if s == "" {
		return append(b, '_')
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if encoded(r, n, i == 0) {
			for _, c := range []byte(s[i : i+n]) {
				b = append(b, '%', upperHex[c>>4], upperHex[c&15])
			}
		} else {
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return b
}

const upperHex = "0123456789ABCDEF"

func encoded(r rune, n int, first bool) bool {
	switch {
	case r == '/' || r == '+' || r == '#' || r == '%':
		return true
	case r == '$':
		return first
	case r == utf8.RuneError:
		return n == 1 // no UTF-8; a real U+FFFD stays
	}
	return unicode.IsControl(r) || r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF
}

// maxTopic is the longest topic that MQTT can carry, in bytes.
const maxTopic = 65535

// prefixFault says what is wrong with a topic prefix; empty if nothing is.
func prefixFault(prefix string) string {
	switch {
	case strings.ContainsAny(prefix, "+#\x00"):
		return "it must not contain + or #, which are wildcards, or NUL"
	case strings.HasPrefix(prefix, "$"):
		return "it must not begin with $, which is the broker's own"
	case strings.HasPrefix(prefix, "/") || strings.HasSuffix(prefix, "/"):
		return "it must not begin or end with a slash"
	case !utf8.ValidString(prefix):
		return "it is not UTF-8"
	}
	return ""
}
