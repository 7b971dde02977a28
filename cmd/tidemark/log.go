package main

import (
	"io"
	"os"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// newLogger returns the process's logger: for people on a terminal, JSON lines
// otherwise. Messages name their time to the millisecond.
func newLogger(w io.Writer) zerolog.Logger {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		w = zerolog.ConsoleWriter{Out: f, TimeFormat: "15:04:05.000", NoColor: os.Getenv("NO_COLOR") != ""}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}
