package mqtt

import (
	"fmt"
	"strings"
)

// part is what a level of a topic names.
type part uint8

const (
	noPart part = iota
	assetPart
	devicePart
	sensorPart
	lifecyclePart
)

var partNames = map[string]part{
	"{asset}": assetPart, "{device}": devicePart, "{sensor}": sensorPart, "{lifecycle}": lifecyclePart,
}

// pattern is a topic filter with captures.
type pattern struct {
	levels []level
	deep   bool // ends in #: any number of further levels, none included
}

// level is one level of a pattern: literal text, or any.
type level struct {
	text string
	any  bool
	part part
}

// names are what a topic's levels named, by part.
type names [lifecyclePart + 1]string

func parsePattern(topic string) (pattern, error) {
	var p pattern
	if topic == "" {
		return p, fmt.Errorf("topic: empty")
	}
	if strings.HasPrefix(topic, "$share/") {
		return p, fmt.Errorf("topic %q: name the group of a shared subscription with share, not in the topic", topic)
	}
	seen := map[part]bool{}
	for i, text := range strings.Split(topic, "/") {
		if p.deep {
			return p, fmt.Errorf("topic %q: # must be the last level", topic)
		}
		switch named := partNames[text]; {
		case named != noPart && seen[named]:
			return p, fmt.Errorf("topic %q: %s stands there twice", topic, text)
		case named != noPart:
			seen[named] = true
			p.levels = append(p.levels, level{any: true, part: named})
		case text == "+":
			p.levels = append(p.levels, level{any: true})
		case text == "#":
			p.deep = true
		case strings.ContainsAny(text, "+#{}\x00"):
			return p, fmt.Errorf("topic %q: level %d, %q, is neither text nor one of + # {asset} {device} {sensor} {lifecycle}", topic, i+1, text)
		default:
			p.levels = append(p.levels, level{text: text})
		}
	}
	return p, nil
}

// names reports whether some level names part.
func (p pattern) names(part part) bool {
	for _, l := range p.levels {
		if l.part == part {
			return true
		}
	}
	return false
}

// filter is the pattern as MQTT spells it, below the share group if there is one.
func (p pattern) filter(share string) string {
	var b strings.Builder
	if share != "" {
		b.WriteString("$share/" + share + "/")
	}
	for i, l := range p.levels {
		if i > 0 {
			b.WriteByte('/')
		}
		if l.any {
			l.text = "+"
		}
		b.WriteString(l.text)
	}
	if p.deep {
		if len(p.levels) > 0 {
			b.WriteByte('/')
		}
		b.WriteByte('#')
	}
	return b.String()
}

// match reports whether topic matches, and what its levels name. A wildcard in
// the first place does not match a topic that begins with $ (MQTT 5 §4.7.2).
func (p pattern) match(topic string) (n names, ok bool) {
	if strings.HasPrefix(topic, "$") && (len(p.levels) == 0 || p.levels[0].any) {
		return n, false
	}
	rest, more := topic, true
	for _, l := range p.levels {
		if !more {
			return n, false
		}
		var text string
		text, rest, more = strings.Cut(rest, "/")
		if !l.any && l.text != text {
			return n, false
		}
		if l.part != noPart {
			n[l.part] = text
		}
	}
	return n, p.deep || !more
}
