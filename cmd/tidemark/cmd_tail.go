package main

import (
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"tidemark/gateway"
)

func newTailCmd() *cobra.Command {
	var ask gatewayFlags
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "tail [ASSET/SENSOR]",
		Short: "Show readings as the running gateway commits them",
		Long: `Show readings as the running gateway commits them: what they say, both their
times, and what became of them. A reader that is too slow misses some, and is told
how many; the gateway waits for nobody. Interrupt it to end.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var name sensorName
			var err error
			if len(args) == 1 {
				if name, err = parseSensorName(args[0]); err != nil {
					return err
				}
			}
			socket, err := ask.path()
			if err != nil {
				return err
			}
			if name.sensor != "" {
				tags, err := gateway.AskTags(cmd.Context(), socket)
				if err != nil {
					return answered(cmd.Context(), socket, err)
				}
				if err := name.among(tags.Tags); err != nil {
					return err
				}
			}
			err = tail(cmd, socket, name, limit, asJSON)
			if cmd.Context().Err() != nil {
				return nil // to be interrupted is its end
			}
			return answered(cmd.Context(), socket, err)
		},
	}
	ask.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	cmd.Flags().IntVarP(&limit, "lines", "n", 0, "end after this many readings; 0: go on")
	return cmd
}

var errEnough = errors.New("enough")

// tail prints readings as they come.
func tail(cmd *cobra.Command, socket string, name sensorName, limit int, asJSON bool) error {
	v := tailView{w: cmd.OutOrStdout()}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	n := 0
	err := gateway.AskTail(cmd.Context(), socket, name.asset, name.sensor, func(t gateway.Tailed) error {
		var err error
		if asJSON {
			err = enc.Encode(t)
		} else {
			err = v.show(&t)
		}
		if err != nil {
			return runtimeError(err)
		}
		if t.Reading != nil {
			n++
		}
		if n == limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
