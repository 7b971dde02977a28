package pki_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/internal/pki"
)

// 2026-06-01
const now = 1780272000 * int64(time.Second)

var key = func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
}()

type authority struct {
	cert *x509.Certificate
	key  *rsa.PrivateKey
}

var serial int64

// issue makes a certificate of a server called plc-7, signed by itself or by ca.
func issue(t *testing.T, ca *authority, change func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	serial++
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: fmt.Sprintf("plc-%d", serial)}, DNSNames: []string{"plc-7"},
		NotBefore: time.Unix(0, now).AddDate(-1, 0, 0), NotAfter: time.Unix(0, now).AddDate(1, 0, 0), BasicConstraintsValid: true,
	}
	if change != nil {
		change(c)
	}
	parent := c
	if ca != nil {
		parent = ca.cert
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func newAuthority(t *testing.T) *authority {
	return &authority{issue(t, nil, func(c *x509.Certificate) {
		c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
		c.SubjectKeyId = []byte{1}
	}), key}
}

func file(t *testing.T, s *pki.Store, name string, data []byte) {
	t.Helper()
	name = filepath.Join(s.Dir(), name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTrustIsGivenAndTaken(t *testing.T) {
	s, c := pki.At(t.TempDir()), issue(t, nil, nil)
	check := pki.Check{Host: "plc-7", NowNS: now}
	var untrusted *pki.Untrusted
	if _, err := s.Verify(c.Raw, check); !errors.As(err, &untrusted) || !strings.Contains(err.Error(), "tidemark pki trust") {
		t.Fatalf("a stranger: %v", err)
	}
	if list, err := s.Entries(pki.Rejected); err != nil || len(list) != 1 {
		t.Fatalf("set aside: %v, %v", list, err)
	}
	if _, err := s.Trust("00ff00"); err == nil {
		t.Error("trusts what is not there")
	}
	if _, err := s.Trust(strings.ToUpper(pki.Thumbprint(c)[:10])); err != nil {
		t.Fatal(err)
	}
	if alarm, err := s.Verify(c.Raw, check); err != nil || alarm != "" {
		t.Fatalf("trusted: %q, %v", alarm, err)
	}
	if _, err := s.Reject(pki.Fingerprint(c)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(c.Raw, check); !errors.As(err, &untrusted) {
		t.Errorf("no longer trusted: %v", err)
	}
}

func TestVerify(t *testing.T) {
	over := func(c *x509.Certificate) { c.NotAfter = time.Unix(0, now).AddDate(0, 0, -1) }
	early := func(c *x509.Certificate) { c.NotBefore = time.Unix(0, now).AddDate(0, 0, 1) }
	for _, c := range []struct {
		name   string
		change func(*x509.Certificate)
		check  pki.Check
		alarm  string // part of it
		err    string // part of it
	}{
		{"all is well", nil, pki.Check{Host: "plc-7", NowNS: now}, "", ""},
		{"another host", nil, pki.Check{Host: "plc-8", NowNS: now}, "", "certificate_host"},
		{"any host", nil, pki.Check{NowNS: now}, "", ""},
		{"expired", over, pki.Check{Host: "plc-7", NowNS: now}, "", "allow_expired"},
		{"expired and allowed", over, pki.Check{Host: "plc-7", NowNS: now, AllowExpired: true}, "expired on 2026-05-31", ""},
		{"not valid yet", early, pki.Check{Host: "plc-7", NowNS: now}, "", "not valid before"},
		{"the gateway does not know the time", over, pki.Check{Host: "plc-7"}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, cert := pki.At(t.TempDir()), issue(t, nil, c.change)
			file(t, s, "trusted/certs/any-name.der", cert.Raw)
			alarm, err := s.Verify(cert.Raw, c.check)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if (alarm == "") != (c.alarm == "") || !strings.Contains(alarm, c.alarm) {
				t.Errorf("alarm %q, want %q", alarm, c.alarm)
			}
		})
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	s, cert := pki.At(t.TempDir()), issue(t, nil, nil)
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &small.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file(t, s, "trusted/certs/small.der", der)
	if _, err := s.Verify(der, pki.Check{}); err == nil || !strings.Contains(err.Error(), "2048 bits") {
		t.Errorf("a short key: %v", err)
	}
	if _, err := pki.At(t.TempDir()).Verify([]byte("no certificate"), pki.Check{}); err == nil {
		t.Error("believes what is no certificate")
	}
}

func TestAnAuthorityStandsForWhatItIssued(t *testing.T) {
	s, ca := pki.At(t.TempDir()), newAuthority(t)
	file(t, s, "trusted/certs/ca.der", ca.cert.Raw)
	good, bad := issue(t, ca, nil), issue(t, ca, nil)
	crl, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Unix(0, now), NextUpdate: time.Unix(0, now).AddDate(1, 0, 0),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: bad.SerialNumber, RevocationTime: time.Unix(0, now)}},
	}, ca.cert, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	file(t, s, "trusted/crl/ca.crl", crl)
	check := pki.Check{Host: "plc-7", NowNS: now}
	if _, err := s.Verify(good.Raw, check); err != nil {
		t.Errorf("issued: %v", err)
	}
	var untrusted *pki.Untrusted
	if _, err := s.Verify(bad.Raw, check); !errors.As(err, &untrusted) {
		t.Errorf("revoked: %v", err)
	}
	self := issue(t, nil, nil)
	if _, err := s.Verify(self.Raw, check); !errors.As(err, &untrusted) {
		t.Errorf("of nobody: %v", err)
	}
	file(t, s, "trusted/crl/broken.crl", []byte("?"))
	if _, err := s.Verify(good.Raw, check); err == nil {
		t.Error("a list that cannot be read is passed over")
	}
}

func TestStrangersFillNoDisk(t *testing.T) {
	s := pki.At(t.TempDir())
	for range 55 {
		if _, err := s.Verify(issue(t, nil, nil).Raw, pki.Check{}); err == nil {
			t.Fatal("believes a stranger")
		}
	}
	if list, err := s.Entries(pki.Rejected); err != nil || len(list) != 50 {
		t.Errorf("%d set aside, %v; want 50", len(list), err)
	}
}

func TestOwnCertificateIsMadeOnceAndKept(t *testing.T) {
	s := pki.At(t.TempDir())
	if own, err := s.Own(); own != nil || err != nil {
		t.Fatalf("there is one already: %v, %v", own, err)
	}
	who := pki.Subject{Name: "Tidemark line-3", URI: "urn:tidemark:line-3", Host: "edge-3"}
	// A gateway without a clock makes it in 1970.
	own, err := s.Ensure(who, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := own.Certificate
	if own.URI() != who.URI || c.VerifyHostname("edge-3") != nil {
		t.Errorf("names %q, %v", own.URI(), c.DNSNames)
	}
	if c.NotBefore.Year() > 2020 || c.NotAfter.Year() < 2036 {
		t.Errorf("valid from %v to %v", c.NotBefore, c.NotAfter)
	}
	if err := c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature); err != nil {
		t.Error(err)
	}
	again, err := s.Ensure(who, now)
	if err != nil || pki.Fingerprint(again.Certificate) != pki.Fingerprint(c) {
		t.Errorf("it was made anew: %v", err)
	}
	info, err := os.Stat(filepath.Join(s.Dir(), "own/key.pem"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v, %v", info.Mode(), err)
	}
	if _, err := s.Make(who, now); err != nil {
		t.Fatal(err)
	}
	if renewed, err := s.Own(); err != nil || pki.Fingerprint(renewed.Certificate) == pki.Fingerprint(c) {
		t.Errorf("it was not renewed: %v", err)
	}
}

func TestAKeyOfAnotherCertificateIsRefused(t *testing.T) {
	s := pki.At(t.TempDir())
	if _, err := s.Make(pki.Subject{URI: "urn:a"}, now); err != nil {
		t.Fatal(err)
	}
	file(t, s, "own/certificate.der", issue(t, nil, nil).Raw)
	if _, err := s.Own(); err == nil {
		t.Error("a certificate without its key is taken")
	}
}

func TestOneFileMayHoldKeyAndCertificate(t *testing.T) {
	s := pki.At(t.TempDir())
	own, err := s.Make(pki.Subject{URI: "urn:a"}, now)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(own.Key)
	if err != nil {
		t.Fatal(err)
	}
	both := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate.Raw})...)
	name := filepath.Join(t.TempDir(), "both.pem")
	if err := os.WriteFile(name, both, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := pki.Load(name, both); err != nil || !got.Certificate.Equal(own.Certificate) {
		t.Errorf("%v, %v", got, err)
	}
}
