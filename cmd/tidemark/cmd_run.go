package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"tidemark/configs"
	"tidemark/gateway"
)

func newRunCmd() *cobra.Command {
	var file string
	var strict bool
	cmd := &cobra.Command{
		Use:   "run -c FILE",
		Short: "Run the gateway as a service",
		Long: `Run the gateway until it is told to stop by SIGTERM or SIGINT.

Under systemd (Type=notify) it says READY once its store is recovered and its
readers have started, and logs JSON; on a terminal it logs for people.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := newLogger(cmd.ErrOrStderr())
			cfg, err := configs.Load(file)
			var faults configs.Faults
			switch {
			case err == nil:
			case cfg != nil && !strict && errors.As(err, &faults):
				// Only features are at fault: collection goes on without them.
				for _, f := range faults {
					log.Error().Msg("left out: " + f.String())
				}
			default:
				return &exitError{exitUsage, err}
			}
			for _, n := range cfg.Notices {
				log.Warn().Msg(n.String())
			}
			boundMemory()
			g, err := gateway.New(cfg, gateway.Options{Log: log, Version: version, Notify: true})
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if err := g.Run(cmd.Context()); err != nil {
				if gateway.IsStorage(err) {
					return &exitError{exitStorage, explainStorage(cfg, err)}
				}
				return runtimeError(err)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "/etc/tidemark/tidemark.yaml", "configuration `FILE`")
	cmd.Flags().BoolVar(&strict, "strict", false, "refuse a configuration with any fault, instead of leaving out the features at fault")
	return cmd
}

// boundMemory has the collector run when half as much again as is in use was
// allocated, rather than as much again. At full load, of which a small machine sees
// little, it takes a quarter more processor time, and 6 MB of 52 less memory.
// Whoever sets GOGC or GOMEMLIMIT knows better.
func boundMemory() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(50)
	}
}

// explainStorage says in plain words what a first run most often lacks.
func explainStorage(cfg *configs.Config, err error) error {
	dir := filepath.Dir(cfg.Store.Path.String())
	if _, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
		return fmt.Errorf("the store's directory %s does not exist; create it, or name another store.path", dir)
	}
	return err
}
