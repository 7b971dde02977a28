package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tidemark/gateway"
)

func newTagsCmd() *cobra.Command {
	var ask gatewayFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tags",
		Short: "List what the running gateway reads, the worst first",
		Long: `List what the running gateway reads: where each sensor comes from, its last
reading and how far it can be trusted. What is configured and silent is listed too.
The worst come first.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			socket, err := ask.path()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 10*time.Second)
			defer cancel()
			tags, err := gateway.AskTags(ctx, socket)
			if err != nil {
				return answered(cmd.Context(), socket, err)
			}
			return printAs(cmd, asJSON, tags, printTags)
		},
	}
	ask.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
