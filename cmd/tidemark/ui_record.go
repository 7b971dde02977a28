package main

import (
	"fmt"
	"io"

	"tidemark/history"
)

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
