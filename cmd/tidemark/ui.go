package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/uplink"
	"tidemark/windowing"
)

// What the commands print for people is written in this file, except of those that
// have a ui_*.go of their own and the pictures of the demo (demo_view.go). It is
// JSON where that is asked for, by printJSON.

// printError prints the one error that ends a command.
func printError(w io.Writer, err error) { fmt.Fprintf(w, "tidemark: %v\n", err) }

// printCheck prints faults, then notices, then the verdict.
func printCheck(w io.Writer, r *checkReport) error {
	var b strings.Builder
	for _, f := range r.Faults {
		fmt.Fprintln(&b, f)
	}
	for _, n := range r.Notices {
		fmt.Fprintln(&b, "notice:", n)
	}
	for _, d := range r.Disabled {
		fmt.Fprintf(&b, "notice: %s: feature %q would be left out for its faults; everything else would run\n", r.File, d)
	}
	if r.OK {
		fmt.Fprintf(&b, "%s: ok (%s, %s, %s)\n", r.File, count(r.Inputs, "input"), count(len(r.Features), "feature"), count(r.Uplinks, "uplink"))
	}
	if r.Online != nil {
		printProbed(&b, r.Online)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printWritten says that a configuration was written and what comes next.
func printWritten(w io.Writer, path string) {
	if path == configs.ServiceFile {
		fmt.Fprintf(w, "wrote %s; edit it, then: tidemark check --online && systemctl reload tidemark\n", path)
		return
	}
	fmt.Fprintf(w, "wrote %s; edit it, then: tidemark check -c %s\n", path, path)
}

// count returns n and the word, in the plural unless n is 1.
func count[T int | int64 | uint64](n T, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprint(n) + " " + word
}

// replayLines prints what an engine says of a trace.
type replayLines struct {
	w     *bufio.Writer
	shown shownKinds
	live  bool // somebody may be waiting for the line
	buf   []byte
}

// print prints the chosen emissions of one step of operation after.
func (l *replayLines) print(after int, out *windowing.Output) error {
	l.buf = l.buf[:0]
	for i := range out.Emissions {
		if e := &out.Emissions[i]; l.shown[e.Kind] {
			l.buf = append(uplink.AppendReplay(l.buf, after, e), '\n')
		}
	}
	if len(l.buf) == 0 {
		return nil
	}
	if _, err := l.w.Write(l.buf); err != nil || !l.live {
		return err
	}
	return l.w.Flush()
}

// printAs prints v as one JSON object, or as people read it.
func printAs[T any](cmd *cobra.Command, asJSON bool, v T, forPeople func(io.Writer, T) error) error {
	if asJSON {
		return runtimeError(printJSON(cmd.OutOrStdout(), v))
	}
	return runtimeError(forPeople(cmd.OutOrStdout(), v))
}

// printJSON prints v as one indented JSON value. Lists and mappings are never null.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(gateway.Filled(v))
}
