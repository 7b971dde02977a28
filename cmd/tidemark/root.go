package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes, as the contract with users has them.
const (
	exitOK      = 0
	exitRuntime = 1
	exitUsage   = 2
	exitStorage = 3
)

// exitError is an error that decides the exit code. Any other error from a
// command is one of usage.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRootCmd()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	printError(errOut, err)
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitUsage
}

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:           "tidemark",
		Short:         "An MQTT edge gateway that makes late, repeated and wrongly stamped data a contract",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.AddCommand(newVersionCmd(), newJudgeCmd())
	root.AddCommand(newRunCmd(), newStatusCmd())
	root.AddCommand(newReplayCmd(), newAdviseCmd())
	root.AddCommand(newDemoCmd())
	root.AddCommand(newCheckCmd(), newInitCmd())
	root.AddCommand(newStoreCmd())
	return root
}
