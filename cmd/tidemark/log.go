package main

import (
	"io"
	"os"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// logTime is how log lines name their time: to the millisecond.
const logTime = "2006-01-02T15:04:05.000Z07:00"

// newLogger returns the process's logger: for people on a terminal, JSON lines
// otherwise. Every room logs, from its own goroutines: lines are written one at a
// time whatever w is.
func newLogger(w io.Writer) zerolog.Logger {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		w = zerolog.ConsoleWriter{Out: f, TimeFormat: "15:04:05.000", NoColor: os.Getenv("NO_COLOR") != ""}
	}
	return zerolog.New(zerolog.SyncWriter(w)).With().Timestamp().Logger()
}
