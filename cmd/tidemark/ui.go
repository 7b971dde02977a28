package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tidemark/clock"
	"tidemark/gateway"
	"tidemark/reading"
	"tidemark/uplink"
	"tidemark/windowing"
)

// Everything that a user sees of a command is printed in this file.

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
	_, err := io.WriteString(w, b.String())
	return err
}

// printCheckJSON prints the report as one JSON object.
func printCheckJSON(w io.Writer, r *checkReport) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// printWritten says that a configuration was written and what comes next.
func printWritten(w io.Writer, path string) {
	fmt.Fprintf(w, "wrote %s; edit it, then: tidemark check -c %s\n", path, path)
}

// count returns n and the word, in the plural unless n is 1.
func count(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

// replayLines prints what an engine says of a trace.
type replayLines struct {
	w     *bufio.Writer
	shown [windowing.EmitWatermark + 1]bool
	live  bool // somebody may be waiting for the line
	buf   []byte
}

// print prints the chosen emissions of one step of operation after.
func (l *replayLines) print(after int, out *windowing.Output) error {
	l.buf = l.buf[:0]
	for i := range out.Emissions {
		if e := &out.Emissions[i]; int(e.Kind) < len(l.shown) && l.shown[e.Kind] {
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

// printStatus prints the gateway's status on one screen, the verdict first.
func printStatus(w io.Writer, st *gateway.Status) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", st.Gateway, strings.ToUpper(st.Verdict), st.At)
	for _, f := range st.Because {
		fmt.Fprintf(&b, "  ! %s: %s (since %s)\n", f.Name, f.Detail, f.Since)
	}
	fmt.Fprintf(&b, "\nclock     %s, error at most %s, %s\n", st.Clock.State, milliseconds(st.Clock.BoundNS), serverCount(&st.Clock))
	for _, in := range st.Inputs {
		state := "not read"
		if in.Reader != nil {
			state = in.Reader.State
		}
		c := &in.Counts
		fmt.Fprintf(&b, "input     %-16s %s; received %d = accepted %d + duplicate %d + malformed %d + unmatched %d + quarantined %d + pending %d; %d pending now\n",
			in.Name, state, c.Received, c.Accepted, c.Duplicate, c.Malformed, c.Unmatched, c.Quarantined, c.Pending, in.PendingNow)
		if in.Reader != nil && in.Reader.Problem != "" {
			fmt.Fprintf(&b, "          %s\n", in.Reader.Problem)
		}
	}
	for _, f := range st.Features.Features {
		fmt.Fprintf(&b, "feature   %-16s watermark %s, %d keys, %d open windows; windowed %d, late %d, excluded %d\n",
			f.Feature.Name, watermark(f.WatermarkMS), f.Keys, f.OpenWindows, f.Windowed, f.Late, f.Excluded)
		if len(f.HeldBy) > 0 {
			fmt.Fprintf(&b, "          held back by %s\n", strings.Join(f.HeldBy, ", "))
		}
	}
	for _, u := range st.Uplinks {
		fmt.Fprintf(&b, "uplink    %-16s %s, backlog %d, in flight %d, last acknowledged %s\n", u.Name, u.State, u.Backlog, u.InFlight, orNever(u.LastAck))
		if u.Reason != "" {
			fmt.Fprintf(&b, "          %s\n", u.Reason)
		}
	}
	fmt.Fprintf(&b, "store     block %d, %d readings, %d of %d MiB used, %d MiB free on disk\n",
		st.Block, st.Store.Readings, st.Store.UsedBytes>>20, st.Store.QuotaBytes>>20, st.Store.FreeBytes>>20)
	if !st.Conserved {
		fmt.Fprintln(&b, "\nThe sums do not add up: a reading is not accounted for. This is a fault of the gateway; please report it.")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func serverCount(c *clock.Status) string {
	agree := 0
	for _, s := range c.Servers {
		if s.Verdict == "truechimer" {
			agree++
		}
	}
	return fmt.Sprintf("%d of %d servers agree", agree, len(c.Servers))
}

func milliseconds(ns int64) string {
	if ns < 0 {
		return "unknown"
	}
	return strconv.FormatFloat(float64(ns)/1e6, 'f', 1, 64) + " ms"
}

func watermark(ms int64) string {
	if ms == reading.NoTime {
		return "none yet"
	}
	b := reading.AppendJSONTimeMS(nil, ms)
	return string(b[1 : len(b)-1])
}

func orNever(t string) string {
	if t == "" {
		return "never"
	}
	return t
}

// printJSON prints v as one indented JSON value.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// clearScreen clears a terminal for the next picture.
func clearScreen(w io.Writer) { fmt.Fprint(w, "\x1b[H\x1b[2J") }
