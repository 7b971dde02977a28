package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// demoView shows the demo to somebody. Its methods are called from one goroutine;
// an error of one of them ends the demo, and end comes after it all the same.
type demoView interface {
	begin(m *demoModel, now time.Time) error
	// show tells of a record, an event, or a record with what it tells, after the
	// model has taken it in; the other one is nil.
	show(record []byte, e *demoEvent) error
	tick(m *demoModel, now time.Time) error
	end(m *demoModel, ran time.Duration) error
}

// newDemoView chooses the view for where the output goes.
func newDemoView(d *demo, out, errOut io.Writer) demoView {
	if d.format == "json" {
		return &demoJSON{out: out, errOut: errOut}
	}
	f, ok := out.(*os.File)
	// A log on the same terminal and a screen would overwrite each other.
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" || d.verbose {
		return &demoLines{out: out}
	}
	return &demoTerminal{screen: demoScreen{
		out: out, colour: os.Getenv("NO_COLOR") == "",
		size: func() (int, int) {
			w, h, err := term.GetSize(int(f.Fd()))
			if err != nil || w <= 0 || h <= 0 {
				return 80, 24
			}
			return w, h
		},
	}}
}

// demoJSON prints each record as it went upstream, one a line, and everything
// else beside it.
type demoJSON struct{ out, errOut io.Writer }

func (v *demoJSON) begin(*demoModel, time.Time) error { return printLines(v.errOut, demoIntro) }

func (v *demoJSON) show(record []byte, _ *demoEvent) error {
	if record == nil {
		return nil
	}
	_, err := v.out.Write(append(record[:len(record):len(record)], '\n'))
	return err
}

func (v *demoJSON) tick(*demoModel, time.Time) error { return nil }

func (v *demoJSON) end(m *demoModel, ran time.Duration) error {
	return printLines(v.errOut, m.summary(ran))
}

// demoLines prints a line for each thing that happens, for pipes and files.
type demoLines struct{ out io.Writer }

func (v *demoLines) begin(*demoModel, time.Time) error {
	return printLines(v.out, append(demoIntro, ""))
}

func (v *demoLines) show(_ []byte, e *demoEvent) error {
	if e == nil {
		return nil
	}
	_, err := fmt.Fprintln(v.out, demoLine(e))
	return err
}

func (v *demoLines) tick(*demoModel, time.Time) error { return nil }

func (v *demoLines) end(m *demoModel, ran time.Duration) error {
	return printLines(v.out, append([]string{""}, m.summary(ran)...))
}

// demoTerminal draws a screen that updates in place, and leaves the last table
// behind when it ends.
type demoTerminal struct {
	screen demoScreen
	drawn  time.Time
	news   bool
}

func (v *demoTerminal) begin(m *demoModel, now time.Time) error {
	v.screen.start = now
	if err := v.screen.open(); err != nil {
		return err
	}
	v.news = true
	return v.tick(m, now)
}

func (v *demoTerminal) show([]byte, *demoEvent) error {
	v.news = true
	return nil
}

// tick draws at once if there is news, and else often enough for the head's time
// and a change of the window's size.
func (v *demoTerminal) tick(m *demoModel, now time.Time) error {
	if !v.news && now.Sub(v.drawn) < 300*time.Millisecond {
		return nil
	}
	v.news, v.drawn = false, now
	return v.screen.draw(m, now)
}

func (v *demoTerminal) end(m *demoModel, ran time.Duration) error {
	if err := v.screen.close(); err != nil {
		return err
	}
	width, _ := v.screen.size()
	calm := v.drawn.Add(time.Minute) // nothing stands out any more
	var b []byte
	for _, line := range tableLines(m.table(len(m.cast)*demoDepth), width, calm) {
		b = append(appendLine(b, line, width, v.screen.colour), '\n')
	}
	if _, err := v.screen.out.Write(b); err != nil {
		return err
	}
	var lines []string
	for _, text := range m.summary(ran) {
		lines = append(lines, wrap(text, width)...)
	}
	return printLines(v.screen.out, lines)
}

func printLines(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
