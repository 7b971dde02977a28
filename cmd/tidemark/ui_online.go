package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidemark/clock"
	"tidemark/gateway"
)

// Everything that a user sees of `tidemark check --online` is printed in this file.

// printProbed says what was found by connecting.
func printProbed(b *strings.Builder, p *gateway.Probed) {
	fmt.Fprintf(b, "\nclock     %s\n", clockLine(&p.Clock))
	for i := range p.Clock.Servers {
		fmt.Fprintf(b, "          %s\n", serverLine(&p.Clock.Servers[i]))
	}
	if p.Clock.Advice != "" {
		fmt.Fprintf(b, "          ! %s\n", p.Clock.Advice)
	}
	for i := range p.Inputs {
		printProbedInput(b, &p.Inputs[i], p.Clock.Sources)
	}
	for _, u := range p.Uplinks {
		fmt.Fprintf(b, "uplink    %-16s %s\n", u.Name, cmp.Or(u.Problem, "the broker would have us"))
	}
}

func printProbedInput(b *strings.Builder, in *gateway.ProbedInput, sources []clock.SourceStatus) {
	state := "not read"
	if in.Reader != nil {
		state = in.Reader.State
	}
	fmt.Fprintf(b, "input     %-16s %s, %s\n", in.Name, state, tallies(dispositions(in.Readings), "no reading came"))
	if in.Reader != nil && in.Reader.Problem != "" {
		fmt.Fprintf(b, "          ! %s\n", in.Reader.Problem)
	}
	if len(in.Reasons) > 0 {
		fmt.Fprintf(b, "          quarantined for %s\n", tallies(in.Reasons, ""))
	}
	if len(in.Rejects) > 0 {
		fmt.Fprintf(b, "          rejected for %s\n", tallies(in.Rejects, ""))
	}
	shown := 0
	for i := range sources {
		if s := &sources[i]; s.Input == in.Name {
			if shown++; shown <= onlineSources {
				printSource(b, s)
			}
		}
	}
	if shown > onlineSources {
		fmt.Fprintf(b, "          and %s more; --json lists them\n", count(shown-onlineSources, "source clock"))
	}
	if in.WhenWrong != "" {
		fmt.Fprintf(b, "          the line that fits, if the clocks cannot be set:\n              timestamps: {when_wrong: %s}\n", in.WhenWrong)
	}
}

// onlineSources is how many source clocks of an input are shown, the worst first.
const onlineSources = 20

func printSource(b *strings.Builder, s *clock.SourceStatus) {
	who := printable(s.Device)
	if s.Server {
		who = "the server"
	}
	line := fmt.Sprintf("%s: %s to %s from this host's clock, %s, by %s", cmp.Or(who, "its clock"), offsetText(s.OffsetLoNS), offsetText(s.OffsetHiNS), s.Verdict, count(s.Samples, "sample"))
	if s.Samples == 0 {
		line = cmp.Or(who, "its clock") + ": not measured"
	}
	fmt.Fprintf(b, "          %s\n", line)
	if s.Advice != "" {
		fmt.Fprintf(b, "          ! %s\n", s.Advice)
	}
}

// dispositions names them as the other commands do.
func dispositions(counts map[string]int) map[string]int {
	words := map[string]string{"ACCEPT": "accepted", "FLAG": "accepted with a flag", "PENDING": "pending", "QUARANTINE": "quarantined"}
	named := map[string]int{}
	for d, n := range counts {
		named[cmp.Or(words[d], d)] += n
	}
	return named
}

// tallies lists counts by name, the largest first.
func tallies(counts map[string]int, none string) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, n := range names {
		names[i] = fmt.Sprintf("%s %d", n, counts[n])
	}
	return cmp.Or(strings.Join(names, ", "), none)
}
