package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tidemark/configs"
	"tidemark/gateway"
)

func newStatusCmd() *cobra.Command {
	var file, socket string
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Ask the running gateway whether its data can be trusted",
		Args:  fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if socket == "" {
				cfg, err := configs.Load(file)
				if err != nil {
					return &exitError{exitUsage, err}
				}
				socket = gateway.SocketPath(cfg)
			}
			for {
				if err := showStatus(cmd, socket, asJSON, watch); err != nil {
					return runtimeError(err)
				}
				if !watch {
					return nil
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(time.Second):
				}
			}
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "/etc/tidemark/tidemark.yaml", "configuration `FILE` of the gateway")
	cmd.Flags().StringVar(&socket, "socket", "", "the gateway's socket, instead of the one that its configuration says")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again every second")
	return cmd
}

func showStatus(cmd *cobra.Command, socket string, asJSON, watch bool) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
	defer cancel()
	st, err := gateway.AskStatus(ctx, socket)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), st)
	}
	if watch {
		clearScreen(cmd.OutOrStdout())
	}
	return printStatus(cmd.OutOrStdout(), st)
}
