package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"tidemark/buffer"
	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/history"
	"tidemark/windowing"
)

func newCheckCmd() *cobra.Command {
	var file, topic string
	var asJSON, online bool
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "check -c FILE [--sample TOPIC PAYLOAD-FILE]",
		Short: "Validate a configuration and what it names",
		Long: `Validate a configuration and what it names on this host: certificates, secrets,
tag files. Where the gateway runs, or its store can be read, a definition that changed
without a new version is a fault too: the gateway would not run it. Every fault is
printed on a line of its own as file:line:column: reason. The exit code is 2 if there
is one.

With --online it also connects: to the NTP servers, the inputs and the uplinks'
brokers. It reads the inputs for a while, measures the clock of each source, and
prints the policy line that fits. It may be used beside the running gateway: it
publishes no record and takes nothing away. The exit code is 1 if something that is
named cannot be used.

With --sample it shows what a payload becomes that is published to the topic: each
reading with the verdict that it would get now, or the reason for which it is refused.
The payload is read from the file, or from standard input for -. The exit code is 1 if
something of it is refused or would be quarantined.`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch sampled := cmd.Flags().Changed("sample"); {
			case sampled && len(args) != 1:
				return errors.New("--sample TOPIC takes one file with the payload, or - for standard input")
			case sampled:
				return nil
			}
			return fileByFlag(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("sample") {
				return sample(cmd, file, topic, args[0], asJSON)
			}
			return runCheck(cmd, file, online, length, asJSON)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", configs.ServiceFile, "configuration `FILE`")
	cmd.Flags().StringVar(&topic, "sample", "", "show what a payload becomes that is published to `TOPIC`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&online, "online", false, "connect to everything that the file names, and measure each clock")
	cmd.Flags().DurationVar(&length, "for", 20*time.Second, "how long --online listens")
	return cmd
}

// runCheck checks a file and, online, connects to what it names and listens for a
// while.
func runCheck(cmd *cobra.Command, file string, online bool, listen time.Duration, asJSON bool) error {
	r, cfg, err := check(file)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if cfg != nil {
		r.compare(cmd.Context(), cfg)
	}
	if online && r.OK {
		if r.Online, err = gateway.Probe(cmd.Context(), cfg, listen, zerolog.Nop()); err != nil {
			return runtimeError(err)
		}
	}
	if err := printAs(cmd, asJSON, r, printCheck); err != nil {
		return err
	}
	switch {
	case len(r.Faults) > 0:
		return &exitError{exitUsage, fmt.Errorf("%s has %s", file, count(len(r.Faults), "fault"))}
	case r.Online != nil && !r.Online.OK:
		return runtimeError(errors.New("not everything that is named can be used"))
	}
	return nil
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
	Online   *gateway.Probed  `json:"online,omitempty"`
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
func check(file string) (*checkReport, *configs.Config, error) {
	r := &checkReport{File: file, Features: []checkedFeature{}, Disabled: []string{}, Faults: configs.Faults{}, Notices: []configs.Notice{}}
	cfg, err := configs.Load(file)
	if err != nil && !errors.As(err, &r.Faults) {
		return nil, nil, err
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
	return r, cfg, nil
}

// compare looks for what the gateway that runs, or its store at rest, would have
// against the file: a definition that changed without a new version, a store that is
// none. Before there is a store there is nothing to compare.
func (r *checkReport) compare(ctx context.Context, cfg *configs.Config) {
	refused, err := refusals(ctx, cfg)
	for _, x := range refused {
		i := slices.IndexFunc(cfg.Features, func(f configs.Feature) bool { return f.Name == x.Feature.Name })
		r.Faults = append(r.Faults, cfg.FaultOfVersion(i, x.Reason))
		r.Disabled = append(r.Disabled, x.Feature.Name)
	}
	var foreign *buffer.ForeignError
	switch {
	case errors.As(err, &foreign):
		r.Faults = append(r.Faults, cfg.FaultOfStore(err.Error()))
	case err != nil:
		r.Notices = append(r.Notices, configs.Notice{File: r.File, Text: "whether a definition has changed without a new version could not be seen: " + err.Error()})
	}
	r.OK = len(r.Faults) == 0
}

// refusals asks the gateway of the file, or its store at rest.
func refusals(ctx context.Context, cfg *configs.Config) ([]windowing.Fault, error) {
	engine, err := gateway.EngineConfig(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	store := cfg.Store.Path.String()
	socket := cfg.Store.Path.Socket()
	refused, err := history.Refusals(ctx, gateway.AskJournal(socket), engine.Features)
	if err == nil || !nobodyListens(err) {
		if err != nil {
			err = explainSilence(socket, err)
		}
		return refused, err
	}
	if _, err := os.Stat(store); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	j, err := gateway.OpenJournal(store)
	if err != nil {
		return nil, err
	}
	refused, err = history.Refusals(ctx, j, engine.Features)
	return refused, errors.Join(err, j.Close())
}
