package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tidemark/clock"
)

func newJudgeCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "judge FILE",
		Short: "Apply the clock rules to recorded evidence",
		Long: "Applies the clock rules to recorded evidence, for support and conformance. FILE has\n" +
			"a scenario a line: id, op and steps of given. Out comes the result of each step.\n" +
			"- reads standard input.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := cmd.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return fmt.Errorf("cannot read the scenarios: %w", err)
				}
				defer f.Close()
				in = f
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			lines := json.NewEncoder(out)
			lines.SetEscapeHTML(false)
			err := clock.JudgeScenarios(in, func(r clock.StepResult) error {
				if err := lines.Encode(r); err != nil {
					return runtimeError(fmt.Errorf("cannot write the results: %w", err))
				}
				return nil
			})
			if flushErr := out.Flush(); err == nil && flushErr != nil {
				return runtimeError(fmt.Errorf("cannot write the results: %w", flushErr))
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return nil
		},
	}
}
