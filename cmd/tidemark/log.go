package main

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// newLogger returns the process's logger: for people on a terminal, JSON lines
// otherwise. Messages name their time to the millisecond, in UTC.
func newLogger(w io.Writer) zerolog.Logger {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	now := zerolog.TimestampFunc
	zerolog.TimestampFunc = func() time.Time { return now().UTC() }
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		w = zerolog.ConsoleWriter{Out: f, TimeFormat: "15:04:05.000", NoColor: os.Getenv("NO_COLOR") != ""}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}
