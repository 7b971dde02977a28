package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tidemark/buffer"
	"tidemark/gateway"
)

func newStoreCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look into a store that is not in use, and mend it",
		Long: `Look into a store that is not in use, and mend it. The gateway must be stopped
first, or FILE be one that it has set aside (NAME.damaged-1). The exit code is 3
if the store is damaged or cannot be opened.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("store needs to be told what to do: check, stats, compact or salvage")
			}
			return chooseCommand(cmd, args)
		},
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newStoreCheckCmd(), newStoreStatsCmd(), newStoreCompactCmd(), newStoreSalvageCmd())
	return cmd
}

func newStoreCheckCmd() *cobra.Command {
	var restep bool
	cmd := newStoreReportCmd("check FILE", "Read every byte of a store and say what is wrong, and where",
		`Read every byte of a store and say what is wrong. Each fault stands on a line of
its own with its offset in the file. Nothing is changed.

With --replay the whole journal is stepped again as well, from its first block or
the older checkpoint on, and from each later checkpoint: each block must give what
was committed with it.`, func(cmd *cobra.Command, r *buffer.Report, asJSON bool) error {
			checked := storeCheck{Report: r}
			if restep && r.FaultCount == 0 {
				var err error
				bar := newProgressBar(cmd)
				checked.Replay, err = gateway.Restep(r.Path, bar.until(cmd.Context()))
				bar.end()
				if err != nil {
					return storageError(cmd.Context(), fmt.Errorf("store %q: %w", r.Path, err))
				}
			}
			if err := printAs(cmd, asJSON, &checked, printStoreCheck); err != nil {
				return err
			}
			if checked.Replay != nil && !checked.Replay.OK() {
				return &exitError{exitStorage, fmt.Errorf("store %q: stepping its journal again does not give what was committed with it", r.Path)}
			}
			return nil
		})
	cmd.Flags().BoolVar(&restep, "replay", false, "step the journal again and compare")
	return cmd
}

// storeCheck is what `store check --json` prints.
type storeCheck struct {
	*buffer.Report
	Replay *gateway.Restepped `json:"replay,omitempty"` // with --replay, of a store without faults
}

func newStoreStatsCmd() *cobra.Command {
	return newStoreReportCmd("stats FILE", "Show what a store holds",
		`Show what a store holds: its blocks, records and evidence, what has been
delivered, and the room that each takes. Nothing is changed.`, func(cmd *cobra.Command, r *buffer.Report, asJSON bool) error {
			return printAs(cmd, asJSON, r, printStoreStats)
		})
}

// newStoreReportCmd is a command that shows a report, and fails on damage.
func newStoreReportCmd(use, short, long string, show func(cmd *cobra.Command, r *buffer.Report, asJSON bool) error) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := checkStore(cmd, args[0])
			if err != nil {
				return err
			}
			if err := show(cmd, r, asJSON); err != nil {
				return err
			}
			if r.FaultCount > 0 {
				return damagedStore(r)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// checkStore reads a store from end to end.
func checkStore(cmd *cobra.Command, path string) (*buffer.Report, error) {
	bar := newProgressBar(cmd)
	defer bar.end()
	r, err := buffer.Check(path, bar.until(cmd.Context()))
	if err != nil {
		return nil, storageError(cmd.Context(), err)
	}
	return r, nil
}

// storageError gives an error of work on a store its exit code.
func storageError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return &exitError{exitStorage, err}
}

// damagedStore is the error of a store with faults, and the remedy.
func damagedStore(r *buffer.Report) error {
	return &exitError{exitStorage, fmt.Errorf("store %q is damaged: %s; bring back what is whole with: tidemark store salvage %s NEW",
		r.Path, count(r.FaultCount, "fault"), r.Path)}
}

// compacted is what `store compact --json` prints.
type compacted struct {
	Path   string `json:"path"`
	Before int64  `json:"before_bytes"`
	After  int64  `json:"after_bytes"`
}

func newStoreCompactCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compact FILE",
		Short: "Rewrite a store without the room that is free inside",
		Long: `Rewrite a store without the room that is free inside. A copy is made beside it,
which takes its place when it is whole: until then the store is as it was. A
damaged store is left alone.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := checkStore(cmd, args[0])
			if err != nil {
				return err
			}
			if r.FaultCount > 0 { // a copy would hide where the damage was
				return damagedStore(r)
			}
			bar := newProgressBar(cmd)
			before, after, err := buffer.Compact(args[0], bar.until(cmd.Context()))
			bar.end()
			if err != nil {
				return storageError(cmd.Context(), err)
			}
			c := compacted{Path: args[0], Before: before, After: after}
			return printAs(cmd, asJSON, c, printCompacted)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func newStoreSalvageCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "salvage FILE NEW",
		Short: "Write what is whole of a damaged store to a new one",
		Long: `Write what is whole of a damaged store to a new one. Every page is looked into,
also those that nothing leads to any more. FILE is not changed, NEW must not
exist. The exit code is 3 if a gateway cannot go on with NEW; it can still be
read.`,
		Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			bar := newProgressBar(cmd)
			found, err := buffer.Salvage(args[0], args[1], bar.until(cmd.Context()))
			bar.end()
			if err != nil {
				return storageError(cmd.Context(), err)
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), found)
			} else {
				err = printSalvaged(cmd.OutOrStdout(), args[1], found)
			}
			if err != nil {
				return runtimeError(err)
			}
			if !found.Complete {
				return &exitError{exitStorage, fmt.Errorf("a gateway cannot go on with %q: what recovery needs is not there", args[1])}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
