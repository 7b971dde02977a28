package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tidemark/buffer"
	"tidemark/clock"
	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/internal/archive"
)

func newRestoreCmd() *cobra.Command {
	var overwrite bool
	var root string
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Bring back what tidemark backup saved",
		Long: `Bring back store, configuration, certificates and tag lists to where they were.
The gateway must not run. Nothing that is there is overwritten without --overwrite,
and a store never: it is renamed.

The restored store begins a new generation, since revisions may have been counted
after the backup. Consumers order by (generation, revision) and notice nothing.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			now := clock.HostTime()
			m, kept, err := restore(cmd, args[0], root, overwrite, now)
			var conflict *conflictError
			switch {
			case err != nil && cmd.Context().Err() != nil:
				return errInterrupted
			case errors.As(err, &conflict):
				return &exitError{exitUsage, err}
			case gateway.IsStorage(err):
				return &exitError{exitStorage, err}
			case err != nil:
				return runtimeError(fmt.Errorf("cannot restore %s: %w", args[0], err))
			}
			return runtimeError(printRestored(cmd.OutOrStdout(), m, filepath.Join(root, m.Config), kept))
		},
	}
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace files that are there, and put a store that is there aside")
	cmd.Flags().StringVar(&root, "root", "/", "`DIR` below which everything is put, as for another machine's file system")
	return cmd
}

// conflictError is what stands where the backup would go.
type conflictError struct{ paths []string }

func (e *conflictError) Error() string {
	s := "these are there already; --overwrite replaces them:"
	for _, p := range e.paths {
		s += "\n" + p
	}
	return s
}

// restore reads the backup twice: whole, to know that it is sound and that nothing
// is in its way, and then to put it back. kept is the name of the store that was
// there before.
func restore(cmd *cobra.Command, path, root string, overwrite bool, now time.Time) (m archive.Manifest, kept string, err error) {
	conflict := &conflictError{}
	bar := newProgressBar(cmd)
	defer bar.end()
	err = eachPlace(path, "checking", bar.until(cmd.Context()), func(a *archive.Reader, p *archive.Place) error {
		m = a.Manifest
		if _, err := os.Lstat(filepath.Join(root, p.Path)); err == nil {
			conflict.paths = append(conflict.paths, filepath.Join(root, p.Path))
		}
		_, err := io.Copy(io.Discard, p)
		return err
	})
	switch {
	case err != nil:
		return m, "", err
	case len(conflict.paths) > 0 && !overwrite:
		return m, "", conflict
	}
	store := filepath.Join(root, m.Store)
	if err := atRest(store); err != nil {
		return m, "", err
	}
	// No gateway may find a store that does not know that it was restored: it comes last,
	// under its name.
	begun := store + ".restoring"
	defer os.Remove(begun)
	// What is begun is not left half done.
	err = eachPlace(path, "restoring", bar.until(context.WithoutCancel(cmd.Context())), func(_ *archive.Reader, p *archive.Place) error {
		if p.IsStore {
			return p.Put(begun)
		}
		return p.Put(filepath.Join(root, p.Path))
	})
	if err != nil {
		return m, "", err
	}
	data, err := os.ReadFile(filepath.Join(root, m.Config))
	if err != nil {
		return m, "", err
	}
	cfg, err := configs.ParseFile(m.Config, data)
	if cfg == nil {
		return m, "", fmt.Errorf("the restored configuration is none for this version: %w", err)
	}
	if err := gateway.MarkRestored(cfg, begun, now.UnixMilli()); err != nil {
		return m, "", err
	}
	if kept, err = putAside(store, now); err != nil {
		return m, "", err
	}
	return m, kept, os.Rename(begun, store)
}

// eachPlace reads an archive to its end, unless progress ends it with an error.
func eachPlace(path, step string, progress func(string, int64, int64) error, fn func(*archive.Reader, *archive.Place) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	a, err := archive.NewReader(io.TeeReader(f, &byteMeter{progress: progress, step: step, total: info.Size()}))
	if err != nil {
		return err
	}
	for {
		p, err := a.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := fn(a, p); err != nil {
			return err
		}
	}
}

// atRest is an error if somebody uses the store. It may not be there.
func atRest(store string) error {
	if _, err := os.Lstat(store); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return buffer.Unused(store)
}

// putAside renames the store that is in the way, unless somebody uses it.
func putAside(store string, now time.Time) (kept string, err error) {
	if _, err := os.Lstat(store); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err := atRest(store); err != nil {
		return "", err
	}
	kept = store + ".before-restore-" + now.UTC().Format("20060102T150405Z")
	return kept, os.Rename(store, kept)
}
