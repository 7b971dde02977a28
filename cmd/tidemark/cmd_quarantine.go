package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/gateway"
	"tidemark/reading"
)

func newQuarantineCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quarantine",
		Short: "See which readings are kept out for their times, and have them judged again",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("quarantine needs to be told what to do: list or release")
			}
			return chooseCommand(cmd, args)
		},
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newQuarantineListCmd(), newQuarantineReleaseCmd())
	return cmd
}

// selectionFlags choose among quarantined readings.
type selectionFlags struct{ gateway.Selection }

func (f *selectionFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Input, "input", "", "only those of this `INPUT`")
	cmd.Flags().StringVar(&f.Device, "device", "", "only those of this `DEVICE`, or asset where an input has no devices")
	cmd.Flags().StringVar(&f.Reason, "reason", "", "only those for this `REASON`, such as TOO_OLD")
}

// check refuses a reason that there is not.
func (f *selectionFlags) check() error {
	f.Reason = strings.ToUpper(f.Reason)
	if f.Reason == "" {
		return nil
	}
	return oneOf("--reason", f.Reason, reading.QuarantineReasons())
}

func newQuarantineListCmd() *cobra.Command {
	var ask gatewayFlags
	var sel selectionFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what is in quarantine by input, device and reason, and the next step",
		Args:  fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := sel.check(); err != nil {
				return err
			}
			socket, err := ask.path()
			if err != nil {
				return err
			}
			q, err := gateway.AskQuarantine(cmd.Context(), socket, sel.Selection)
			if err != nil {
				return answered(cmd.Context(), socket, err)
			}
			return printAs(cmd, asJSON, q, printQuarantine)
		},
	}
	ask.add(cmd)
	sel.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func newQuarantineReleaseCmd() *cobra.Command {
	var ask gatewayFlags
	var sel selectionFlags
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Have quarantined readings judged again, as historical",
		Long: `Have quarantined readings judged again, as historical: by the configuration of now
and by what is known of the clocks by now. They are never too old and move no
watermark. What is right then counts in its windows, or is late for them; what is
still wrong stays in quarantine. Waits for the end.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := sel.check(); err != nil {
				return err
			}
			if all == (sel.Selection != gateway.Selection{}) {
				return errors.New("say which readings: --input, --device, --reason, or --all")
			}
			socket, err := ask.path()
			if err != nil {
				return err
			}
			r, err := release(cmd.Context(), socket, sel.Selection)
			if err != nil {
				return answered(cmd.Context(), socket, err)
			}
			return printAs(cmd, asJSON, r, printReleased)
		},
	}
	ask.add(cmd)
	sel.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "everything that is in quarantine")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// release begins a release and waits for its end. It goes on in the gateway if the
// command is interrupted.
func release(ctx context.Context, socket string, sel gateway.Selection) (*gateway.Release, error) {
	q, err := gateway.AskRelease(ctx, socket, sel)
	for err == nil && q.Releasing {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		q, err = gateway.AskReleased(ctx, socket)
	}
	if err != nil {
		return nil, err
	}
	return q.Release, nil
}
