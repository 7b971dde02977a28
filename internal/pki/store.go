package pki

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tidemark/internal/owner"
)

// Store is a directory of certificates. Its methods may be used at the same time,
// by other processes too.
type Store struct {
	dir    string
	making sync.Mutex
}

// At returns the store in a directory, which need not exist yet.
func At(dir string) *Store { return &Store{dir: dir} }

// Dir returns the store's directory.
func (s *Store) Dir() string { return s.dir }

// Place is what a certificate's place in the store says of it.
type Place string

// The places.
const (
	Trusted  Place = "trusted"
	Issuer   Place = "issuers"
	Rejected Place = "rejected"
)

// Entry is a certificate in the store.
type Entry struct {
	Place       Place
	File        string
	Certificate *x509.Certificate
}

// Thumbprint is what OPC UA tools show of a certificate: its SHA-1. It tells
// certificates apart for people; what is trusted is the certificate itself.
func Thumbprint(c *x509.Certificate) string {
	sum := sha1.Sum(c.Raw)
	return hex.EncodeToString(sum[:])
}

// Fingerprint is the SHA-256 of a certificate.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// Entries lists the certificates in some places, by place and file. A file that is
// no certificate is an error beside the rest.
func (s *Store) Entries(places ...Place) ([]Entry, error) {
	var list []Entry
	var faults []error
	for _, p := range places {
		files, err := files(filepath.Join(s.dir, string(p), "certs"))
		if err != nil {
			faults = append(faults, err)
		}
		for _, f := range files {
			certs, err := read(f)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", f, err))
				continue
			}
			list = append(list, Entry{p, f, certs[0]})
		}
	}
	return list, errors.Join(faults...)
}

// files lists a directory's files; there may be none, and no directory.
func files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []string
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	return list, err
}

// read reads a file of certificates, DER or PEM; there is at least one.
func read(file string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(data)
	if block == nil {
		return parse(data)
	}
	var der []byte
	for ; block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" { // a key may stand beside it
			der = append(der, block.Bytes...)
		}
	}
	return parse(der)
}

// unwrap returns what is in the first PEM block, or DER as it is.
func unwrap(data []byte) []byte {
	if block, _ := pem.Decode(data); block != nil {
		return block.Bytes
	}
	return data
}

func parse(der []byte) ([]*x509.Certificate, error) {
	certs, err := x509.ParseCertificates(der)
	if err == nil && len(certs) == 0 {
		err = errors.New("no certificate in it")
	}
	return certs, err
}

// Trust moves what is rejected into the trusted certificates. which is the
// beginning of a thumbprint or fingerprint, or a file with a certificate.
func (s *Store) Trust(which string) (*x509.Certificate, error) {
	return s.move(which, Rejected, Trusted)
}

// Reject takes a certificate out of the trusted ones and sets it aside.
func (s *Store) Reject(which string) (*x509.Certificate, error) {
	return s.move(which, Trusted, Rejected)
}

func (s *Store) move(which string, from, to Place) (*x509.Certificate, error) {
	list, faults := s.Entries(from)
	found := slices.DeleteFunc(list, func(e Entry) bool { return !names(which, e.Certificate) })
	switch {
	case len(found) > 1:
		return nil, fmt.Errorf("%q names several of the %s certificates; write more of the thumbprint", which, from)
	case len(found) == 1:
		if err := s.put(to, found[0].Certificate); err != nil {
			return nil, err
		}
		return found[0].Certificate, os.Remove(found[0].File)
	case to == Trusted:
		if certs, err := read(which); err == nil {
			return certs[0], s.put(to, certs[0])
		}
	}
	return nil, errors.Join(fmt.Errorf("no %s certificate has the thumbprint %q; tidemark pki lists them", from, which), faults)
}

// fewestDigits of a thumbprint name a certificate.
const fewestDigits = 6

func names(which string, c *x509.Certificate) bool {
	which = strings.ToLower(strings.ReplaceAll(which, ":", ""))
	return len(which) >= fewestDigits && (strings.HasPrefix(Thumbprint(c), which) || strings.HasPrefix(Fingerprint(c), which))
}

func (s *Store) put(p Place, c *x509.Certificate) error {
	return write(filepath.Join(s.dir, string(p), "certs", Thumbprint(c)+".der"), c.Raw, 0o644)
}

// write writes a file at once or not at all, and makes its directory.
func write(file string, data []byte, mode fs.FileMode) error {
	if err := owner.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return owner.WriteFile(file, data, mode)
}

// mostRejected bounds what strangers can leave behind.
const mostRejected = 50

// setAside keeps a certificate that was refused.
func (s *Store) setAside(c *x509.Certificate) error {
	list, _ := s.Entries(Rejected) // what cannot be read is in nobody's way
	for _, e := range list {
		if bytes.Equal(e.Certificate.Raw, c.Raw) {
			return nil
		}
	}
	if len(list) >= mostRejected {
		slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(modified(a.File), modified(b.File)) })
		if err := os.Remove(list[0].File); err != nil {
			return err
		}
	}
	return s.put(Rejected, c)
}

func modified(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}
