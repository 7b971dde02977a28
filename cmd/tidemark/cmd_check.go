package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tidemark/configs"
)

func newCheckCmd() *cobra.Command {
	var file, topic string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check -c FILE [--sample TOPIC PAYLOAD-FILE]",
		Short: "Validate a configuration and what it names",
		Long: `Validate a configuration and what it names on this host: certificates, secrets,
tag files. Every fault is printed on a line of its own as file:line:column: reason.
The exit code is 2 if there is one.

With --sample it shows what a payload becomes that is published to the topic: each
reading with the verdict that it would get now, or the reason for which it is refused.
The payload is read from the file, or from standard input for -. The exit code is 1 if
something of it is refused or would be quarantined.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("sample") {
				return cobra.ExactArgs(1)(cmd, args)
			}
			return fileByFlag(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("sample") {
				return sample(cmd, file, topic, args[0], asJSON)
			}
			r, err := check(file)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), r)
			} else {
				err = printCheck(cmd.OutOrStdout(), r)
			}
			if err != nil {
				return runtimeError(err)
			}
			if n := len(r.Faults); n > 0 {
				return &exitError{exitUsage, fmt.Errorf("%s has %s", file, count(n, "fault"))}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "/etc/tidemark/tidemark.yaml", "configuration `FILE`")
	cmd.Flags().StringVar(&topic, "sample", "", "show what a payload becomes that is published to `TOPIC`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// checkReport is what `check --json` prints.
type checkReport struct {
	File     string           `json:"file"`
	OK       bool             `json:"ok"`
	Inputs   int              `json:"inputs"`
	Uplinks  int              `json:"uplinks"`
	Features []checkedFeature `json:"features"`
	Disabled []string         `json:"disabled_features"` // those that run would leave out
	Faults   configs.Faults   `json:"faults"`
	Notices  []configs.Notice `json:"notices"`
}

// checkedFeature is a feature with the hashes that its records carry.
type checkedFeature struct {
	Name       string `json:"name"`
	Version    int    `json:"version"`
	Definition string `json:"definition"`
	Tuning     string `json:"tuning"`
}

// check loads the file and looks at what it names. An error means that there was
// nothing to check.
func check(file string) (*checkReport, error) {
	r := &checkReport{File: file, Features: []checkedFeature{}, Disabled: []string{}, Faults: configs.Faults{}, Notices: []configs.Notice{}}
	cfg, err := configs.Load(file)
	if err != nil && !errors.As(err, &r.Faults) {
		return nil, err
	}
	if cfg != nil {
		faults, notices := cfg.CheckFiles()
		r.Faults = append(r.Faults, faults...)
		r.Notices = append(append(r.Notices, cfg.Notices...), notices...)
		r.Inputs, r.Uplinks = len(cfg.Inputs), len(cfg.Uplinks)
		for _, f := range cfg.Features {
			r.Features = append(r.Features, checkedFeature{f.Name, f.Version,
				fmt.Sprintf("%08x", f.Definition()), fmt.Sprintf("%08x", f.Tuning())})
		}
		for _, d := range cfg.Disabled {
			r.Disabled = append(r.Disabled, d.Name)
		}
	}
	r.OK = len(r.Faults) == 0
	return r, nil
}
