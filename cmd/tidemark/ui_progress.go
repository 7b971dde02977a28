package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tidemark/clock"
)

// progressBar shows on a terminal how far a step of long work is. Work that ends soon
// shows none. The nil bar shows nothing.
type progressBar struct {
	w     io.Writer
	step  string
	begun time.Duration // of the step, on the monotonic clock
	next  time.Duration // likewise: when it may be drawn again
	shown bool
}

// A bar appears after progressAfter, and moves at most once in progressEvery.
const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// newProgressBar is the bar of a command, nil where nobody would see it.
func newProgressBar(cmd *cobra.Command) *progressBar {
	if !isTerminal(cmd.ErrOrStderr()) {
		return nil
	}
	return &progressBar{w: cmd.ErrOrStderr(), next: monotonic() + progressAfter}
}

// newProgressBarBeside is the bar of a command that writes its lines to file, or to
// standard output where that is empty: none among lines on a terminal.
func newProgressBarBeside(cmd *cobra.Command, file string) *progressBar {
	if file == "" && isTerminal(cmd.OutOrStdout()) {
		return nil
	}
	return newProgressBar(cmd)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func monotonic() time.Duration { return time.Duration(clock.Monotonic()) }

// show draws how much of the step is done.
func (p *progressBar) show(step string, done, total int64) {
	if p == nil || total <= 0 {
		return
	}
	now := monotonic()
	if step != p.step {
		p.step, p.begun = step, now
	}
	if now < p.next {
		return
	}
	p.next, p.shown = now+progressEvery, true
	fmt.Fprint(p.w, "\r\x1b[K"+progressLine(step, float64(done)/float64(total), now-p.begun))
}

// until is show for work that ends with ctx's error once that is done.
func (p *progressBar) until(ctx context.Context) func(step string, done, total int64) error {
	return func(step string, done, total int64) error {
		p.show(step, done, total)
		return ctx.Err()
	}
}

// progressLine is the bar with how long the rest of the step will take.
func progressLine(step string, share float64, took time.Duration) string {
	const width = 30
	share = max(0, min(share, 1))
	full := int(share * width)
	line := fmt.Sprintf("%s [%s%s] %3.0f %%", step, strings.Repeat("█", full), strings.Repeat(" ", width-full), share*100)
	if share > 0 && share < 1 {
		left := time.Duration(float64(took) * (1 - share) / share)
		line += ", about " + left.Round(time.Second).String() + " to go"
	}
	return line
}

// end clears the bar.
func (p *progressBar) end() {
	if p != nil && p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// byteMeter shows a step by the bytes that pass: what is written to it counts.
type byteMeter struct {
	progress    func(step string, done, total int64) error
	step        string
	done, total int64
}

func (m *byteMeter) Write(b []byte) (int, error) {
	m.done += int64(len(b))
	return len(b), m.progress(m.step, m.done, m.total)
}
