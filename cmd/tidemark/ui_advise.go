package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tidemark/configs"
	"tidemark/windowing/disorder"
)

// Everything that a user sees of `tidemark advise` is printed in this file.

// adviseAssumptions are what the shares and the recommendation rest on.
var adviseAssumptions = []string{
	"Each partition has its own watermark, the highest event time so far less out_of_orderness, moved by every reading. A feature over several partitions waits for the slowest active one and is late less often.",
	"No partition goes idle. One that does no longer holds the watermark back, and what it brings on its return may come later than shown here.",
	"Every reading is taken to stand at the end of its window. Longer windows leave more time, so fewer readings are corrected or too late.",
	"Repeated readings count each time; the gateway drops them.",
	"What the trace does not show, such as the backlog of an outage, is not provided for: leave a margin.",
}

// advisePlenty is the number of readings from which on one of them is no more
// than the goal for those that are too late.
const advisePlenty = uint64(1 / disorder.GoalTooLate)

// printAdvice prints the recommendation first, then what it rests on.
func printAdvice(w io.Writer, a *advice) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", printable(a.Trace), readings(a.Readings))
	for i, s := range a.Scopes {
		fmt.Fprintf(&b, "%s%s", [...]string{" of ", ", ", ", "}[i], count(s.Partitions, string(s.Scope)))
	}
	fmt.Fprintln(&b)
	adviseNotes(&b, a)
	if a.Readings == a.OutOfRange {
		fmt.Fprintln(&b, "\nThere is nothing to measure, so nothing is recommended.")
		_, err := io.WriteString(w, b.String())
		return err
	}
	adviseRecommendation(&b, a)
	advisePlot(&b, a)
	adviseCosts(&b, a)
	adviseWorst(&b, a, "DISORDER", func(s *disorder.ScopeReport) *disorder.Distribution { return &s.Disorder })
	adviseWorst(&b, a, "DELAY", func(s *disorder.ScopeReport) *disorder.Distribution { return &s.Delay })
	fmt.Fprintln(&b, "\nASSUMED")
	for _, text := range a.Assumptions {
		bullet(&b, text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func readings(n uint64) string { return count(int(n), "reading") }

// adviseNotes says what was left out, and what casts doubt on the rest.
func adviseNotes(b *strings.Builder, a *advice) {
	if n := a.OutOfRange; n > 0 {
		fmt.Fprintf(b, "  %s without a time to go by (out of range, or kept out by the clock rules), left out\n", readings(n))
	}
	if n := a.WithoutIngest; n > 0 {
		fmt.Fprintf(b, "  %s without ingest_time, and so without a delay\n", readings(n))
	}
	if n := a.StampedAhead; n > 0 {
		worst := int64(0)
		if all := a.Scopes[0].Delay.All; all != nil {
			worst = all.MinMS
		}
		fmt.Fprintf(b, "  %s stamped ahead of arrival, by up to %s: a source's clock is fast\n", readings(n), shortMS(-worst))
	}
	for _, s := range a.Scopes {
		if s.Unmeasured > 0 {
			fmt.Fprintf(b, "  %s of further %ss than the first %d, left out of scope %s\n", readings(s.Unmeasured), s.Scope, s.Partitions, s.Scope)
		}
	}
}

func adviseRecommendation(b *strings.Builder, a *advice) {
	fmt.Fprintf(b, "\nRECOMMENDED for at most %s behind the watermark and %s too late\n", percent(a.GoalBehind), percent(a.GoalTooLate))
	for _, s := range a.Scopes {
		c := s.Recommended
		if c == nil {
			bullet(b, fmt.Sprintf("scope %s: nothing. No values up to %s are enough: disorder is %s at p99.9 and %s at most. A clock that was once far ahead leaves all that follows behind; look at the worst below first.",
				s.Scope, exactMS(disorder.LongestRungMS), shortMS(s.Disorder.All.P999MS), shortMS(s.Disorder.All.MaxMS)))
			continue
		}
		bullet(b, fmt.Sprintf("scope %s: out_of_orderness %s, allowed_lateness %s. Then %s would have been corrected and %s too late.",
			s.Scope, exactMS(c.OutOfOrdernessMS), exactMS(c.AllowedLatenessMS),
			amount(c.CorrectedReadings, c.Corrected), amount(c.TooLateReadings, c.TooLate)))
	}
	if n := a.Readings - a.OutOfRange; n < advisePlenty {
		bullet(b, fmt.Sprintf("These are few readings to go by: one is already %s. Record %d or more to tell shares as low as %s.",
			percent(1/float64(n)), advisePlenty, percent(a.GoalTooLate)))
	}
}

// amount tells a number of readings and their share.
func amount(n uint64, share float64) string {
	if n == 0 {
		return "none"
	}
	return readings(n) + " (" + percent(share) + ")"
}

// advisePlot draws how disorder is distributed in each scope.
func advisePlot(b *strings.Builder, a *advice) {
	const width = 10
	rows := [][]string{{"DISORDER"}}
	for _, s := range a.Scopes {
		rows[0] = append(rows[0], "", string(s.Scope))
		for i, bin := range s.Bins {
			if i+1 == len(rows) {
				rows = append(rows, []string{binLabel(bin)})
			}
			for len(rows[i+1]) < len(rows[0])-2 {
				rows[i+1] = append(rows[i+1], "")
			}
			share := float64(bin.Readings) / float64(s.Measured)
			rows[i+1] = append(rows[i+1], percent(share), strings.Repeat("█", logBar(share, width)))
		}
	}
	fmt.Fprintln(b, "\nHOW FAR READINGS COME BEHIND; two more blocks are ten times as many")
	table(b, rows, "lrlrlrl")
}

func binLabel(bin disorder.Bin) string {
	switch {
	case bin.UpToMS == nil:
		return "longer"
	case *bin.UpToMS == 0:
		return "in order"
	}
	return "≤ " + exactMS(*bin.UpToMS)
}

// logBar is the length of a bar: width for everything, a fifth of it less for each
// power of ten below, and one for whatever there is.
func logBar(share float64, width int) int {
	if share == 0 {
		return 0
	}
	return max(1, int(math.Round(float64(width)*(1+math.Log10(share)/5))))
}

// adviseCosts prints what each budget would have cost.
func adviseCosts(b *strings.Builder, a *advice) {
	rows := [][]string{{""}, {"BUDGET"}}
	for _, s := range a.Scopes {
		rows[0] = append(rows[0], string(s.Scope), "")
		rows[1] = append(rows[1], "corrected", "too late")
	}
	cell := func(share float64) string { return strings.TrimSuffix(percent(share), " %") }
	for i, c := range a.Scopes[0].Budgets {
		row := []string{exactMS(c.OutOfOrdernessMS) + "+" + exactMS(c.AllowedLatenessMS)}
		for _, s := range a.Scopes {
			row = append(row, cell(s.Budgets[i].Corrected), cell(s.Budgets[i].TooLate))
		}
		rows = append(rows, append(row, budgetNames(c.Names)))
	}
	fmt.Fprintln(b, "\nWHAT BUDGETS (out_of_orderness+allowed_lateness) WOULD HAVE COST, in %")
	table(b, rows, "lrrrrrrl")
}

func budgetNames(names []string) string {
	const most = 3
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}

// adviseWorst prints the percentiles of each scope and of its worst partitions.
func adviseWorst(b *strings.Builder, a *advice, title string, of func(*disorder.ScopeReport) *disorder.Distribution) {
	rows := [][]string{{title, "readings", "p50", "p90", "p99", "p99.9", "max"}}
	line := func(scope string, s *disorder.Summary, who string) {
		rows = append(rows, []string{scope, strconv.FormatUint(s.Count, 10),
			shortMS(s.P50MS), shortMS(s.P90MS), shortMS(s.P99MS), shortMS(s.P999MS), shortMS(s.MaxMS), who})
	}
	for i := range a.Scopes {
		s := &a.Scopes[i]
		d := of(s)
		if d.All == nil {
			continue
		}
		line(string(s.Scope), d.All, "all")
		for i := range d.Worst {
			line("", &d.Worst[i].Summary, partitionName(s.Scope, &d.Worst[i].Name))
		}
		if d.NotShown > 0 {
			rows = append(rows, []string{"", "", "", "", "", "", "", fmt.Sprintf("and %d more", d.NotShown)})
		}
	}
	if len(rows) == 1 {
		return
	}
	fmt.Fprintf(b, "\n")
	table(b, rows, "lrrrrrrl")
	fmt.Fprintf(b, "percentiles are less than 1/%.0f too high\n", 1/a.RelativeError)
}

func partitionName(s disorder.Scope, n *disorder.Name) string {
	levels := []string{n.Input}
	switch s {
	case disorder.ScopeDevice:
		levels = append(levels, n.Device)
	case disorder.ScopeSensor:
		levels = append(levels, n.Asset, n.Sensor)
	}
	for i, l := range levels {
		if levels[i] = printable(l); l == "" {
			levels[i] = "_" // as in topics
		}
	}
	return strings.Join(levels, " / ")
}

// printable quotes a name of a trace that could move a terminal's cursor.
func printable(name string) string {
	for _, r := range name {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			return strconv.Quote(name)
		}
	}
	return name
}

// table prints rows in columns, two spaces apart: align has l or r for each.
func table(b *strings.Builder, rows [][]string, align string) {
	widths := make([]int, len(align))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if align[i] == 'r' {
				line.WriteString(pad + cell + "  ")
			} else {
				line.WriteString(cell + pad + "  ")
			}
		}
		fmt.Fprintln(b, strings.TrimRight(line.String(), " "))
	}
}

// bullet prints text as an item of a list; no line begins with a percent sign.
func bullet(b *strings.Builder, text string) {
	mark := "- "
	for _, line := range wrap(strings.ReplaceAll(text, " %", "\x00%"), 78) {
		fmt.Fprintf(b, "%s%s\n", mark, strings.ReplaceAll(line, "\x00", " "))
		mark = "  "
	}
}

// percent prints a share in percent. What is neither none nor all does not look
// like it.
func percent(share float64) string {
	p := share * 100
	switch {
	case p == 0:
		return "0 %"
	case p < 0.001:
		return "<0.001 %"
	case p > 99.9 && p < 100:
		return ">99.9 %"
	case p >= 1:
		return strconv.FormatFloat(math.Round(p*10)/10, 'f', -1, 64) + " %"
	}
	return strconv.FormatFloat(math.Round(p*1000)/1000, 'f', -1, 64) + " %"
}

// exactMS prints a duration as a configuration spells it.
func exactMS(ms int64) string {
	if ms > math.MaxInt64/1_000_000 {
		return strconv.FormatInt(ms/86_400_000, 10) + "d" // 292 years and more
	}
	return configs.Duration(time.Duration(ms) * time.Millisecond).String()
}

// shortMS prints a duration rounded to some three digits.
func shortMS(ms int64) string {
	if ms < 0 {
		return "-" + shortMS(-ms)
	}
	for _, r := range [...]struct{ below, to int64 }{{1e3, 1}, {10e3, 10}, {60e3, 100}, {3600e3, 1e3}, {86_400e3, 60e3}, {8_640_000e3, 3600e3}} {
		if ms < r.below {
			return exactMS((ms + r.to/2) / r.to * r.to)
		}
	}
	return exactMS((ms + 43_200e3) / 86_400e3 * 86_400e3)
}
