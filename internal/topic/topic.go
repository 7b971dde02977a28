// Package topic compares MQTT topic filters (MQTT 5, 4.7). A level of a filter may also
// be a name in braces, such as {asset}, which matches like +.
package topic

import "strings"

// Covers reports whether every topic that filter b matches is one that a matches.
func Covers(a, b string) bool {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	if hidden(as[0], bs[0]) {
		return false
	}
	if len(as) == 2 && wild(as[0]) && as[1] == "#" {
		as = as[1:] // no topic has less than one level
	}
	for i, level := range as {
		switch {
		case level == "#":
			return true // of b's levels as many as stand before it are covered
		case i >= len(bs) || bs[i] == "#" || !wild(level) && level != bs[i]:
			return false
		}
	}
	return len(as) == len(bs)
}

// Meet reports whether there is a topic that both filters match.
func Meet(a, b string) bool {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	if hidden(as[0], bs[0]) || hidden(bs[0], as[0]) {
		return false
	}
	for i := 0; ; i++ {
		switch {
		case i < len(as) && as[i] == "#" || i < len(bs) && bs[i] == "#":
			return true
		case i >= len(as) || i >= len(bs):
			return len(as) == len(bs)
		case !wild(as[i]) && !wild(bs[i]) && as[i] != bs[i]:
			return false
		}
	}
}

// wild reports whether a level matches any one level.
func wild(level string) bool { return level == "+" || strings.HasPrefix(level, "{") }

// hidden reports whether a topic is one that the first level of a filter does not
// match because it begins with $.
func hidden(first, topic string) bool {
	return strings.HasPrefix(topic, "$") && (first == "#" || wild(first))
}
