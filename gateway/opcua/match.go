package opcua

import (
	"fmt"
	"slices"
	"strings"

	"tidemark/reading"
)

// pattern is a browse path with places to fill: of its levels, {asset}, {device},
// {sensor} and {lifecycle} take one level and name that part, * takes any one, **
// any number, and within a level * takes any part.
type pattern []string

// parsePattern reads levels separated by slashes.
func parsePattern(text string) pattern { return strings.Split(text, "/") }

// captures are what a pattern can name.
var captures = []string{"{asset}", "{device}", "{sensor}", "{lifecycle}"}

// checkMatch returns what is wrong with the pattern of a rule.
func checkMatch(text string) error {
	p := parsePattern(text)
	if !slices.Contains(p, "{sensor}") {
		return fmt.Errorf("match: %q does not say which level is the {sensor}", text)
	}
	for i, level := range p {
		switch {
		case level == "":
			return fmt.Errorf("match: %q has an empty level", text)
		case strings.ContainsAny(level, "{}") && !slices.Contains(captures, level):
			return fmt.Errorf("match: %q is not known; a level may be {asset}, {device}, {sensor} or {lifecycle}, and is so as a whole", level)
		case slices.Contains(captures, level) && slices.Contains(p[:i], level):
			return fmt.Errorf("match: %s stands in it twice", level)
		}
	}
	return nil
}

// match reports whether path is what p says, and puts what the levels name into
// into, if that is not nil. Of several ways the one with the shortest ** counts.
func (p pattern) match(path []string, into *reading.Series) bool {
	if len(p) == 0 {
		return len(path) == 0
	}
	if p[0] == "**" {
		for skip := 0; skip <= len(path); skip++ {
			if p[1:].match(path[skip:], into) {
				return true
			}
		}
		return false
	}
	if len(path) == 0 || !matchLevel(p[0], path[0]) || !p[1:].match(path[1:], into) {
		return false
	}
	if into != nil {
		name(into, p[0], path[0])
	}
	return true
}

func name(s *reading.Series, part, text string) {
	switch part {
	case "{asset}":
		s.Asset = text
	case "{device}":
		s.Device = text
	case "{sensor}":
		s.Sensor = text
	case "{lifecycle}":
		s.Lifecycle = text
	}
}

// leads reports whether a path that begins with path may be what p says: whether
// it is worth to look below it.
func (p pattern) leads(path []string) bool {
	switch {
	case len(p) == 0:
		return false
	case p[0] == "**" || len(path) == 0:
		return true
	}
	return matchLevel(p[0], path[0]) && p[1:].leads(path[1:])
}

// whole reports whether p takes in everything below path.
func (p pattern) whole(path []string) bool {
	return len(p) > 1 && p[len(p)-1] == "**" && p[:len(p)-1].match(path, nil)
}

func matchLevel(p, level string) bool {
	if slices.Contains(captures, p) {
		return level != ""
	}
	head, tail, wild := strings.Cut(p, "*")
	if !wild {
		return p == level
	}
	if !strings.HasPrefix(level, head) {
		return false
	}
	for rest := level[len(head):]; ; rest = rest[1:] {
		if matchLevel(tail, rest) {
			return true
		}
		if rest == "" {
			return false
		}
	}
}

// splitPath reads a browse path from the root, /Objects/Line3/Temp. An ampersand
// takes the special meaning off the character behind it (as in OPC UA Part 4
// §A.2): /Objects/a&/b has two levels.
func splitPath(text string) ([]string, error) {
	if !strings.HasPrefix(text, "/") {
		return nil, fmt.Errorf("%q is no browse path; those begin with a slash, as in /Objects/Line3", text)
	}
	levels, level := []string{}, []byte{}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '&' && i+1 < len(text):
			i++
			level = append(level, text[i])
		case text[i] == '/':
			levels, level = append(levels, string(level)), level[:0]
		default:
			level = append(level, text[i])
		}
	}
	levels = append(levels, string(level))
	if slices.Contains(levels, "") {
		return nil, fmt.Errorf("the browse path %q has an empty level", text)
	}
	return levels, nil
}

var pathEscapes = strings.NewReplacer("&", "&&", "/", "&/")

// joinPath is the inverse of splitPath.
func joinPath(levels []string) string {
	var b strings.Builder
	for _, l := range levels {
		b.WriteByte('/')
		b.WriteString(pathEscapes.Replace(l))
	}
	return b.String()
}
