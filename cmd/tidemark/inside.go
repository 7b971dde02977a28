package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/history"
	"tidemark/reading"
)

// gatewayFlags say which running gateway a command asks.
type gatewayFlags struct{ file, socket string }

func (f *gatewayFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "config", "c", configs.ServiceFile, "configuration `FILE` of the gateway")
	cmd.Flags().StringVar(&f.socket, "socket", "", "the gateway's socket, instead of the one that its configuration says")
}

// path is where the gateway answers. A file with faults does not hide it: it is
// then that one asks.
func (f *gatewayFlags) path() (string, error) {
	if f.socket != "" {
		return f.socket, nil
	}
	if _, err := configs.Load(f.file); err != nil && !errors.As(err, new(configs.Faults)) {
		return "", &exitError{exitUsage, err}
	}
	return configs.StoreOf(f.file).Socket(), nil
}

// answered gives what came of a question to the gateway its exit code.
func answered(ctx context.Context, socket string, err error) error {
	var e *exitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errInterrupted
	case errors.As(err, &e):
		return err
	}
	return &exitError{exitRuntime, explainSilence(socket, err)}
}

// parseMoment reads a time: RFC 3339, or whole milliseconds since 1970.
func parseMoment(s string) (int64, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UnixMilli(), nil
	}
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no time: write RFC 3339, as in 2026-01-01T12:00:00Z, or milliseconds since 1970", s)
	}
	return ms, nil
}

// oneOf refuses a flag's value that is not among those that there are, and offers the
// nearest.
func oneOf(flag, value string, valid []string) error {
	if slices.Contains(valid, value) {
		return nil
	}
	if near := configs.Nearest(value, valid); near != "" {
		return fmt.Errorf("%s %s: there is no such one; did you mean %s?", flag, value, near)
	}
	return fmt.Errorf("%s %s: there is no such one; there are %s", flag, value, strings.Join(valid, ", "))
}

// sensorName is an argument ASSET/SENSOR.
type sensorName struct{ asset, sensor string }

func parseSensorName(arg string) (sensorName, error) {
	asset, sensor, ok := history.ParseName(arg)
	if !ok {
		return sensorName{}, fmt.Errorf("%q names no sensor: write ASSET/SENSOR, as in press-07/bearing-temp; where there is no asset, _/SENSOR", arg)
	}
	return sensorName{asset, sensor}, nil
}

// parseSensors reads arguments ASSET/SENSOR.
func parseSensors(args []string) (list []history.Sensor, err error) {
	for _, arg := range args {
		n, err := parseSensorName(arg)
		if err != nil {
			return nil, err
		}
		list = append(list, history.Sensor{Asset: n.asset, Sensor: n.sensor})
	}
	return list, nil
}

func (n sensorName) String() string { return history.Name(n.asset, n.sensor) }

// among refuses a name that none of the tags has, and offers the nearest.
func (n sensorName) among(tags []gateway.Tag) error {
	var names []string
	for i := range tags {
		t := &tags[i]
		if (t.Asset == reading.AnyName || t.Asset == n.asset) && (t.Sensor == reading.AnyName || t.Sensor == n.sensor) {
			return nil
		}
		if t.Asset != reading.AnyName && t.Sensor != reading.AnyName {
			names = append(names, history.Name(t.Asset, t.Sensor))
		}
	}
	return unknownSensor(n, names)
}

func unknownSensor(n sensorName, names []string) error {
	slices.Sort(names)
	names = slices.Compact(names)
	if near := configs.Nearest(n.String(), names); near != "" {
		return fmt.Errorf("there is no sensor %s; did you mean %s?", n, near)
	}
	if len(names) == 0 {
		return fmt.Errorf("there is no sensor %s: nothing has spoken yet", n)
	}
	return fmt.Errorf("there is no sensor %s among %s; tidemark tags lists them", n, count(len(names), "sensor"))
}
