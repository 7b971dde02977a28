package configs

import (
	"slices"
	"strings"
	_ "time/tzdata" // small devices have no zones of their own
)

// Pattern is a name in which * stands for any run of characters and ? for one
// byte. The empty Pattern holds for every name.
type Pattern string

// Match reports whether name fits.
func (p Pattern) Match(name string) bool { return p == "" || glob(string(p), name) }

// Patterns hold where one of them does; none hold for every name. In the file one
// pattern or a list.
type Patterns []Pattern

// Match reports whether name fits one of the patterns, or there is none.
func (p Patterns) Match(name string) bool {
	return len(p) == 0 || slices.ContainsFunc(p, func(x Pattern) bool { return x.Match(name) })
}

// glob walks both strings once and goes back to the last star on a mismatch: no
// pattern takes more than len(pattern)·len(name) steps.
func glob(pattern, name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
