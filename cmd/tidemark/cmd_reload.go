package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/gateway"
)

func newReloadCmd() *cobra.Command {
	var of gatewayFlags
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have the running gateway apply its changed configuration file",
		Long: `Have the running gateway read its configuration file again. It ends when the
file is in force; no reading is lost meanwhile. A file with a fault changes nothing:
every fault is printed, and the exit code is 2.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			socket, err := of.path()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			return reload(ctx, cmd, socket)
		},
	}
	of.add(cmd)
	return cmd
}

func reload(ctx context.Context, cmd *cobra.Command, socket string) error {
	before, err := gateway.AskReload(ctx, socket)
	var refused *gateway.Refusal
	switch {
	case errors.As(err, &refused):
		return &exitError{exitUsage, fmt.Errorf("the file is at fault and changed nothing:\n%w", err)}
	case err != nil:
		return answered(ctx, socket, err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := gateway.AskStatus(ctx, socket)
		switch {
		case err == nil && st.Configuration.Loads > before && st.Configuration.Rejected != nil:
			return runtimeError(fmt.Errorf("the gateway cannot run with the file and went back to the one before: %s", st.Configuration.Rejected.Reason))
		case err == nil && st.Configuration.Loads > before:
			return runtimeError(printReloaded(cmd.OutOrStdout(), st))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return runtimeError(fmt.Errorf("the gateway does not come back with the changed file; look at its log: %w", ctx.Err()))
		}
	}
}

// printReloaded says what is in force, and which features are not.
func printReloaded(w io.Writer, st *gateway.Status) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s is in force (%s)\n", st.Configuration.File, st.Configuration.Hash)
	for _, f := range st.Because {
		if strings.HasPrefix(f.Name, "feature ") {
			fmt.Fprintf(b, "! %s does not run: %s\n", f.Name, printable(f.Detail))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
