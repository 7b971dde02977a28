package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tidemark/gateway"
)

func newStatusCmd() *cobra.Command {
	var of gatewayFlags
	var asJSON, all, watch bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Ask the running gateway whether its data can be trusted",
		Args:  fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			socket, err := of.path()
			if err != nil {
				return err
			}
			ask := func(ctx context.Context) error { return showStatus(ctx, cmd, socket, asJSON, all, watch) }
			if watch {
				return watchStatus(cmd, ask, asJSON, time.Second)
			}
			return runtimeError(ask(cmd.Context()))
		},
	}
	of.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON")
	cmd.Flags().BoolVar(&all, "all", false, "show everything, whether it fits a screen or not")
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again every second")
	return cmd
}

// unanswered is why there is no status to show.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// watchStatus asks again and again until the command is interrupted. A gateway that
// is away for a while is waited for.
func watchStatus(cmd *cobra.Command, ask func(context.Context) error, asJSON bool, every time.Duration) error {
	for {
		err := ask(cmd.Context())
		var away unanswered
		switch {
		case cmd.Context().Err() != nil:
			return nil
		case errors.As(err, &away) && !errors.Is(err, fs.ErrPermission):
			if asJSON {
				err = printNoAnswer(cmd.ErrOrStderr(), err)
			} else {
				clearScreen(cmd.OutOrStdout())
				err = printNoAnswer(cmd.OutOrStdout(), err)
			}
		}
		if err != nil {
			return runtimeError(err)
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(every):
		}
	}
}

func showStatus(ctx context.Context, cmd *cobra.Command, socket string, asJSON, all, watch bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	st, err := gateway.AskStatus(ctx, socket)
	if err != nil {
		return unanswered{explainSilence(socket, err)}
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), st)
	}
	if !watch {
		return printStatus(cmd.OutOrStdout(), st, all)
	}
	var b strings.Builder
	if err := printStatus(&b, st, all); err != nil {
		return err
	}
	clearScreen(cmd.OutOrStdout())
	_, err = io.WriteString(cmd.OutOrStdout(), onScreen(b.String(), cmd.OutOrStdout()))
	return err
}

// nobodyListens reports whether err is of a socket that is not there or was left
// behind.
func nobodyListens(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
}

// explainSilence says why nobody answered, where the system tells.
func explainSilence(socket string, err error) error {
	switch {
	case nobodyListens(err):
		return fmt.Errorf("the gateway is not running: nobody listens at %s", socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: you may not open %s; ask as the gateway's user, its group or root", fs.ErrPermission, socket)
	}
	return err
}
