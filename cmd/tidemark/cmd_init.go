package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tidemark/configs"
	"tidemark/internal/owner"
)

func newInitCmd() *cobra.Command { return initCmd(os.DirFS("/"), os.Hostname) }

// initCmd takes the host's files and name as they are found.
func initCmd(root fs.FS, hostname func() (string, error)) *cobra.Command {
	var out, endpoint string
	var reference bool
	var server serverFlags
	cmd := &cobra.Command{
		Use:   "init [-o FILE]",
		Short: "Write an annotated configuration to begin with",
		Long: `Write an annotated configuration to begin with. The NTP servers in it are those that
this host's chrony, systemd-timesyncd or ntp was told of; public ones are never
proposed. With --from-browse the input is one that reads an OPC UA server, found by
looking at it. A file that exists is not overwritten, unless it is the package's as it
came.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			input, err := browsedInput(cmd.Context(), &server, endpoint)
			if err != nil {
				return err
			}
			text, err := startText(root, hostname, reference, input)
			if err != nil {
				return runtimeError(err)
			}
			if out == "" || out == "-" {
				_, err := cmd.OutOrStdout().Write(text)
				return runtimeError(err)
			}
			if err := createFile(out, text); err != nil {
				return runtimeError(err)
			}
			printWritten(cmd.ErrOrStderr(), out)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the `FILE` to write; else standard output")
	cmd.Flags().BoolVar(&reference, "reference", false, "write every key with its default and meaning instead")
	cmd.Flags().StringVar(&endpoint, "from-browse", "", "an OPC UA `ENDPOINT` to read, as tidemark browse proposes")
	server.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("reference", "from-browse")
	return cmd
}

// browsedInput is the input that a server proposes; nil without one.
func browsedInput(ctx context.Context, f *serverFlags, endpoint string) (*configs.StartOPCUA, error) {
	if endpoint == "" {
		return nil, nil
	}
	cfg, err := f.config(endpoint)
	if err != nil {
		return nil, err
	}
	view, err := look(ctx, cfg, f, browseDepth)
	if err != nil {
		return nil, runtimeError(err)
	}
	return &view.Rule, nil
}

func startText(root fs.FS, hostname func() (string, error), reference bool, input *configs.StartOPCUA) ([]byte, error) {
	if reference {
		return configs.Files.ReadFile("tidemark.yaml")
	}
	host, err := hostname()
	if err != nil || host == "" {
		host = "gateway-1"
	}
	// The directory is there where a package made it.
	_, err = fs.Stat(root, strings.TrimPrefix(configs.ServiceDir, "/"))
	return configs.Start(host, configs.HostServers(root), err == nil, input)
}

// createFile writes a file that was not there, or that nobody has edited since the
// package brought it.
func createFile(path string, data []byte) error {
	reference, err := configs.Files.ReadFile("tidemark.yaml")
	if err != nil {
		return err
	}
	now, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(now, reference) {
		return owner.WriteFile(path, data, 0o644)
	}
	return fmt.Errorf("%s exists and is not as the package brought it; remove it or name another file", path)
}
