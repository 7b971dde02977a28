package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"tidemark/clock"
	"tidemark/gateway"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/uplink"
)

func newReconcileCmd() *cobra.Command {
	var from journalFlags
	begin, end := momentFlag{reading.NoTime}, momentFlag{reading.NoTime}
	var feature, file, view string
	var sensors []string
	cmd := &cobra.Command{
		Use:   "reconcile --out FILE",
		Short: "Rebuild features from everything that is kept, also what came too late",
		Long: `Rebuild features from everything that the journal of the running gateway, or of a
store at rest, holds: what came too late for the served results too. What comes out is
a view of its own, one JSON record a line, of type reconciled and with a view tag;
nothing that was served is touched, and nothing is published. A window of which not
everything is kept says so (partial). --from and --to are starts of windows.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			only, err := parseSensors(sensors)
			if err != nil {
				return err
			}
			what := history.Rebuilding{FromMS: begin.ms, ToMS: end.ms, Feature: feature, Sensors: only}
			out, done, err := createOutput(file, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			now := clock.HostTime().UTC()
			if view == "" {
				view = now.Format("20060102T150405Z")
			}
			r := &reconciler{view: uplink.View{Name: view, ReconciledAtNS: now.UnixNano()}, what: what, out: out}
			err = from.with(cmd.Context(), func(j gateway.Journal) error { return r.run(cmd, j, file) })
			return done(err)
		},
	}
	from.add(cmd)
	cmd.Flags().Var(&begin, "from", "leave out windows that start before")
	cmd.Flags().Var(&end, "to", "leave out windows that start then or later")
	cmd.Flags().StringVar(&feature, "feature", "", "only windows of the feature `NAME`")
	cmd.Flags().StringSliceVar(&sensors, "sensor", nil, "only of these sensors, ASSET/SENSOR")
	cmd.Flags().StringVarP(&file, "out", "o", "", "write to `FILE` instead of standard output")
	cmd.Flags().StringVar(&view, "view", "", "version tag of the view; default: the time")
	return cmd
}

// reconciler writes a reconciled view.
type reconciler struct {
	view uplink.View
	what history.Rebuilding
	out  io.Writer
	buf  []byte

	windows, partial int
}

// run writes the view.
func (r *reconciler) run(cmd *cobra.Command, j history.Journal, file string) error {
	info, err := j.Info(cmd.Context())
	if err != nil {
		return err
	}
	r.view.FromNS, r.view.ToNS = knownNS(info.OldestMS), knownNS(info.LatestMS)
	enc := uplink.Encoder{Gateway: info.Gateway, Generation: info.Generation}
	bar := newProgressBarBeside(cmd, file)
	_, err = history.Reconcile(cmd.Context(), j, r.what, bar.show, func(w history.Reconciled) error {
		r.windows++
		if len(w.Partial) > 0 {
			r.partial++
		}
		r.buf = append(enc.AppendReconciled(r.buf[:0], &r.view, w.Emission, w.Partial), '\n')
		_, err := r.out.Write(r.buf)
		return runtimeError(err)
	})
	bar.end()
	if errors.Is(err, history.ErrUnselected) {
		return &exitError{exitUsage, err}
	}
	if err == nil && file != "" {
		printReconciled(cmd.ErrOrStderr(), r)
	}
	return err
}

// knownNS is a wall time in nanoseconds of one in milliseconds, of which 0 is none.
func knownNS(ms int64) int64 {
	if ms == 0 {
		return reading.NoTime
	}
	return ms * 1e6
}
