package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tidemark/configs"
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
	var file string
	var top int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "advise [flags] TRACE",
		Short: "Measure disorder and delay in a recorded trace, and recommend budgets",
		Long: "Measures over a recorded trace, as replay reads it, how far readings come behind\n" +
			"others of their input, device or sensor and how long they are under way. Says what\n" +
			"budgets of out_of_orderness and allowed_lateness would have cost, and recommends\n" +
			"values with what they cost. - reads standard input.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 0 {
				return fmt.Errorf("--top %d: the number of rows cannot be negative", top)
			}
			budgets, err := adviseBudgets(file)
			if err != nil {
				return err
			}
			meter := disorder.New(budgets)
			if err := measure(cmd.Context(), meter, args[0], cmd.InOrStdin()); err != nil {
				return err
			}
			a := advice{args[0], meter.Report(top), adviseAssumptions}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), a)
			} else {
				err = printAdvice(cmd.OutOrStdout(), &a)
			}
			if err != nil {
				return runtimeError(fmt.Errorf("cannot write the advice: %w", err))
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration `FILE` whose features' budgets are looked at too, instead of the default")
	cmd.Flags().IntVar(&top, "top", 5, "how many of the worst inputs, devices and sensors are shown")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object; durations are milliseconds")
	return cmd
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
func measure(ctx context.Context, m *disorder.Meter, name string, in io.Reader) error {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("cannot read the trace: %w", err)
		}
		defer f.Close()
		in = f
	}
	for ops := trace.NewReader(in, true); ; {
		if ctx.Err() != nil {
			return runtimeError(fmt.Errorf("%s: %w", name, ctx.Err()))
		}
		op, err := ops.Next()
		var fault *trace.Fault
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &fault):
			return fmt.Errorf("%s: %w", name, err)
		case err != nil:
			return runtimeError(fmt.Errorf("%s: %w", name, err))
		}
		for i := range op.Steps {
			for j := range op.Steps[i].Readings {
				m.Add(&op.Steps[i].Readings[j])
			}
		}
	}
}
