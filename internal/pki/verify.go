package pki

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Check is what a peer's certificate must stand up to.
type Check struct {
	Host  string // the certificate must name it; empty: any
	NowNS int64  // Unix; 0: not known, so that validity cannot be judged
	// AllowExpired accepts one whose time is over, or has not begun.
	AllowExpired bool
}

// Untrusted is the refusal of a certificate that nobody vouches for. It was set
// aside.
type Untrusted struct {
	Certificate *x509.Certificate
	aside       error // why it could not be
}

func (e *Untrusted) Error() string {
	aside := ""
	if e.aside != nil {
		aside = fmt.Sprintf("; it could not be set aside: %v", e.aside)
	}
	return fmt.Sprintf("the server's certificate is not trusted (%s, thumbprint %s%s); if it is the right one: tidemark pki trust %s",
		e.Certificate.Subject, Thumbprint(e.Certificate), aside, Thumbprint(e.Certificate)[:12])
}

// Verify decides whether to believe a peer's certificate, DER with the chain
// behind it, if it sent one. alarm is what is wrong with one that is believed all
// the same.
func (s *Store) Verify(der []byte, c Check) (alarm string, err error) {
	chain, err := parse(der)
	if err != nil {
		return "", fmt.Errorf("the server's certificate cannot be read: %w", err)
	}
	leaf := chain[0]
	if key, ok := leaf.PublicKey.(*rsa.PublicKey); !ok || key.N.BitLen() < keyBits {
		return "", fmt.Errorf("the server's certificate has no RSA key of at least %d bits; have one made at the server", keyBits)
	}
	trusted, err := s.trusted(leaf, chain[1:])
	if err != nil {
		return "", err
	}
	if !trusted {
		return "", &Untrusted{leaf, s.setAside(leaf)}
	}
	if err := hostOf(leaf, c.Host); err != nil {
		return "", err
	}
	return validity(leaf, c)
}

// OtherHost is the refusal of a certificate that names other hosts than the one
// that was called.
type OtherHost struct {
	Called string
	Named  []string // at least one, unless it names none
}

func (e *OtherHost) Error() string {
	named := "no host"
	if len(e.Named) > 0 {
		named = strings.Join(e.Named, ", ")
	}
	return fmt.Sprintf("the server's certificate is for %s, not for %s: name it so in endpoint, or set certificate_host to what it says", named, e.Called)
}

func hostOf(c *x509.Certificate, host string) error {
	if host == "" || c.VerifyHostname(host) == nil {
		return nil
	}
	named := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		named = append(named, ip.String())
	}
	return &OtherHost{host, named}
}

func validity(c *x509.Certificate, k Check) (alarm string, err error) {
	if k.NowNS == 0 {
		return "", nil
	}
	now := time.Unix(0, k.NowNS)
	switch {
	case now.After(c.NotAfter):
		alarm = fmt.Sprintf("the server's certificate expired on %s", c.NotAfter.Format(time.DateOnly))
	case now.Before(c.NotBefore):
		alarm = fmt.Sprintf("the server's certificate is not valid before %s", c.NotBefore.Format(time.DateOnly))
	}
	if alarm != "" && !k.AllowExpired {
		return "", fmt.Errorf("%s; renew it at the server, or set allow_expired: true until then", alarm)
	}
	return alarm, nil
}

// trusted reports whether the leaf itself is trusted, or an authority that issued
// it and has not revoked it. Whether its time is over is judged apart.
func (s *Store) trusted(leaf *x509.Certificate, sent []*x509.Certificate) (bool, error) {
	list, err := s.Entries(Trusted, Issuer)
	if err != nil && len(list) == 0 {
		return false, err
	}
	opts := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, CurrentTime: leaf.NotBefore,
	}
	for _, e := range list {
		switch {
		case e.Place == Trusted && bytes.Equal(e.Certificate.Raw, leaf.Raw):
			return true, nil
		case e.Place == Trusted && e.Certificate.IsCA:
			opts.Roots.AddCert(e.Certificate)
		case e.Certificate.IsCA:
			opts.Intermediates.AddCert(e.Certificate)
		}
	}
	for _, c := range sent {
		opts.Intermediates.AddCert(c)
	}
	chains, err := leaf.Verify(opts)
	if err != nil {
		return false, nil // of nobody known
	}
	lists, err := s.revocations()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(chains, func(chain []*x509.Certificate) bool { return !revoked(chain, lists) }), nil
}

// revoked reports whether one of a chain was revoked by the next. OPC UA wants a
// list from every authority; one without a list is believed to have revoked
// nothing.
func revoked(chain []*x509.Certificate, lists []*x509.RevocationList) bool {
	for i := 0; i+1 < len(chain); i++ {
		for _, l := range lists {
			if l.CheckSignatureFrom(chain[i+1]) != nil {
				continue
			}
			for _, r := range l.RevokedCertificateEntries {
				if r.SerialNumber.Cmp(chain[i].SerialNumber) == 0 {
					return true
				}
			}
		}
	}
	return false
}

// revocations reads the lists. One that cannot be read is an error: who would
// know whom it revokes?
func (s *Store) revocations() (lists []*x509.RevocationList, err error) {
	var faults []error
	for _, p := range []Place{Trusted, Issuer} {
		names, err := files(filepath.Join(s.dir, string(p), "crl"))
		faults = append(faults, err)
		for _, f := range names {
			data, err := os.ReadFile(f)
			if err == nil {
				var l *x509.RevocationList
				if l, err = x509.ParseRevocationList(unwrap(data)); err == nil {
					lists = append(lists, l)
					continue
				}
			}
			faults = append(faults, fmt.Errorf("the revocation list %s: %w", f, err))
		}
	}
	return lists, errors.Join(faults...)
}

func sum1(b []byte) []byte {
	sum := sha1.Sum(b)
	return sum[:]
}
