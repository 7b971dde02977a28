package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tidemark/buffer"
	"tidemark/gateway"
	"tidemark/history"
)

// What the store commands print.

// printStoreCheck prints the faults of a store, then the verdict.
func printStoreCheck(w io.Writer, r *storeCheck) error {
	var b strings.Builder
	for _, f := range r.Faults {
		place := "offset " + strconv.FormatInt(f.Offset, 10)
		if f.Offset < 0 {
			place = "not there"
		}
		if of := strings.TrimSpace(f.Bucket + " " + f.Key); of != "" {
			place += ": " + of
		}
		fmt.Fprintf(&b, "%s: %s\n", place, f.What)
	}
	if n := r.FaultCount - len(r.Faults); n > 0 {
		fmt.Fprintf(&b, "and %s more\n", count(n, "fault"))
	}
	if r.Torn {
		fmt.Fprintln(&b, "notice: one of the two beginnings of the file is damaged; the other was taken. A power cut in a commit leaves that; damage at rest would have cost the last commit")
	}
	if r.FaultCount == 0 {
		fmt.Fprintf(&b, "%s: ok (%d blocks, %d records, %d pieces of evidence)\n", r.Path, r.Journal.Len(), r.Outbox.Len(), r.Evidence.Len())
	}
	if r.Replay != nil {
		writeRestepped(&b, r.Replay)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeRestepped says what came of stepping the journal again.
func writeRestepped(b *strings.Builder, r *gateway.Restepped) {
	if r.Unreachable != "" {
		fmt.Fprintln(b, "replay: nothing could be stepped:", r.Unreachable)
		return
	}
	for _, seq := range r.Differ {
		fmt.Fprintf(b, "replay: block %d gives other results than were committed with it\n", seq)
	}
	if n := r.DifferCount - len(r.Differ); n > 0 {
		fmt.Fprintf(b, "replay: and %s more\n", count(n, "block"))
	}
	if r.OK() {
		fmt.Fprintf(b, "replay: ok (%s with %s from block %d on give the %s committed with them; likewise from %s)\n",
			count(r.Blocks, "block"), count(r.Readings, "reading"), r.From, count(r.Emissions, "result"), count(r.Checkpoints, "checkpoint"))
	}
}

// printStoreStats prints what a store holds.
func printStoreStats(w io.Writer, r *buffer.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d bytes, %d of them free, schema %d\n", r.Path, r.FileBytes, r.FreeBytes, r.Schema)
	fmt.Fprintf(&b, "created   %s, %d commits, the latest at %s\n", storeTime(r.CreatedMS), r.Commits, storeTime(r.LatestMS))
	fmt.Fprintf(&b, "journal   %s, %d readings\n", storeRange(r.Journal), r.Readings)
	for _, g := range r.Gaps {
		fmt.Fprintf(&b, "          %s\n", lostBlocks(g))
	}
	fmt.Fprintf(&b, "outbox    %s\n", storeRange(r.Outbox))
	for _, name := range slices.Sorted(maps.Keys(r.Cursors)) {
		fmt.Fprintf(&b, "          %s has delivered up to %d, %d wait\n", name, r.Cursors[name], r.Outbox.Next-min(r.Cursors[name]+1, r.Outbox.Next))
	}
	fmt.Fprintf(&b, "evidence  %s\n", storeRange(r.Evidence))
	fmt.Fprintf(&b, "recovery  checkpoints after blocks %v\n", r.Checkpoints)
	for _, l := range r.Losses {
		fmt.Fprintf(&b, "loss      %s %s %d to %d, not reported yet\n", l.Kind, l.Uplink, l.First, l.Next-1)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Buckets)) {
		fmt.Fprintf(&b, "bucket    %-10s %d values, %d bytes\n", name, r.Buckets[name].Values, r.Buckets[name].Bytes)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func storeRange(r buffer.Range) string {
	if r.Len() == 0 {
		return "empty, the next is " + strconv.FormatUint(r.Next, 10)
	}
	return fmt.Sprintf("%d to %d, %d bytes", r.First, r.Next-1, r.Bytes)
}

func storeTime(ms int64) string {
	if ms == 0 {
		return "an unknown time"
	}
	return history.TimeMS(ms)
}

// printCompacted says what compacting brought.
func printCompacted(w io.Writer, c compacted) error {
	_, err := fmt.Fprintf(w, "%s: %d bytes, before %d\n", c.Path, c.After, c.Before)
	return err
}

func lostBlocks(g buffer.Gap) string {
	if g.Next == g.First+1 {
		return fmt.Sprintf("block %d is lost", g.First)
	}
	return fmt.Sprintf("blocks %d to %d are lost", g.First, g.Next-1)
}

// printSalvaged says what was brought back.
func printSalvaged(w io.Writer, path string, s *buffer.Salvaged) error {
	var b strings.Builder
	fmt.Fprintf(&b, "wrote %s: %d blocks with %d readings, %d records, %d pieces of evidence, %s\n",
		path, s.Blocks, s.Readings, s.Records, s.Evidence, count(s.Values, "named value"))
	for _, g := range s.Gaps {
		fmt.Fprintln(&b, lostBlocks(g))
	}
	if s.LostRecords > 0 {
		fmt.Fprintf(&b, "%d records are lost\n", s.LostRecords)
	}
	if !s.State {
		fmt.Fprintln(&b, "the state is lost: checkpoints and named values are left out")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
