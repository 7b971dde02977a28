package main

import (
	"github.com/spf13/cobra"

	"tidemark/configs"
	"tidemark/gateway"
)

func newRunCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "run -c FILE",
		Short: "Run the gateway as a service",
		Long: `Run the gateway until it is told to stop by SIGTERM or SIGINT.

Under systemd (Type=notify) it says READY once its store is recovered and its
readers have started, and logs JSON; on a terminal it logs for people.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := configs.Load(file)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			log := newLogger(cmd.ErrOrStderr())
			for _, n := range cfg.Notices {
				log.Warn().Msg(n.String())
			}
			g, err := gateway.New(cfg, gateway.Options{Log: log, Version: version, Notify: true})
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if err := g.Run(cmd.Context()); err != nil {
				if gateway.IsStorage(err) {
					return &exitError{exitStorage, err}
				}
				return &exitError{exitRuntime, err}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "/etc/tidemark/tidemark.yaml", "configuration `FILE`")
	return cmd
}
