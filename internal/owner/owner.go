// Package owner leaves what root makes to the account in whose directory it is made.
//
// An administrator runs commands as root beside a service that runs as another
// account: a certificate that was trusted, or a store that was compacted, must not
// then be closed to the service. For any other user, who can give nothing away,
// these functions are those of package os.
package owner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// MkdirAll makes a directory and those above it that are missing, each with the
// owner of the one above.
func MkdirAll(dir string, mode fs.FileMode) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if above := filepath.Dir(dir); above != dir {
		if err := MkdirAll(above, mode); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, mode)
	if errors.Is(err, fs.ErrExist) {
		if info, serr := os.Stat(dir); serr == nil && info.IsDir() {
			return nil // another process was faster
		}
	}
	if err != nil {
		return err
	}
	return give(dir, os.Lchown)
}

// CreateTemp is os.CreateTemp; the file has the owner of its directory.
func CreateTemp(dir, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	// By the descriptor: whose directory it is may exchange what has the name.
	if err := give(f.Name(), func(_ string, uid, gid int) error { return f.Chown(uid, gid) }); err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

// WriteFile writes a file at once or not at all. A file that had the name before stays
// until the new one takes its place.
func WriteFile(file string, data []byte, mode fs.FileMode) error {
	dir := filepath.Dir(file)
	f, err := CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already if all went well
	_, err = f.Write(data)
	err = cmp.Or(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return err
	}
	// A power cut keeps the order in which several are written.
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return cmp.Or(d.Sync(), d.Close())
}

// give has chown give a new file to the owner of its directory.
func give(path string, chown func(path string, uid, gid int) error) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	if !ok || of.Uid == 0 {
		return nil
	}
	if err := chown(path, int(of.Uid), int(of.Gid)); err != nil {
		return fmt.Errorf("cannot give %s to the owner of its directory: %w", path, err)
	}
	return nil
}
