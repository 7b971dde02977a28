package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tidemark/gateway"
)

// The smallest terminal that the status has to fit, less the line that a shell needs.
const (
	screenWidth  = 80
	screenHeight = 23
)

// faultLines is how many lines of the small screen say what is wrong, faultLinesEach
// how many one fault has.
const (
	faultLines     = 8
	faultLinesEach = 4
)

// featuresShown is how many features there are else: those that are disabled, then
// those that are furthest behind.
const featuresShown = 8

// statusScreen writes the gateway's status for people.
type statusScreen struct {
	strings.Builder
	st    *gateway.Status
	at    time.Time // of the status; zero if it cannot be read
	brief int       // what fits a small terminal, with so many of each part; 0: everything
}

// printStatus prints the gateway's status, the verdict first: everything if that is
// asked for or fits the smallest terminal, or else the worst of everything.
func printStatus(w io.Writer, st *gateway.Status, all bool) error {
	text := statusText(st, 0)
	for brief := 3; brief > 0 && !all && !fits(text); brief-- {
		text = statusText(st, brief)
	}
	_, err := io.WriteString(w, text)
	return err
}

func fits(text string) bool {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return len(lines) <= screenHeight && !slices.ContainsFunc(lines, func(l string) bool { return len([]rune(l)) > screenWidth })
}

func statusText(st *gateway.Status, brief int) string {
	s := statusScreen{st: st, brief: brief}
	s.at, _ = time.Parse(time.RFC3339, st.At)
	s.linef("%s  %s since %s, now %s", st.Gateway, strings.ToUpper(st.Verdict), s.clockTime(st.Since), moment(st.At))
	s.faults()
	s.linef("clock     %s", clockLine(&st.Clock)+s.wrongSources(&st.Clock))
	s.clock(&st.Clock)
	parts(&s, "input", byTrouble(st.Inputs, func(in *gateway.InputStatus) bool { return in.Reader == nil || in.Reader.State != "connected" }), s.input)
	s.received()
	parts(&s, "feature", byLag(st.Features), s.feature)
	parts(&s, "uplink", byTrouble(st.Uplinks, func(u *gateway.UplinkStatus) bool { return u.State != "online" }), s.uplink)
	s.store()
	if st.Conserved {
		s.more("the sums hold: every reading is accounted for")
	} else {
		s.linef("sums      DO NOT HOLD: a fault of the gateway loses or doubles readings; report it")
	}
	if s.brief > 0 {
		s.linef("This is the worst of it; tidemark status --all shows everything.")
	}
	return s.String()
}

// faults tells what speaks against the data, the worst first.
func (s *statusScreen) faults() {
	left := faultLines
	for i, f := range s.st.Because {
		text := fmt.Sprintf("! %s (since %s): %s", f.Name, s.clockTime(f.Since), f.Detail)
		lines := []string{text}
		if s.brief > 0 {
			lines = wrapTo(strings.ReplaceAll(text, "\n", "; "), screenWidth-2, faultLinesEach)
		}
		if rest := len(s.st.Because) - i; s.brief > 0 && left < len(lines) {
			s.linef("! and %d more", rest)
			return
		}
		left -= len(lines)
		s.linef("%s", strings.Join(lines, "\n  "))
	}
	if s.brief == 0 && len(s.st.Because) > 0 {
		s.linef("")
	}
}

// parts shows a list of inputs, features or uplinks, the worst first.
func parts[T any](s *statusScreen, what string, worst []T, show func(*T)) {
	shown := len(worst)
	switch {
	case s.brief > 0:
		shown = min(shown, s.brief)
	case what == "feature":
		shown = min(shown, featuresShown)
	}
	for i := range worst[:shown] {
		show(&worst[i])
	}
	switch rest := len(worst) - shown; {
	case rest > 0 && s.brief > 0:
		s.more(fmt.Sprintf("and %s, no worse", count(rest, "more "+what)))
	case rest > 0:
		s.more(fmt.Sprintf("and %s, no further behind; --json lists them", count(rest, "more "+what)))
	}
}

// byTrouble puts those that are in trouble first.
func byTrouble[T any](list []T, trouble func(*T) bool) []T {
	worst := slices.Clone(list)
	rank := func(x *T) int {
		if trouble(x) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(worst, func(a, b T) int { return rank(&a) - rank(&b) })
	return worst
}

func byLag(list []gateway.FeatureStatus) []gateway.FeatureStatus {
	worst := slices.Clone(list)
	slices.SortStableFunc(worst, func(a, b gateway.FeatureStatus) int {
		return cmp.Or(-cmp.Compare(len(a.Disabled), len(b.Disabled)), cmp.Compare(a.Watermark, b.Watermark))
	})
	return worst
}

// linef writes a line, on the small screen as far as there is room for it.
func (s *statusScreen) linef(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if s.brief > 0 && !strings.Contains(line, "\n") {
		line = clip(line, screenWidth)
	}
	s.WriteString(line + "\n")
}

// more writes a line that goes on with the one above.
func (s *statusScreen) more(text string) {
	if text != "" {
		s.linef("          %s", text)
	}
}

// detail writes one that the small screen has no room for.
func (s *statusScreen) detail(text string) {
	if s.brief == 0 {
		s.more(text)
	}
}

// told reports whether the verdict says it already.
func (s *statusScreen) told(name, problem string) bool {
	return slices.ContainsFunc(s.st.Because, func(f gateway.Fault) bool {
		return f.Name == name && strings.Contains(f.Detail, problem)
	})
}

// clockTime is a moment, without its date where that is the status's.
func (s *statusScreen) clockTime(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.UTC().Format(time.DateOnly) != s.at.UTC().Format(time.DateOnly) {
		return moment(text)
	}
	return t.UTC().Format("15:04:05Z")
}

// ago says how long before the status it was that something happened, at an RFC
// 3339 time that is empty before the first time.
func (s *statusScreen) ago(what, text string) string {
	if text == "" {
		return "no " + what + " yet"
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || s.at.IsZero() {
		return "last " + what + " at " + text
	}
	switch d := max(0, s.at.Sub(t)); {
	case d < 10*time.Second:
		return fmt.Sprintf("last %s %.1f s ago", what, d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("last %s %.0f s ago", what, d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("last %s %.0f min ago", what, d.Minutes())
	}
	return "last " + what + " at " + moment(text)
}
