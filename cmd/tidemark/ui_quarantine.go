package main

import (
	"fmt"
	"io"
	"strings"

	"tidemark/gateway"
)

// Everything that a user sees of `tidemark quarantine` is printed in this file.

func printQuarantine(w io.Writer, q *gateway.Quarantine) error {
	var b strings.Builder
	if len(q.Groups) == 0 {
		fmt.Fprintln(&b, "nothing is in quarantine")
	}
	for i := range q.Groups {
		g := &q.Groups[i]
		who := printable(g.Input)
		if g.Device != "" {
			who += " " + printable(g.Device)
		}
		fmt.Fprintf(&b, "%s of %s, %s\n", count(g.Count, "reading"), who, g.Reason)
		fmt.Fprintf(&b, "    %s\n", arrivals(g.Oldest, g.Newest))
		fmt.Fprintf(&b, "    %s\n", g.NextStep)
	}
	if q.Gone > 0 {
		fmt.Fprintf(&b, "%s more went there before what the journal still holds; they can be seen upstream only\n", count(q.Gone, "reading"))
	}
	if q.Releasing {
		fmt.Fprintln(&b, "a release is at work")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func arrivals(oldest, newest string) string {
	if oldest == newest {
		return "arrived at " + moment(oldest)
	}
	return "arrived from " + moment(oldest) + " to " + moment(newest)
}

func printReleased(w io.Writer, r *gateway.Release) error {
	_, err := fmt.Fprintf(w, "%s judged again: accepted %d%s\n", count(r.Accepted+r.Duplicate+r.Quarantined, "reading"), r.Accepted,
		terms(", ", tally{"duplicate", r.Duplicate}, tally{"quarantined again", r.Quarantined}))
	return err
}
