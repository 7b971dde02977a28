package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// demoIntro tells a newcomer what comes.
var demoIntro = []string{
	"Seven simulated machines publish to a broker and an eighth speaks OPC UA, four time servers tell the time and one of them lies; between them works the whole gateway.",
	"Watch windows of 10 s: provisional at first, corrected by what comes late, then closed for good. What cannot be trusted is quarantined with its reason.",
}

// style is an ANSI rendition.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	purple style = "35"
	cyan   style = "36"
)

var demoStyles = map[demoKind]style{
	demoProvisional: yellow, demoCorrected: cyan, demoClosed: green,
	demoLate: purple, demoQuarantined: red, demoMachine: plain, demoClock: bold,
}

// span is text in one style; a line of the screen is a list of them.
type span struct {
	style style
	text  string
}

// appendLine appends a line cut to width columns; escapes only with colour.
func appendLine(b []byte, line []span, width int, colour bool) []byte {
	for _, s := range line {
		text := s.text
		if n := utf8.RuneCountInString(text); n > width {
			text = string([]rune(text)[:max(width-1, 0)])
			if width > 0 {
				text += "…"
			}
		}
		width -= utf8.RuneCountInString(text)
		if !colour || s.style == plain || text == "" {
			b = append(b, text...)
			continue
		}
		b = append(b, "\x1b["+string(s.style)+"m"+text+"\x1b[0m"...)
	}
	return b
}

// demoScreen draws the model over and over in one place of a terminal.
type demoScreen struct {
	out    io.Writer
	colour bool
	size   func() (width, height int)
	start  time.Time
}

// open takes a screen of its own, so that the user's is as it was afterwards.
func (s *demoScreen) open() error {
	_, err := io.WriteString(s.out, "\x1b[?1049h\x1b[?25l\x1b[2J")
	return err
}

// close gives the user's screen back.
func (s *demoScreen) close() error {
	_, err := io.WriteString(s.out, "\x1b[?25h\x1b[?1049l")
	return err
}

// draw paints the whole screen in one write, so that it does not flicker.
func (s *demoScreen) draw(m *demoModel, now time.Time) error {
	width, height := s.size()
	b := []byte("\x1b[H")
	for i, line := range m.frame(width, height, now, s.start) {
		if i > 0 {
			b = append(b, "\r\n"...)
		}
		b = append(appendLine(b, line, width, s.colour), "\x1b[K"...)
	}
	_, err := s.out.Write(append(b, "\x1b[J"...))
	return err
}

// frame returns the lines of a screen, never more than height: the head, the
// table, and below it what happened lately.
func (m *demoModel) frame(width, height int, now, start time.Time) [][]span {
	lines := append(m.head(width, now.Sub(start)), nil)
	if len(m.rows) == 0 {
		for _, text := range append(demoIntro[:len(demoIntro):len(demoIntro)], "The first windows are filling.") {
			for _, part := range wrap(text, width-2) {
				lines = append(lines, []span{{plain, " " + part}})
			}
		}
		lines = append(lines, nil)
	} else {
		const besides = 8 // the header, the mark's line, the lane's title and a few of its lines
		lines = append(lines, tableLines(m.table(height-len(lines)-besides), width, now)...)
	}
	lines = append(lines, []span{{bold, " WHAT HAPPENED"}})
	for i := len(m.lane) - 1; i >= 0 && len(lines) < height; i-- {
		lines = append(lines, m.lane[i].laneLines(width)...)
	}
	return lines[:min(len(lines), max(height, 1))]
}

// wrap breaks text between words into lines of at most width columns; a longer
// word stands alone.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

func (m *demoModel) head(width int, ran time.Duration) [][]span {
	s, c := &m.status, m.counts
	first := []span{{bold, " tidemark demo "}, {dim, fmt.Sprintf("%d:%02d  ", int(ran.Minutes()), int(ran.Seconds())%60)}}
	if s.ClockState == "" {
		return [][]span{append(first, span{dim, "starting"})}
	}
	state := green
	if s.ClockState != "synchronized" {
		state = yellow
	}
	lines := [][]span{append(first, span{state, s.trust()})}
	if s.BoundNS >= 0 {
		lines = fit(lines, width, span{plain, ", "}, span{plain, fmt.Sprintf("%d of %d time servers agree", s.Agreeing, s.Servers)})
	}
	for _, liar := range s.Liars {
		lines = fit(lines, width, span{plain, "; "}, span{red, "lies: " + liar.String()})
	}
	lines = append(lines, []span{{plain, " " + s.sums()}})
	hold := span{green, "sums hold ✓"}
	if !s.Conserved {
		hold = span{red, "SUMS DO NOT HOLD"}
	}
	lines = fit(lines, width, span{plain, "  "}, hold)
	results := fmt.Sprintf("provisional %d · corrected %d · closed %d · late %d", c[demoProvisional], c[demoCorrected], c[demoClosed], c[demoLate])
	lines = fit(lines, width, span{plain, " · "}, span{plain, results})
	if s.Page != "" {
		lines = fit(lines, width, span{plain, " · "}, span{bold, s.Page})
	}
	return lines
}

// fit puts a span behind the last line, after a separator, or where there is no
// room on a line of its own.
func fit(lines [][]span, width int, sep, s span) [][]span {
	last := &lines[len(lines)-1]
	used := utf8.RuneCountInString(sep.text + s.text)
	for _, l := range *last {
		used += utf8.RuneCountInString(l.text)
	}
	if used > width {
		return append(lines, []span{{plain, " "}, s})
	}
	*last = append(*last, sep, s)
	return lines
}

// laneLines tell an event, on as many lines as its words need.
func (e *demoEvent) laneLines(width int) (lines [][]span) {
	who := e.asset()
	if e.Times > 1 {
		who += fmt.Sprintf(" ×%d", e.Times)
	}
	head := []span{
		{dim, " " + e.At.UTC().Format("15:04:05") + " "},
		{demoStyles[e.Kind], fmt.Sprintf("%-11s ", e.Kind)},
		{plain, fmt.Sprintf("%-11s ", who)},
	}
	indent := 34
	if width < 60 { // the words stand below
		lines, indent = [][]span{head}, 2
	}
	for _, part := range wrap(e.told(), width-indent) {
		lines = append(lines, []span{{plain, strings.Repeat(" ", indent)}, {plain, part}})
	}
	if indent > 2 {
		lines[0] = append(head, lines[0][1])
	}
	return lines
}

// demoLine tells an event in one plain line, for pipes and files.
func demoLine(e *demoEvent) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  %-11s  %-19s  ", e.At.UTC().Format("15:04:05"), e.Kind, e.Series)
	switch e.Kind {
	case demoProvisional, demoCorrected:
		fmt.Fprintf(&b, "%s  revision %d  count %s  mean %s  min %s  max %s %s",
			demoSpan(e.Start, e.End), e.Revision, e.count(), e.mean(), demoNumber(e.Min), demoNumber(e.Max), e.Unit)
		if e.Partial {
			b.WriteString("  partial")
		}
	case demoClosed:
		fmt.Fprintf(&b, "%s  last revision %d", demoSpan(e.Start, e.End), e.Revision)
	default:
		b.WriteString(e.Words)
	}
	return strings.TrimRight(b.String(), " ")
}
