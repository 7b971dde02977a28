package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

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

// errInterrupted ends a command that was told to end before its work was done.
var errInterrupted = &exitError{exitRuntime, errors.New("interrupted before the end")}

// runtimeError gives an error the exit code of a failure, and passes nil on.
func runtimeError(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitRuntime, err}
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRootCmd()
	root.SetArgs(windowsBack(args))
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
		Args:          cobra.ArbitraryArgs, // for chooseCommand to look at
		RunE:          chooseCommand,

		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
	}
	group := func(title string, cmds ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for _, c := range cmds {
			c.GroupID = title
			root.AddCommand(c)
		}
	}
	group("Set up:", newDemoCmd(), newInitCmd(), newBrowseCmd(), newCheckCmd(), newPKICmd())
	group("Run and keep:", newRunCmd(), newReloadCmd(), newBackupCmd(), newRestoreCmd(), newStoreCmd())
	group("Look into it:", newStatusCmd(), newTagsCmd(), newTailCmd(), newExplainCmd(), newQuarantineCmd(), newEvidenceCmd())
	group("Study the data:", newAdviseCmd(), newReconcileCmd(), newRecordCmd(), newReplayCmd(), newJudgeCmd())
	group("Other:", newVersionCmd())
	root.SetHelpCommandGroupID("Other:")
	root.SetCompletionCommandGroupID("Other:")
	root.AddCommand(packagingCommands()...)
	return root
}

// chooseCommand runs where none of the commands below cmd was named: without a
// word it shows them.
func chooseCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return runtimeError(cmd.Help())
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q (did you mean %q?)", args[0], near[0])
	}
	return fmt.Errorf("unknown command %q; %s --help shows those that there are", args[0], cmd.CommandPath())
}

// exactly refuses another number of arguments, and says which one is missing by its
// name in the command's usage.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		usage := cmd.CommandPath() + strings.TrimPrefix(cmd.Use, cmd.Name())
		switch {
		case len(args) > n:
			return fmt.Errorf("%q is more than the command takes: %s", args[n], usage)
		case len(args) < n:
			return fmt.Errorf("%s is missing: %s", strings.Fields(cmd.Use)[1+len(args)], usage)
		}
		return nil
	}
}

// fileByFlag refuses arguments of a command that takes its file with -c, and the one
// that it writes, if it does, with -o.
func fileByFlag(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if ext := filepath.Ext(args[0]); cmd.Flags().ShorthandLookup("o") != nil && ext != ".yaml" && ext != ".yml" {
		return fmt.Errorf("%s takes the file that it writes with -o: %s -o %s", cmd.Name(), cmd.CommandPath(), args[0])
	}
	return fmt.Errorf("%s takes its configuration with -c: %s -c %s", cmd.Name(), cmd.CommandPath(), args[0])
}
