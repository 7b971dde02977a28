package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a configuration. Line and Column count
// from 1; 0 is an unknown place.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Reason  string `json:"reason"`
	Nearest string `json:"did_you_mean,omitempty"` // the nearest valid key or value

	feature int // 1 + the index of the feature it lies in; 0: it lies in none
}

// String returns file:line:column: reason (did you mean "nearest"?).
func (f Fault) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Reason)
	if f.Nearest != "" {
		s += fmt.Sprintf(" (did you mean %q?)", f.Nearest)
	}
	return s
}

// Faults are all faults of one configuration in the order of their places.
type Faults []Fault

// Error returns the faults one per line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

// sort orders by place and then reason, and drops repetitions.
func (f Faults) sort() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(f)
}

// Notice is something a person should know that is no fault.
type Notice struct {
	File   string `json:"file"`
	Line   int    `json:"line"` // 0: of the whole file
	Column int    `json:"column"`
	Text   string `json:"text"`
}

// String returns file:line:column: text, without the place where there is none.
func (n Notice) String() string {
	if n.Line == 0 {
		return fmt.Sprintf("%s: %s", n.File, n.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", n.File, n.Line, n.Column, n.Text)
}

// place is where something stands in the file.
type place struct{ line, column int }

// places maps the path of every key that the file gives, such as
// features[0].select.input, to the place of its value.
type places map[string]place

// given reports whether the file has the path.
func (p places) given(path string) bool { _, ok := p[path]; return ok }

// of returns the place of the path, or of the nearest thing around it that the
// file gives.
func (p places) of(path string) place {
	for {
		if at, ok := p[path]; ok || path == "" {
			return at
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// Nearest returns the word among the valid ones that takes the fewest edits, or
// the only one that begins with word, or nothing if none is close enough to have
// been meant.
func Nearest(word string, valid []string) string {
	if len(word) >= 3 {
		begins := slices.DeleteFunc(slices.Clone(valid), func(v string) bool { return !strings.HasPrefix(v, word) })
		if len(begins) == 1 {
			return begins[0]
		}
	}
	best, cost := "", 1+max(1, len([]rune(word))/3)
	for _, v := range valid {
		if len(v) >= len(word)+4*cost || len(word) >= len(v)+4*cost {
			continue // too different in length, whatever the letters (a rune is up to 4 bytes)
		}
		if c := edits(strings.ToLower(word), strings.ToLower(v)); c < cost {
			best, cost = v, c
		}
	}
	return best
}

// edits is the optimal string alignment distance: insertions, deletions,
// replacements and swaps of neighbours each count one.
func edits(from, to string) int {
	a, b := []rune(from), []rune(to)
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
