package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"tidemark/clock"
	"tidemark/history"
)

// progressBar shows on a terminal how far long work is. Work that ends soon has
// none. The nil bar, and one that is on no terminal, shows nothing.
type progressBar struct {
	w     io.Writer
	begun time.Duration // on the monotonic clock
	next  time.Duration // likewise
	shown bool
}

// A bar appears after progressAfter, and moves at most once in progressEvery.
const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

func newProgressBar(w io.Writer) *progressBar {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	now := time.Duration(clock.Monotonic())
	return &progressBar{w: w, begun: now, next: now + progressAfter}
}

// show draws the bar.
func (p *progressBar) show(done, total int64) {
	if p == nil || total <= 0 {
		return
	}
	now := time.Duration(clock.Monotonic())
	if now < p.next {
		return
	}
	p.next, p.shown = now+progressEvery, true
	fmt.Fprint(p.w, "\r\x1b[K"+progressLine(float64(done)/float64(total), now-p.begun))
}

// progressLine is the bar with how long the rest will take.
func progressLine(share float64, took time.Duration) string {
	const width = 30
	share = max(0, min(share, 1))
	full := int(share * width)
	line := fmt.Sprintf("[%s%s] %3.0f %%", strings.Repeat("█", full), strings.Repeat(" ", width-full), share*100)
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

// printReconciled says what was written.
func printReconciled(w io.Writer, r *reconciler) {
	fmt.Fprintf(w, "view %s: %s", r.view.Name, count(r.windows, "window"))
	if r.partial > 0 {
		fmt.Fprintf(w, ", %d of them partial", r.partial)
	}
	fmt.Fprintln(w)
}

// printRecorded says what a trace holds, beside it.
func printRecorded(w io.Writer, r *history.Recorded, s *history.Selection) {
	fmt.Fprintf(w, "recorded %s in %s\n", count(r.Readings, "reading"), count(r.Blocks, "block"))
	if r.Begins {
		fmt.Fprintln(w, "note: it begins in the middle of the journal; the first windows lack what came before, and revisions count from 1")
	}
	if r.Assumed {
		fmt.Fprintln(w, "note: the configuration of its beginning is no longer held; the next one stands in")
	}
	if s.Partial() {
		fmt.Fprintln(w, "note: readings that move the watermark of features over several inputs may be missing, so results may differ from those that went upstream")
	}
}
