package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxSecret bounds what is read for a secret: certificates' keys are far smaller.
const maxSecret = 64 << 10

// Secret says where a secret is: at most one of Credential and File is set. The
// zero Secret is none. It prints where the secret is, never the secret.
type Secret struct {
	Credential string // name of a credential (systemd's LoadCredential=)
	File       Path
}

// Given reports whether there is a secret.
func (s Secret) Given() bool { return s != Secret{} }

// String names the place.
func (s Secret) String() string {
	switch {
	case s.Credential != "":
		return "credential " + s.Credential
	case s.File != "":
		return "file " + string(s.File)
	}
	return "none"
}

// Read returns the secret without the line break at its end, and nothing for the
// zero Secret. It is read anew each time, so that a changed one is seen at the
// next connection.
func (s Secret) Read() ([]byte, error) {
	if !s.Given() {
		return nil, nil
	}
	path := string(s.File)
	if s.Credential != "" {
		path = credential(s.Credential)
	}
	f, err := os.Open(path)
	if err != nil {
		if s.Credential != "" {
			return nil, fmt.Errorf("cannot read %s: %w; the service is given every file in %s, and others by LoadCredential=%s:FILE",
				s, err, CredentialFiles, s.Credential)
		}
		return nil, fmt.Errorf("cannot read %s: %w", s, errors.Unwrap(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", s, err)
	case len(data) > maxSecret:
		return nil, fmt.Errorf("cannot read %s: longer than %d bytes", s, maxSecret)
	}
	data = bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
	if len(data) == 0 {
		return nil, fmt.Errorf("cannot read %s: it is empty", s)
	}
	return data, nil
}

// CredentialFiles is where an installed gateway's secrets are, one file each. The
// unit hands them to the service: LoadCredential=tidemark:/etc/tidemark/credentials
// makes of the file NAME a credential tidemark_NAME (systemd.exec(5)).
const CredentialFiles = "/etc/tidemark/credentials"

// credential returns the file that holds a credential. Whoever is not started by
// systemd, such as root at the command line, reads the file that the service is
// given.
func credential(name string) string {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return filepath.Join(CredentialFiles, name)
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return filepath.Join(dir, "tidemark_"+name)
}
