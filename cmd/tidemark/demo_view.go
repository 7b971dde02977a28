package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// demoIntro tells a newcomer what comes.
var demoIntro = []string{
	"Seven simulated machines publish to a broker, four time servers tell the time and one of them lies; between them works the whole gateway.",
	"Watch windows of 10 s: provisional at first, corrected by what comes late, then closed for good. What cannot be trusted is set aside with its reason.",
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
	demoLate: purple, demoSetAside: red, demoMachine: plain, demoClock: bold,
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
	const laneMin = 5 // its title and a few lines
	rows := m.table(height - len(lines) - 2 - laneMin)
	if len(rows) > 0 {
		lines = append(lines, demoHeader(width))
	}
	for i := range rows {
		again := i > 0 && rows[i].Series == rows[i-1].Series
		lines = append(lines, rows[i].line(width, now, again))
	}
	if len(rows) == 0 {
		for _, text := range append(demoIntro[:len(demoIntro):len(demoIntro)], "The first windows are filling.") {
			for _, part := range wrap(text, width-2) {
				lines = append(lines, []span{{plain, " " + part}})
			}
		}
	}
	lines = append(lines, nil, []span{{bold, " WHAT HAPPENED"}})
	for i := len(m.lane) - 1; i >= 0 && len(lines) < height; i-- {
		lines = append(lines, m.lane[i].laneLine())
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
	state := green
	if s.ClockState != "synchronized" {
		state = yellow
	}
	var liar span
	clock := []span{{bold, " tidemark demo "}, {dim, fmt.Sprintf("%d:%02d  ", int(ran.Minutes()), int(ran.Seconds())%60)}}
	if s.ClockState == "" {
		clock = append(clock, span{dim, "starting"})
	} else {
		agree, lies, _ := strings.Cut(s.clockWords(), "; ")
		clock = append(clock, span{state, agree})
		liar = span{red, lies}
	}
	lines := [][]span{clock}
	if len(liar.text) > 0 {
		lines = fit(lines, width, span{plain, "; "}, liar)
	}
	counts := fmt.Sprintf(" readings %d · accepted %d · duplicates %d · set aside %d · waiting %d", s.Received, s.Accepted, s.Duplicate, s.SetAside, s.Pending)
	results := fmt.Sprintf("results %d · corrections %d · closed %d · late %d", c[demoProvisional], c[demoCorrected], c[demoClosed], c[demoLate])
	return fit(append(lines, []span{{plain, counts}}), width, span{plain, " · "}, span{plain, results})
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

// demoColumns are the table's columns from the left. Where the terminal is too
// narrow those at the right are left out.
var demoColumns = []struct {
	title string
	width int // with the space before it; negative is flush left
	cell  func(*demoRow) string
}{
	{"MACHINE/SENSOR", -21, func(r *demoRow) string { return r.Series }},
	{"STATUS", -12, func(r *demoRow) string { return string(r.Kind) }},
	{"WINDOW UTC", -12, func(r *demoRow) string { return demoSpan(r.Start, r.End) }},
	{"COUNT", 6, func(r *demoRow) string { return strconv.FormatInt(r.Count, 10) }},
	{"REV", 4, func(r *demoRow) string { return strconv.Itoa(r.Revision) }},
	{"MEAN", 8, func(r *demoRow) string { return demoNumber(r.Mean) }},
	{"MIN", 8, func(r *demoRow) string { return demoNumber(r.Min) }},
	{"MAX", 8, func(r *demoRow) string { return demoNumber(r.Max) }},
	{"UNIT", -6, func(r *demoRow) string { return r.Unit }},
}

func demoNumber(f float64) string {
	if math.IsNaN(f) {
		return "–"
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// demoCells lays out a row's columns as far as width reaches.
func demoCells(width int, cell func(i int) span) []span {
	line := []span{}
	for i, c := range demoColumns {
		w := max(c.width, -c.width)
		if width -= w; width < 0 {
			break
		}
		s := cell(i)
		if c.width < 0 {
			s.text = fmt.Sprintf(" %-*s", w-1, s.text)
		} else {
			s.text = fmt.Sprintf(" %*s", w-1, s.text)
		}
		line = append(line, s)
	}
	return line
}

func demoHeader(width int) []span {
	return demoCells(width, func(i int) span { return span{bold, demoColumns[i].title} })
}

// fresh is how long a row that changed stands out.
const fresh = 1500 * time.Millisecond

// line is the row on the screen; again leaves out the name that stands above it.
func (r *demoRow) line(width int, now time.Time, again bool) []span {
	return demoCells(width, func(i int) span {
		s := span{plain, demoColumns[i].cell(r)}
		switch {
		case i == 0 && again:
			s.text = ""
		case i == 1:
			s.style = demoStyles[r.Kind]
		case now.Sub(r.changed) < fresh:
			s.style = bold
		case r.Kind == demoClosed:
			s.style = dim
		}
		return s
	})
}

func (e *demoEvent) laneLine() []span {
	return []span{
		{dim, " " + e.At.UTC().Format("15:04:05") + "  "},
		{demoStyles[e.Kind], fmt.Sprintf("%-9s  ", e.Kind)},
		{plain, fmt.Sprintf("%-19s  ", e.Series)},
		{plain, e.Words},
	}
}

// demoLine tells an event in one plain line, for pipes and files.
func demoLine(e *demoEvent) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  %-11s  %-19s  ", e.At.UTC().Format("15:04:05"), e.Kind, e.Series)
	switch e.Kind {
	case demoProvisional, demoCorrected:
		fmt.Fprintf(&b, "%s  revision %d  count %d  mean %s  min %s  max %s %s",
			demoSpan(e.Start, e.End), e.Revision, e.Count, demoNumber(e.Mean), demoNumber(e.Min), demoNumber(e.Max), e.Unit)
	case demoClosed:
		fmt.Fprintf(&b, "%s  last revision %d", demoSpan(e.Start, e.End), e.Revision)
	default:
		b.WriteString(e.Words)
	}
	return strings.TrimRight(b.String(), " ")
}
