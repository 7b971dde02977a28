package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"tidemark/gateway"
	"tidemark/history"
	"tidemark/reading"
)

func newExplainCmd() *cobra.Command {
	var from journalFlags
	var feature string
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "explain ASSET/SENSOR WINDOW",
		Short: "Tell the life of a window: its readings, its revisions, and what came late and why",
		Long: `Tell the life of a window: its readings with both times and what became of them,
what vouched for their times, each revision with its cause and when it was known, what
the watermark waited for, and the closing.

WINDOW is its start, or any time in it, as RFC 3339 or milliseconds since 1970;
latest is the window of the latest reading, -1 the one before that.

The journal is stepped again by an engine of this command's own; the running gateway
only hands it out. What the digests in the journal prove went upstream exactly so;
what they do not prove is marked.`,
		Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := parseSensorName(args[0])
			if err != nil {
				return err
			}
			q := history.Question{Asset: name.asset, Sensor: name.sensor, Feature: feature, AtMS: reading.NoTime}
			if err := parseWindow(args[1], &q); err != nil {
				return err
			}
			return from.with(cmd.Context(), func(j gateway.Journal) error {
				bar := newProgressBar(cmd)
				x, err := history.Explain(cmd.Context(), j, q, bar.show)
				bar.end()
				switch {
				case err != nil:
					return notExplained(cmd.Context(), j, name, err)
				case asJSON:
					return runtimeError(printJSON(cmd.OutOrStdout(), x))
				}
				return runtimeError(printExplanation(cmd.OutOrStdout(), x, all))
			})
		},
	}
	from.add(cmd)
	cmd.Flags().StringVar(&feature, "feature", "", "only the window of the feature `NAME`")
	cmd.Flags().BoolVar(&all, "all", false, "list every reading")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// parseWindow reads the argument WINDOW.
func parseWindow(arg string, q *history.Question) (err error) {
	if arg == "latest" {
		return nil
	}
	if back, err := strconv.Atoi(arg); err == nil && back <= 0 && back > -1_000_000 {
		q.Back = -back
		return nil
	}
	if q.AtMS, err = parseMoment(arg); err != nil {
		return fmt.Errorf("%q names no window: write its start as in 2026-01-01T12:00:00Z, latest, or -1 for the one before that", arg)
	}
	return nil
}

// notExplained says what to do about a question that has no answer.
func notExplained(ctx context.Context, j history.Journal, n sensorName, err error) error {
	switch {
	case errors.Is(err, history.ErrUnknownSensor):
		names, nerr := history.Names(ctx, j)
		if nerr != nil {
			return nerr
		}
		return &exitError{exitUsage, unknownSensor(n, names)}
	case errors.Is(err, history.ErrUnselected):
		return &exitError{exitUsage, fmt.Errorf("no feature of that name or any other selects %s, so it has no windows; tidemark tail %s shows its readings", n, n)}
	case errors.Is(err, history.ErrRetention):
		return &exitError{exitRuntime, fmt.Errorf("%w; store.retain and store.quota say how far", err)}
	}
	return err
}

var negative = regexp.MustCompile(`^-\d+$`)

// windowsBack has the arguments of explain such as -1 taken for what they are, and
// not for flags.
func windowsBack(args []string) []string {
	if len(args) == 0 || args[0] != "explain" {
		return args
	}
	var flags, words []string
	for i := 1; i < len(args); i++ {
		if negative.MatchString(args[i]) {
			words = append(words, args[i])
		} else {
			flags = append(flags, args[i])
		}
	}
	if len(words) == 0 {
		return args
	}
	return append(append([]string{"explain"}, flags...), append([]string{"--"}, words...)...)
}
