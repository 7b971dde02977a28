package configs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Load reads the files and returns the client's side of a TLS connection, at least
// TLS 1.2. They are read anew each time, so that renewed certificates are seen at
// the next connection.
func (t TLS) Load() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(string(t.CA))
		if err != nil {
			return nil, fmt.Errorf("cannot read tls.ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca %s holds no certificate in PEM", t.CA)
		}
	}
	if t.Cert != "" {
		cert, err := os.ReadFile(string(t.Cert))
		if err != nil {
			return nil, fmt.Errorf("cannot read tls.cert: %w", err)
		}
		key, err := t.Key.Read()
		if err != nil {
			return nil, fmt.Errorf("tls.key: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("tls.cert %s and its key: %w", t.Cert, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
