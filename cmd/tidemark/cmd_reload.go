package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/configs"
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
			r, err := beginReload(ctx, socket)
			var refused *gateway.Refusal
			switch {
			case errors.As(err, &refused):
				return &exitError{exitUsage, fmt.Errorf("the file is at fault and changed nothing:\n%w", err)}
			case nobodyListens(err):
				return of.unheard(socket)
			case err != nil:
				return answered(cmd.Context(), socket, err)
			}
			return endReload(ctx, cmd, r, slices.Compact([]string{socket, r.Socket}))
		},
	}
	of.add(cmd)
	return cmd
}

// restarting is how long nobody may listen while the gateway's parts start anew.
const restarting = 2 * time.Second

// beginReload asks for the reload, if need be after another one.
func beginReload(ctx context.Context, socket string) (*gateway.Reloading, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.After(restarting)
	for {
		r, err := gateway.AskReload(ctx, socket)
		if !nobodyListens(err) {
			return r, err
		}
		select {
		case <-tick.C:
		case <-end:
			return r, err
		case <-ctx.Done():
			return r, err
		}
	}
}

// unheard says why nobody listens where the file says. The file may be what is
// wrong: without a store in it, or with another one than the gateway has.
func (f *gatewayFlags) unheard(socket string) error {
	if f.socket == "" {
		if cfg, err := configs.Load(f.file); cfg == nil && err != nil {
			return &exitError{exitUsage, fmt.Errorf("the file is at fault and changed nothing; nor does anybody listen at %s:\n%w", socket, err)}
		}
	}
	return runtimeError(fmt.Errorf("the gateway is not running: nobody listens at %s; if store.path is new in the file, name the socket beside the store of before: tidemark reload --socket FORMER.sock", socket))
}

// endReload waits until the file is in force. The gateway answers at one of the
// sockets then: with another store, at another one.
func endReload(ctx context.Context, cmd *cobra.Command, r *gateway.Reloading, sockets []string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, socket := range sockets {
			st, err := gateway.AskStatus(ctx, socket)
			switch {
			case err == nil && st.Configuration.Loads > r.Loads && st.Configuration.Rejected != nil:
				return runtimeError(fmt.Errorf("the gateway cannot run with the file and went back to the one before: %s", st.Configuration.Rejected.Reason))
			case err == nil && st.Configuration.Loads > r.Loads:
				return runtimeError(printReloaded(cmd.OutOrStdout(), st))
			}
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
