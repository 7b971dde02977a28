package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tidemark/configs"
	"tidemark/gateway"
)

// samplePayload bounds what is read of a payload: MQTT carries no more.
const samplePayload = 256 << 20

// sample shows what a payload becomes.
func sample(cmd *cobra.Command, file, topic, name string, asJSON bool) error {
	cfg, err := configs.Load(file)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if topic == "" || strings.ContainsAny(topic, "+#") {
		return fmt.Errorf("--sample %q is no topic that something is published to: write it without wildcards", topic)
	}
	payload, err := readPayload(name, cmd.InOrStdin())
	if err != nil {
		return err
	}
	s, err := gateway.SamplePayload(cfg, topic, payload)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if err := printAs(cmd, asJSON, s, printSample); err != nil {
		return err
	}
	refused, quarantined := s.Refused()
	switch {
	case len(s.Inputs) == 0:
		return runtimeError(fmt.Errorf("no subscription is for topic %s: look at inputs.*.mqtt.subscribe.*.topic", topic))
	case refused+quarantined > 0:
		return runtimeError(fmt.Errorf("%d refused, %d would be quarantined", refused, quarantined))
	}
	return nil
}

func readPayload(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read the payload: %w", err)
		}
		defer f.Close()
		in = f
	}
	payload, err := io.ReadAll(io.LimitReader(in, samplePayload+1))
	switch {
	case err != nil:
		return nil, runtimeError(fmt.Errorf("cannot read the payload: %w", err))
	case len(payload) > samplePayload:
		return nil, fmt.Errorf("%s is longer than an MQTT message can be", name)
	}
	return payload, nil
}
