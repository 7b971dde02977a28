package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
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
