package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// clearScreen clears a terminal for the next picture.
func clearScreen(w io.Writer) { fmt.Fprint(w, "\x1b[H\x1b[2J") }

// onScreen is the text as a terminal has room for it, so that the verdict at its
// beginning stays in sight; on anything else it is the text as it is.
func onScreen(text string, w io.Writer) string {
	f, ok := w.(*os.File)
	if !ok {
		return text
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return text
	}
	return crop(text, width, height)
}

// crop cuts a text to so many columns and lines, and says what it leaves out.
func crop(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if height > 2 && len(lines) > height-1 { // the cursor takes the last
		more := len(lines) - (height - 2)
		lines = append(lines[:height-2], fmt.Sprintf("… %d lines more: without --watch, or in a higher window", more))
	}
	for i, l := range lines {
		lines[i] = clip(l, width)
	}
	return strings.Join(lines, "\n") + "\n"
}

// printNoAnswer stands in for the status while the gateway is away.
func printNoAnswer(w io.Writer, err error) error {
	_, werr := fmt.Fprintf(w, "no answer: %v; asking again\n", err)
	return werr
}
