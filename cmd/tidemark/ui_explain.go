package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"tidemark/history"
	"tidemark/reading"
)

// Everything that a user sees of `tidemark explain` is printed in this file.

// printExplanation tells the life of each window.
func printExplanation(w io.Writer, x *history.Explanation, all bool) error {
	var b strings.Builder
	for i := range x.Windows {
		if i > 0 {
			fmt.Fprintln(&b)
		}
		explainWindow(&b, x, &x.Windows[i], all)
	}
	explainReach(&b, x)
	_, err := io.WriteString(w, b.String())
	return err
}

func explainWindow(b *strings.Builder, x *history.Explanation, w *history.Window, all bool) {
	name := printable(history.Name(x.Asset, x.Sensor))
	if w.Lifecycle != "" {
		name += " (" + printable(w.Lifecycle) + ")"
	}
	fmt.Fprintf(b, "%s  %s v%d  %s … %s  %s\n", name, w.Feature, w.Version, w.Start, w.End, strings.ToUpper(string(w.State)))
	if w.Partial {
		fmt.Fprintf(b, "  ! it began before what the journal holds (%s): readings, and revisions, may be missing here\n", cmp.Or(x.Journal.OldestAt, "of an unknown time"))
	}
	explainRevisions(b, w)
	explainProgress(b, w)
	explainReadings(b, w, all)
	explainClocks(b, w)
}

// explainRevisions prints a line for each result, and the closing.
func explainRevisions(b *strings.Builder, w *history.Window) {
	if len(w.Revisions) == 0 && w.Closing == nil {
		return
	}
	rows := [][]string{{"REVISION", "KNOWN AT", "CAUSE", "WATERMARK", "WAITED FOR", "VALUES"}}
	for i := range w.Revisions {
		r := &w.Revisions[i]
		number := fmt.Sprint(r.Revision) + unproved(r.Proved)
		if r.Partial {
			number += " partial"
		}
		rows = append(rows, []string{number, wallTime(r.KnownAt), r.Cause, cmp.Or(r.Watermark, "none"), firstOf(r.HeldBy), statisticsText(r.Values)})
		if len(r.Stalled) > 0 {
			rows = append(rows, []string{"", "", "", "", "", "without the stalled " + strings.Join(r.Stalled, ", ")})
		}
	}
	if c := w.Closing; c != nil {
		what := "after revision " + fmt.Sprint(c.Revision)
		if c.Revision == 0 {
			what = "without a result"
		}
		rows = append(rows, []string{"closed" + unproved(c.Proved), wallTime(c.KnownAt), cmp.Or(c.Reason, "watermark"), cmp.Or(c.Watermark, "none"), "", what})
	}
	fmt.Fprintln(b)
	table(b, rows, "llllll")
}

// unproved marks what the journal's digest does not vouch for.
func unproved(proved bool) string {
	if proved {
		return ""
	}
	return " ?"
}

// firstOf is the partition that the watermark waited for.
func firstOf(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return printable(names[0])
}

func statisticsText(s history.Statistics) string {
	words := make([]string, len(s))
	for i := range s {
		if words[i] = s[i].Name + " none"; s[i].Value.Kind() != reading.Missing {
			words[i] = strings.TrimSpace(s[i].Name + " " + string(s[i].Value.AppendJSON(nil)) + " " + s[i].Unit)
		}
	}
	return strings.Join(words, ", ")
}

// explainProgress says what an open window waits for.
func explainProgress(b *strings.Builder, w *history.Window) {
	p := w.Progress
	if p == nil {
		return
	}
	next, what := p.ResultAt, "its first result"
	if len(w.Revisions) > 0 {
		next, what = p.ClosingAt, "its closing"
	}
	fmt.Fprintf(b, "\nwaits for %s: the watermark must reach %s and stands at %s", what, next, cmp.Or(p.Watermark, "nothing yet"))
	if len(p.HeldBy) > 0 {
		fmt.Fprintf(b, ", held back by %s", firstOf(p.HeldBy))
	} else if len(p.Idle) > 0 {
		fmt.Fprintf(b, "; every partition is idle, so nothing moves it")
	}
	fmt.Fprintln(b)
}

// What is listed of readings unless all are asked for.
const (
	explainFirst = 5
	explainLast  = 5
)

// explainReadings prints the readings in the order of their arrival. Of a long row
// that was taken without ado only the ends are shown.
func explainReadings(b *strings.Builder, w *history.Window, all bool) {
	var kinds []string
	for _, v := range []history.Verdict{history.Accepted, history.Duplicate, history.Late, history.Excluded, history.Quarantined, history.Pending, history.Initial} {
		if n := w.Counts[v]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", n, v))
		}
	}
	fmt.Fprintf(b, "\n%s: %s\n", count(len(w.Readings)+w.Omitted, "reading"), cmp.Or(strings.Join(kinds, ", "), "nothing came"))
	if len(w.Readings) == 0 {
		return
	}
	rows := [][]string{{"SOURCE TIME", "INGEST TIME", "UNDER WAY", "VALUE", "IN REVISION", "WHAT BECAME OF IT", "IDENTITY"}}
	for i := 0; i < len(w.Readings); i++ {
		if n := plainRun(w.Readings[i:]); !all && n > explainFirst+explainLast+1 {
			for _, h := range w.Readings[i : i+explainFirst] {
				rows = append(rows, heldRow(&h))
			}
			rows = append(rows, []string{fmt.Sprintf("… %d more", n-explainFirst-explainLast)})
			for _, h := range w.Readings[i+n-explainLast : i+n] {
				rows = append(rows, heldRow(&h))
			}
			i += n - 1
			continue
		}
		rows = append(rows, heldRow(&w.Readings[i]))
	}
	table(b, rows, "llrrrll")
	if w.Omitted > 0 {
		fmt.Fprintf(b, "and %d more, counted above\n", w.Omitted)
	}
}

// plainRun is how many readings from the first on were accepted without ado.
func plainRun(list []history.Held) int {
	for i := range list {
		if h := &list[i]; h.Verdict != history.Accepted || len(h.Flags) > 0 || h.Quality != "good" {
			return i
		}
	}
	return len(list)
}

func heldRow(h *history.Held) []string {
	in := "-"
	if h.Revision > 0 {
		in = fmt.Sprint(h.Revision)
	}
	identity := printable(h.ID)
	if h.ID == "" && h.Seq != nil {
		identity = "seq " + fmt.Sprint(*h.Seq)
	}
	return []string{
		cmp.Or(h.SourceTime, printable(h.SourceTimeSent), "none"), wallTime(h.IngestTime), underWay(h.SourceTime, h.IngestTime),
		valueText(&h.Reading), in, verdictText(&h.Reading), identity,
	}
}

// underWay is how long a reading took from its source.
func underWay(source, ingest string) string {
	s, err := time.Parse(time.RFC3339, source)
	i, err2 := time.Parse(time.RFC3339, ingest)
	if err != nil || err2 != nil {
		return "-"
	}
	return shortMS(i.Sub(s).Milliseconds())
}

// wallTime is an RFC 3339 time to the millisecond.
func wallTime(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return cmp.Or(text, "-")
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// explainClocks says what vouched for the readings' times.
func explainClocks(b *strings.Builder, w *history.Window) {
	if len(w.Clocks)+len(w.Sources) == 0 {
		return
	}
	fmt.Fprintln(b, "\nCLOCKS")
	for _, c := range sameClocks(w.Clocks) {
		line := fmt.Sprintf("gateway: %s by %s", c.State, c.Method)
		if c.Servers > 0 {
			line += fmt.Sprintf(", %s agreeing", count(int(c.Servers), "server"))
		}
		if c.Worst >= 0 {
			line += ", arrivals known to " + milliseconds(int64(c.Worst*1e6))
		}
		fmt.Fprintln(b, line)
	}
	for _, s := range w.Sources {
		fmt.Fprintf(b, "source %s: %s, its clock less the gateway's between %s and %s\n",
			cmp.Or(printable(s.Device), "_"), s.Verdict, signedMS(s.MinMS), signedMS(s.MaxMS))
	}
}

// sameClocks joins stretches of the gateway's clock that differ in nothing that a
// person looks for; their worst error stands.
func sameClocks(list []history.ClockSeen) (joined []history.ClockSeen) {
	for _, c := range list {
		if n := len(joined) - 1; n >= 0 && joined[n].State == c.State && joined[n].Method == c.Method && joined[n].Servers == c.Servers {
			joined[n].Worst = max(joined[n].Worst, c.Worst)
			continue
		}
		joined = append(joined, c)
	}
	return joined
}

func signedMS(ms float64) string {
	if ms < 0 {
		return "-" + milliseconds(int64(-ms*1e6))
	}
	return milliseconds(int64(ms * 1e6))
}

// explainReach says what all of this rests on.
func explainReach(b *strings.Builder, x *history.Explanation) {
	r := &x.Journal
	back := cmp.Or(r.OldestAt, "an unknown time")
	if r.First <= 1 {
		back = "the store's beginning"
	}
	fmt.Fprintf(b, "\nThe journal reaches back to %s (block %d of %d).", back, r.First, r.Last)
	if r.To > 0 {
		fmt.Fprintf(b, " Blocks %d to %d were stepped again, %s.", r.From, r.To, count(r.Readings, "reading"))
	}
	fmt.Fprintln(b)
	for i := range x.Windows {
		if w := &x.Windows[i]; !w.Proved() {
			fmt.Fprintln(b, "? is not proved by the journal's digests: the engine began in the middle, without what came before.")
			return
		}
	}
}
