package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tidemark/buffer"
	"tidemark/clock"
	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/internal/archive"
)

func newBackupCmd() *cobra.Command {
	var file, out string
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Save store, configuration, certificates and tag lists in one file",
		Long: `Save the store as it is at one moment, the configuration, and every file that
it names: certificates, tag lists, secrets. The gateway may run meanwhile. Only its
owner may read the file, since secrets are in it.

tidemark restore brings it back, here or on another machine.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := configs.Load(file)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			now := clock.HostTime().UTC()
			if out == "" {
				out = fmt.Sprintf("tidemark-%s-%s.tar.gz", cfg.Gateway.ID, now.Format("20060102T150405Z"))
			}
			m := archive.Manifest{Gateway: cfg.Gateway.ID, Product: version, Created: now.Format(time.RFC3339),
				Config: configs.Absolute(file), Store: configs.Absolute(cfg.Store.Path.String()), Files: cfg.NamedFiles()}
			err = backup(cmd, m, out)
			switch {
			case cmd.Context().Err() != nil && err != nil:
				return errInterrupted
			case err != nil:
				return runtimeError(fmt.Errorf("nothing was saved: %w", err))
			}
			return runtimeError(printBackup(cmd.OutOrStdout(), out, &m))
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", configs.ServiceFile, "configuration `FILE` of the gateway")
	cmd.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write, instead of tidemark-GATEWAY-TIME.tar.gz here")
	return cmd
}

// backup writes the archive, whole or not at all.
func backup(cmd *cobra.Command, m archive.Manifest, out string) error {
	f, err := os.CreateTemp(filepath.Dir(out), ".tidemark-backup-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	a, err := archive.NewWriter(f, m)
	if err != nil {
		return err
	}
	bar := newProgressBar(cmd)
	defer bar.end()
	begin := func(size int64) (io.Writer, error) {
		w, err := a.Store(size)
		return io.MultiWriter(w, &byteMeter{progress: bar.until(cmd.Context()), step: "saving", total: size}), err
	}
	if err := backupStore(cmd.Context(), m.Store, begin); err != nil {
		return err
	}
	if err := errors.Join(a.Files(), a.Close(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), out)
}

// backupStore copies the store of the running gateway, or the one at rest.
func backupStore(ctx context.Context, store string, begin func(size int64) (io.Writer, error)) error {
	body, size, err := gateway.AskBackup(ctx, configs.Path(store).Socket())
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return buffer.CopyFile(store, begin)
	case err != nil:
		return err
	}
	defer body.Close()
	w, err := begin(size)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(w, body, size); err != nil {
		return fmt.Errorf("the gateway broke off the copy of its store: %w", err)
	}
	return nil
}
