package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tidemark/gateway"
	"tidemark/history"
	"tidemark/reading"
)

// journalFlags say whose journal a command reads: that of a running gateway, or of
// a store at rest.
type journalFlags struct {
	gatewayFlags
	store string
}

func (f *journalFlags) add(cmd *cobra.Command) {
	f.gatewayFlags.add(cmd)
	cmd.Flags().StringVar(&f.store, "store", "", "read the store `FILE`, which no gateway is using, instead of asking one")
	cmd.MarkFlagsMutuallyExclusive("store", "socket")
}

// with calls fn with the journal. Errors have their exit code.
func (f *journalFlags) with(ctx context.Context, fn func(gateway.Journal) error) error {
	if f.store == "" {
		socket, err := f.path()
		if err != nil {
			return err
		}
		return answered(ctx, socket, fn(gateway.AskJournal(socket)))
	}
	j, err := gateway.OpenJournal(f.store)
	if err != nil {
		return &exitError{exitStorage, err}
	}
	err = errors.Join(fn(j), j.Close())
	var e *exitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errInterrupted
	case errors.As(err, &e):
		return err
	case gateway.IsDamage(err):
		return &exitError{exitStorage, err}
	}
	return runtimeError(err)
}

// momentFlag is a flag that takes a time: RFC 3339, or milliseconds since 1970.
type momentFlag struct{ ms int64 }

func (m *momentFlag) Type() string { return "time" }

func (m *momentFlag) String() string { return history.TimeMS(m.ms) }

func (m *momentFlag) Set(s string) (err error) {
	m.ms, err = parseMoment(s)
	return err
}

func newRecordCmd() *cobra.Command {
	var from journalFlags
	begin, end := momentFlag{reading.NoTime}, momentFlag{reading.NoTime}
	var inputs, sensors []string
	var file string
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Write a trace from the journal, for replay",
		Long: `Write a trace from the journal of the running gateway, or of a store at rest, for
tidemark replay: one operation a line, with the clock's verdicts and everything else
that the results follow from. tidemark replay --as-recorded of a whole journal gives
the revisions and values that went upstream. --from and --to are times of arrival.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			only, err := parseSensors(sensors)
			if err != nil {
				return err
			}
			s := history.Selection{FromMS: begin.ms, ToMS: end.ms, Inputs: inputs, Sensors: only}
			out, done, err := createOutput(file, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			err = from.with(cmd.Context(), func(j gateway.Journal) error {
				bar := newProgressBarBeside(cmd, file)
				r, err := history.Record(cmd.Context(), j, s, bar.show, out)
				bar.end()
				if err == nil {
					printRecorded(cmd.ErrOrStderr(), &r, &s)
				}
				return err
			})
			return done(err)
		},
	}
	from.add(cmd)
	cmd.Flags().Var(&begin, "from", "leave out what arrived before")
	cmd.Flags().Var(&end, "to", "leave out what arrived then or later")
	cmd.Flags().StringSliceVar(&inputs, "input", nil, "only of these inputs")
	cmd.Flags().StringSliceVar(&sensors, "sensor", nil, "only of these sensors, ASSET/SENSOR")
	cmd.Flags().StringVarP(&file, "out", "o", "", "write to `FILE` instead of standard output")
	return cmd
}

// createOutput opens what a command writes to: a file, or standard output if none
// is named. done ends the writing, with the error that it came to. Until then the file
// has another name, so that one that is only begun is not taken for a whole one.
func createOutput(file string, stdout io.Writer) (out io.Writer, done func(error) error, err error) {
	if file == "" {
		w := bufio.NewWriterSize(stdout, 64<<10)
		return w, func(err error) error { return errors.Join(err, runtimeError(w.Flush())) }, nil
	}
	begun, flag := file+".part", os.O_WRONLY|os.O_CREATE|os.O_EXCL
	switch info, err := os.Stat(file); {
	case err == nil && info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is there already: name another file, or remove it", file)
	case err == nil:
		begun, flag = file, os.O_WRONLY // a device or a pipe
	}
	f, err := os.OpenFile(begun, flag, 0o644)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil, nil, fmt.Errorf("%s is there already, begun by a command that runs or was killed: name another file, or remove it", begun)
		}
		return nil, nil, fmt.Errorf("cannot write: %w", err)
	}
	w := bufio.NewWriterSize(f, 64<<10)
	return w, func(err error) error {
		err = errors.Join(err, runtimeError(w.Flush()))
		if begun == file {
			return errors.Join(err, runtimeError(f.Close()))
		}
		err = errors.Join(err, runtimeError(errors.Join(f.Sync(), f.Close())))
		if err == nil {
			return runtimeError(os.Rename(begun, file))
		}
		return errors.Join(err, runtimeError(os.Remove(begun)))
	}, nil
}
