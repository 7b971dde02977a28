package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// offsetText is an offset with its sign.
func offsetText(ns int64) string {
	if ns < 0 {
		return "-" + spanText(-ns)
	}
	return "+" + spanText(ns)
}

// spanText is a length of time with as many digits as say something of a clock.
func spanText(ns int64) string {
	if ns < 1e6 {
		return strconv.FormatInt((ns+999)/1000, 10) + " µs"
	}
	return milliseconds(ns)
}

// bytesText is a number of bytes as people read it.
func bytesText(n int64) string {
	f := float64(n)
	switch {
	case n < 0:
		return "an unknown number of bytes"
	case n >= 10<<30:
		return fmt.Sprintf("%.0f GiB", f/(1<<30))
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", f/(1<<30))
	case n >= 10<<20:
		return fmt.Sprintf("%.0f MiB", f/(1<<20))
	}
	return fmt.Sprintf("%.1f MiB", f/(1<<20))
}

// tally is a count with its name.
type tally struct {
	name string
	n    uint64
}

// terms lists those that are not 0, each after sep.
func terms(sep string, list ...tally) string {
	var b strings.Builder
	for _, t := range list {
		if t.n > 0 {
			fmt.Fprintf(&b, "%s%s %d", sep, t.name, t.n)
		}
	}
	return b.String()
}

// reasons lists counts by reason, the most frequent first; nothing if there are
// none.
func reasons(what string, counts map[string]uint64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if len(names) == 0 {
		return ""
	}
	for i, name := range names {
		names[i] = name + " " + strconv.FormatUint(counts[name], 10)
	}
	return what + " " + strings.Join(names, ", ")
}

// milliseconds is an error bound as people read it.
func milliseconds(ns int64) string {
	switch {
	case ns < 0:
		return "an unknown error"
	case ns >= 1e9:
		return strconv.FormatFloat(float64(ns)/1e9, 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(float64(ns)/1e6, 'f', 1, 64) + " ms"
}

// moment is an RFC 3339 time to the second.
func moment(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.UTC().Format(time.RFC3339)
}

// wrapTo is wrap into at most so many lines; what is beyond them is cut off.
func wrapTo(text string, width, most int) []string {
	lines := wrap(text, width)
	if len(lines) > most {
		lines[most-1] = clip(strings.Join(lines[most-1:], " "), width)
		lines = lines[:most]
	}
	return lines
}

// clip cuts a line to so many columns and shows that it did.
func clip(line string, width int) string {
	if r := []rune(line); width > 1 && len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return line
}
