package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/reading"
	"tidemark/windowing"
	"tidemark/windowing/trace"
)

// replayFlags are the flags of `tidemark replay` at their defaults.
type replayFlags struct {
	file                                                string
	window, offset, outOfOrderness, idleAfter, lateness millis
	watermarks, scope                                   string
	functions, emit                                     []string
	asRecorded                                          bool
}

// shownKinds says which kinds of emission are printed.
type shownKinds [windowing.EmitResumed + 1]bool

func newReplayCmd() *cobra.Command {
	f := replayFlags{
		window: millis(5 * time.Minute), outOfOrderness: millis(20 * time.Second),
		idleAfter: millis(time.Minute), lateness: millis(2 * time.Minute),
	}
	cmd := &cobra.Command{
		Use:   "replay TRACE",
		Short: "Run the engine over a recorded trace",
		Long: "Runs the engine over a recorded trace, one operation a line, and prints what comes\n" +
			"out as JSON lines; after is the number of the operation that caused it, from 0.\n" +
			"Without -c one feature named replay, version 1, is computed over every sensor. Time\n" +
			"is the trace's own; the same trace gives the same bytes. - reads standard input.\n\n" +
			"Of the configurations in a recorded trace only the birth of the store counts, unless\n" +
			"--as-recorded puts them in force: then what comes out is what came out then. With -c\n" +
			"readings that no verdict came with are judged by the file's policies, once the trace\n" +
			"has told of the gateway's clock.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.replayer()
			if err != nil {
				return err
			}
			shown, err := f.shown()
			if err != nil {
				return err
			}
			return r.run(cmd, shown, args[0])
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.file, "config", "c", "", "configuration `FILE` whose features are computed instead")
	fl.Var(&f.window, "window", "size of the windows")
	fl.Var(&f.offset, "offset", "offset of the windows from 1970-01-01T00:00:00Z")
	fl.Var(&f.outOfOrderness, "out-of-orderness", "how far the watermark stays behind the highest time seen")
	fl.Var(&f.idleAfter, "idle-after", "gateway time of silence after which a partition is idle; 0s is never")
	fl.Var(&f.lateness, "allowed-lateness", "how long after its first result a window takes corrections")
	fl.StringVar(&f.watermarks, "watermarks", "generated", "generated from the readings, or explicit: by the trace alone")
	fl.StringVar(&f.scope, "scope", "input", "what has a watermark of its own: input, device or sensor")
	fl.StringSliceVar(&f.functions, "functions", []string{"count", "sum", "mean"}, "statistics of a window")
	fl.StringSliceVar(&f.emit, "emit", []string{"feature", "late", "closed", "duplicate", "quarantine", "silent", "resumed"},
		"lines to print: these, and watermark")
	fl.BoolVar(&f.asRecorded, "as-recorded", false, "put the trace's own configurations in force, as when it was recorded")
	for _, name := range []string{"window", "offset", "out-of-orderness", "idle-after", "allowed-lateness", "scope", "functions"} {
		cmd.MarkFlagsMutuallyExclusive("config", name)
		cmd.MarkFlagsMutuallyExclusive("as-recorded", name)
	}
	cmd.MarkFlagsMutuallyExclusive("as-recorded", "config")
	return cmd
}

// replayer is what the flags ask for: nothing is spaced, limited or forgotten,
// unless a file says so.
func (f *replayFlags) replayer() (*replayer, error) {
	scope, ok := windowing.ParseScope(f.scope)
	if !ok {
		return nil, fmt.Errorf("--scope %q is none of input, device, sensor", f.scope)
	}
	if f.watermarks != "generated" && f.watermarks != "explicit" {
		return nil, fmt.Errorf("--watermarks %q is neither generated nor explicit", f.watermarks)
	}
	explicit := f.watermarks == "explicit"
	if f.asRecorded {
		return &replayer{config: windowing.Config{FloorMS: reading.NoTime, Explicit: explicit}, asRecorded: true}, nil
	}
	r := &replayer{config: windowing.Config{Features: []windowing.Feature{{
		ID:     windowing.FeatureID{Name: "replay", Version: 1},
		SizeMS: f.window.ms(), OffsetMS: f.offset.ms(), OutOfOrdernessMS: f.outOfOrderness.ms(),
		AllowedLatenessMS: f.lateness.ms(), IdleAfterMS: f.idleAfter.ms(), Scope: scope, Functions: f.functions,
	}}}}
	if f.file != "" {
		file, err := configs.Load(f.file)
		if err != nil {
			return nil, err
		}
		if r.config, err = gateway.EngineConfig(file); err != nil {
			return nil, fmt.Errorf("%s: %w", f.file, err)
		}
		r.judge = gateway.Judge(file)
	}
	// A trace has no birth, and ends before its evidence would be forgotten (D3).
	r.config.FloorMS, r.config.LateIdentityMS, r.config.Explicit = reading.NoTime, windowing.Forever, explicit
	return r, nil
}

// shown tells which kinds of emission are printed.
func (f *replayFlags) shown() (shown shownKinds, err error) {
	for _, name := range f.emit {
		kind := windowing.EmitFeature
		for kind <= windowing.EmitResumed && kind.String() != name {
			kind++
		}
		if kind > windowing.EmitResumed {
			return shown, fmt.Errorf("--emit %q is none of feature, late, closed, duplicate, quarantine, watermark, silent, resumed", name)
		}
		shown[kind] = true
	}
	return shown, nil
}

// replayer runs a trace through an engine.
type replayer struct {
	config     windowing.Config
	asRecorded bool // the trace's configurations are in force, not config
	judge      func(*reading.Reading)
}

// run prints what comes out; before a fault of the trace, too.
func (r *replayer) run(cmd *cobra.Command, shown shownKinds, name string) error {
	engine, err := windowing.New(r.config)
	if err != nil {
		return err
	}
	bar := newProgressBarBeside(cmd, "")
	defer bar.end()
	in, err := openTrace(cmd, name, bar)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := &replayLines{w: bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10), shown: shown, live: name == "-"}
	ops := trace.NewReader(in, r.config.Explicit)
	ops.Judge = r.judge
	err = r.trace(cmd.Context(), engine, ops, lines)
	if flushErr := lines.w.Flush(); flushErr != nil {
		return runtimeError(fmt.Errorf("cannot write what came out: %w", flushErr))
	}
	var fault *trace.Fault
	switch {
	case err == nil:
		return nil
	case cmd.Context().Err() != nil:
		return errInterrupted
	case errors.As(err, &fault):
		return fmt.Errorf("%s: %w", name, err)
	}
	return runtimeError(fmt.Errorf("%s: %w", name, err))
}

// openTrace opens the trace of that name, - for standard input. The bar shows how much
// of a file is read, and reading one ends with the command.
func openTrace(cmd *cobra.Command, name string, bar *progressBar) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(cmd.InOrStdin()), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the trace: %w", err)
	}
	total := int64(0) // of a pipe it is not known
	if info, err := f.Stat(); err == nil {
		total = info.Size()
	}
	read := &byteMeter{progress: bar.until(cmd.Context()), step: "reading", total: total}
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(f, read), f}, nil
}

func (r *replayer) trace(ctx context.Context, engine *windowing.Engine, ops *trace.Reader, lines *replayLines) error {
	for ctx.Err() == nil {
		op, err := ops.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range op.Steps {
			b := &op.Steps[i]
			if err := r.configure(b); err != nil {
				return &trace.Fault{Line: op.Line, Err: err}
			}
			if err := lines.print(op.Index, engine.Step(b)); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// configure lets of a recorded configuration count what is asked for.
func (r *replayer) configure(b *reading.Batch) error {
	if b.Config == nil || r.asRecorded {
		return nil
	}
	recorded, err := windowing.DecodeConfig(b.Config)
	if err != nil {
		return err
	}
	r.config.FloorMS = recorded.FloorMS
	b.Config = windowing.AppendConfig(nil, &r.config)
	return nil
}

// millis is a flag of whole milliseconds: a Go duration, in which days may lead.
type millis time.Duration

func (d *millis) String() string { return configs.Duration(*d).String() }
func (d *millis) Type() string   { return "duration" }
func (d *millis) ms() int64      { return time.Duration(*d).Milliseconds() }

func (d *millis) Set(s string) error {
	v, err := configs.ParseDuration(strings.TrimSpace(s))
	if err != nil {
		return err
	}
	if v.Std()%time.Millisecond != 0 {
		return fmt.Errorf("%q: windows are cut in whole milliseconds", s)
	}
	*d = millis(v)
	return nil
}
