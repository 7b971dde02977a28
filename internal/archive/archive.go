// Package archive is the file that `tidemark backup` writes: a gzipped tar of a
// manifest, the store, and the files that the configuration names.
//
// The manifest comes first, so that a restore can refuse before it touches
// anything. Files keep their absolute path, mode and owner. Whoever may read the
// archive may read the secrets in it.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"tidemark/internal/owner"
)

// Version is of the archive's form.
const Version = 1

// storeName is the store's name within the archive; files are files/N.
const storeName = "store.db"

// Manifest says what an archive holds and where it belongs.
type Manifest struct {
	Version int      `json:"version"`
	Gateway string   `json:"gateway"`
	Product string   `json:"product"` // version of tidemark
	Created string   `json:"created"` // RFC 3339
	Config  string   `json:"config"`  // path of the configuration, one of Files
	Store   string   `json:"store"`   // path of the store
	Files   []string `json:"files"`   // paths, in their order in the archive
}

// Writer writes an archive: Store once, then every file of the manifest, then
// Close.
type Writer struct {
	gz       *gzip.Writer
	tar      *tar.Writer
	manifest Manifest
}

// NewWriter begins an archive with its manifest.
func NewWriter(w io.Writer, m Manifest) (*Writer, error) {
	m.Version = Version
	a := &Writer{gz: gzip.NewWriter(w), manifest: m}
	a.tar = tar.NewWriter(a.gz)
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	err = a.tar.WriteHeader(&tar.Header{Name: "manifest.json", Mode: 0o600, Size: int64(len(data))})
	if err == nil {
		_, err = a.tar.Write(data)
	}
	return a, err
}

// Store begins the store's content, of which size bytes are written to what it
// returns. The owner is that of the store's directory.
func (a *Writer) Store(size int64) (io.Writer, error) {
	h := &tar.Header{Name: storeName, Mode: 0o600, Size: size}
	if info, err := os.Stat(filepath.Dir(a.manifest.Store)); err == nil {
		own(h, info)
	}
	return a.tar, a.tar.WriteHeader(h)
}

// Files writes every file of the manifest.
func (a *Writer) Files() error {
	for i, path := range a.manifest.Files {
		if err := a.file(fmt.Sprintf("files/%d", i), path); err != nil {
			return err
		}
	}
	return nil
}

func (a *Writer) file(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Size: info.Size()}
	own(h, info)
	if err := a.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(a.tar, f, info.Size())
	return err
}

// own notes who owns a file.
func own(h *tar.Header, info fs.FileInfo) {
	if from, err := tar.FileInfoHeader(info, ""); err == nil {
		h.Uid, h.Gid, h.Uname, h.Gname = from.Uid, from.Gid, from.Uname, from.Gname
	}
}

// Close ends the archive.
func (a *Writer) Close() error { return errors.Join(a.tar.Close(), a.gz.Close()) }

// Reader reads an archive.
type Reader struct {
	Manifest
	gz  *gzip.Reader
	tar *tar.Reader
}

// NewReader begins to read an archive.
func NewReader(r io.Reader) (*Reader, error) {
	gz, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("it is no backup of tidemark: %w", err)
	}
	a := &Reader{gz: gz, tar: tar.NewReader(gz)}
	h, err := a.tar.Next()
	if err != nil || h.Name != "manifest.json" {
		return nil, errors.New("it is no backup of tidemark: it does not begin with a manifest")
	}
	if err := json.NewDecoder(io.LimitReader(a.tar, 1<<20)).Decode(&a.Manifest); err != nil {
		return nil, fmt.Errorf("its manifest cannot be read: %w", err)
	}
	if a.Version != Version {
		return nil, fmt.Errorf("it is of form %d and this version reads %d: use the tidemark that wrote it, %s", a.Version, Version, a.Product)
	}
	return a, nil
}

// Place is where an entry of the archive goes: the path that it was taken from,
// and the content, to be read before the next.
type Place struct {
	Path    string
	IsStore bool
	Mode    fs.FileMode
	head    *tar.Header
	io.Reader
}

// Next returns the next entry, and after the last one io.EOF, if the checksum of
// the whole is right.
func (a *Reader) Next() (*Place, error) {
	h, err := a.tar.Next()
	if errors.Is(err, io.EOF) {
		if _, err := io.Copy(io.Discard, a.gz); err != nil {
			return nil, fmt.Errorf("it is damaged: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	p := &Place{Path: a.Store, IsStore: h.Name == storeName, Mode: fs.FileMode(h.Mode).Perm(), head: h, Reader: a.tar}
	if !p.IsStore {
		i := -1
		if _, err := fmt.Sscanf(h.Name, "files/%d", &i); err != nil || i < 0 || i >= len(a.Files) {
			return nil, fmt.Errorf("its entry %q is in no manifest", h.Name)
		}
		p.Path = a.Files[i]
	}
	return p, nil
}

// Put writes the entry to path, whole or not at all, with its mode and, where this
// process may, its owner.
func (p *Place) Put(path string) error {
	if err := owner.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".restore-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, p.Reader)
	if err = errors.Join(err, f.Chmod(p.Mode), p.chown(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// chown gives the file its owner: by name, since another machine has other
// numbers, or else by number.
func (p *Place) chown(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid := p.head.Uid, p.head.Gid
	if u, err := user.Lookup(p.head.Uname); err == nil {
		uid, _ = strconv.Atoi(u.Uid)
	}
	if g, err := user.LookupGroup(p.head.Gname); err == nil {
		gid, _ = strconv.Atoi(g.Gid)
	}
	return f.Chown(uid, gid)
}
