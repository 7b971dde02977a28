package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing/disorder"
	"tidemark/windowing/trace"
)

// defaultBudget is what `defaults` of a configuration has by itself.
var defaultBudget = disorder.Budget{OutOfOrdernessMS: 20_000, AllowedLatenessMS: 600_000}

// advice is what `tidemark advise --json` prints.
type advice struct {
	Trace string `json:"trace"`
	*disorder.Report
	Assumptions []string `json:"assumptions"`
}

func newAdviseCmd() *cobra.Command {
	var from journalFlags
	var top int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "advise [flags] [TRACE|-]",
		Short: "Measure disorder and delay, and recommend budgets",
		Long: "Measures how far readings come behind others of their input, device or sensor and\n" +
			"how long they are under way: over the journal of the running gateway, or over a\n" +
			"recorded trace, as replay reads it; - reads standard input. Says what budgets of\n" +
			"out_of_orderness and allowed_lateness would have cost, and recommends values with\n" +
			"what they cost.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 0 {
				return fmt.Errorf("--top %d: the number of rows cannot be negative", top)
			}
			a, err := advise(cmd, &from, args, top)
			if err != nil {
				return err
			}
			return printAs(cmd, asJSON, a, printAdvice)
		},
	}
	from.add(cmd)
	cmd.Flags().Lookup("config").Usage = "configuration `FILE` of the gateway; its features' budgets are looked at too, instead of the default"
	cmd.Flags().IntVar(&top, "top", 5, "how many of the worst inputs, devices and sensors are shown")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object; durations are milliseconds")
	return cmd
}

// advise measures the trace that is named, else the journal.
func advise(cmd *cobra.Command, from *journalFlags, args []string, top int) (*advice, error) {
	given := cmd.Flags().Changed("config")
	if len(args) == 1 {
		if from.store != "" || from.socket != "" {
			return nil, errors.New("a trace is measured, or a journal with --store or --socket, not both")
		}
	}
	file := from.file
	if !given && (len(args) == 1 || from.store != "" || from.socket != "") {
		file = "" // what is measured is not this file's
	}
	budgets, err := adviseBudgets(file)
	if err != nil {
		return nil, err
	}
	meter := disorder.New(budgets)
	if len(args) == 1 {
		if err := measure(cmd, meter, args[0]); err != nil {
			return nil, err
		}
		return &advice{args[0], meter.Report(top), adviseAssumptions}, nil
	}
	var a *advice
	err = from.with(cmd.Context(), func(j gateway.Journal) error {
		info, err := j.Info(cmd.Context())
		if err != nil {
			return err
		}
		if err := measureJournal(cmd, meter, j); err != nil {
			return err
		}
		a = &advice{"journal of " + cmp.Or(info.Gateway, "a gateway") + " since " + storeTime(info.OldestMS), meter.Report(top), adviseAssumptions}
		return nil
	})
	return a, err
}

// measureJournal adds every reading of a journal to the meter, in the order of
// their arrival.
func measureJournal(cmd *cobra.Command, m *disorder.Meter, j history.Journal) error {
	all := history.Selection{FromMS: reading.NoTime, ToMS: reading.NoTime}
	bar := newProgressBar(cmd)
	defer bar.end()
	return history.Batches(cmd.Context(), j, all, bar.show, func(b *reading.Batch) error {
		for i := range b.Readings {
			r := &b.Readings[i]
			if r.Stamp.Disposition != reading.Pending && inOrder(r) {
				m.Add(r)
			}
		}
		return nil
	})
}

// inOrder reports whether a reading came in the order in which its source sends.
// What comes from a history, is the state of things at a subscription, or waited for
// the gateway's clock, did not.
func inOrder(r *reading.Reading) bool {
	return !r.Delivery.Has(reading.Rejudged | reading.Historical | reading.Initial)
}

// adviseBudgets are the candidates and what is in use: the budgets of the file's
// features, or the default without a file.
func adviseBudgets(file string) ([]disorder.Budget, error) {
	budgets := disorder.Candidates()
	if file == "" {
		return disorder.Use(budgets, defaultBudget, "default"), nil
	}
	cfg, err := configs.Load(file)
	if err != nil {
		return nil, err
	}
	for i := range cfg.Features {
		f := &cfg.Features[i]
		b := disorder.Budget{OutOfOrdernessMS: f.OutOfOrderness.MS(), AllowedLatenessMS: f.AllowedLateness.MS()}
		budgets = disorder.Use(budgets, b, f.Name)
	}
	return budgets, nil
}

// measure adds every reading of a trace to the meter. The trace's watermarks and
// status say nothing about order, so they may be there and are passed over.
func measure(cmd *cobra.Command, m *disorder.Meter, name string) error {
	bar := newProgressBar(cmd)
	defer bar.end()
	in, err := openTrace(cmd, name, bar)
	if err != nil {
		return err
	}
	defer in.Close()
	for ops := trace.NewReader(in, true); ; {
		if cmd.Context().Err() != nil {
			return errInterrupted
		}
		op, err := ops.Next()
		var fault *trace.Fault
		switch {
		case err == io.EOF:
			return nil
		case cmd.Context().Err() != nil: // reading ends with it
		case errors.As(err, &fault):
			return fmt.Errorf("%s: %w", name, err)
		case err != nil:
			return runtimeError(fmt.Errorf("%s: %w", name, err))
		}
		for i := range op.Steps {
			for j := range op.Steps[i].Readings {
				if r := &op.Steps[i].Readings[j]; inOrder(r) {
					m.Add(r)
				}
			}
		}
	}
}
