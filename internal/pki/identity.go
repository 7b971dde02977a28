package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Identity is a certificate with its key.
type Identity struct {
	Certificate *x509.Certificate
	Key         *rsa.PrivateKey
}

// URI returns the application's name in the certificate; empty if there is none.
func (i *Identity) URI() string {
	if len(i.Certificate.URIs) == 0 {
		return ""
	}
	return i.Certificate.URIs[0].String()
}

// Subject is whom a certificate is made for.
type Subject struct {
	Name string // of the application, for people
	URI  string // of the application: must be the one that it calls itself by
	Host string // on which it runs
}

const (
	ownCertificate = "own/certificate.der"
	ownKey         = "own/key.pem"
)

// Own returns the application's own certificate, nil if there is none yet.
func (s *Store) Own() (*Identity, error) {
	certs, err := read(filepath.Join(s.dir, ownCertificate))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the gateway's own certificate %s cannot be read: %w", filepath.Join(s.dir, ownCertificate), err)
	}
	key, err := os.ReadFile(filepath.Join(s.dir, ownKey))
	if err != nil {
		return nil, fmt.Errorf("the key of the gateway's own certificate cannot be read: %w", err)
	}
	return withKey(certs[0], key)
}

// Load returns the certificate in a file with its key, each PEM or DER.
func Load(certificate string, key []byte) (*Identity, error) {
	certs, err := read(certificate)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate %s: %w", certificate, err)
	}
	return withKey(certs[0], key)
}

// withKey finds the key of a certificate in a file, which has several while the
// certificate is being renewed.
func withKey(c *x509.Certificate, data []byte) (*Identity, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if key, err := parseKey(block.Bytes); err == nil && key.PublicKey.Equal(c.PublicKey) {
			return &Identity{c, key}, nil
		}
	}
	key, err := parseKey(unwrap(data))
	if err != nil {
		return nil, fmt.Errorf("the key of %s: %w", c.Subject, err)
	}
	if !key.PublicKey.Equal(c.PublicKey) {
		return nil, fmt.Errorf("the key given for %s is another one's", c.Subject)
	}
	return &Identity{c, key}, nil
}

func parseKey(data []byte) (*rsa.PrivateKey, error) {
	if key, err := x509.ParsePKCS1PrivateKey(data); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(data)
	if err != nil {
		return nil, errors.New("is neither PKCS #1 nor PKCS #8, without a passphrase")
	}
	if k, ok := key.(*rsa.PrivateKey); ok {
		return k, nil
	}
	return nil, errors.New("is no RSA key, which OPC UA's policies need")
}

const (
	keyBits = 2048 // the least that every policy takes, and the most that old controllers do
	// A certificate begins years before it is made, so that neither a controller
	// whose clock is behind nor a gateway without one takes it for one of the future.
	notBefore = 1577836800 // 2020-01-01
	validFor  = 10         // years, from when it is made, or from leastMade if the clock is behind that
	leastMade = 1767225600 // 2026-01-01
)

// Ensure returns the application's own certificate, and makes one if there is
// none yet.
func (s *Store) Ensure(who Subject, nowNS int64) (*Identity, error) {
	s.making.Lock()
	defer s.making.Unlock()
	if own, err := s.Own(); own != nil || err != nil {
		return own, err
	}
	return s.Make(who, nowNS)
}

// Make makes the application's own certificate, at the Unix nanosecond nowNS, in
// place of any that is there. Servers must be told to trust it. Whenever it is
// interrupted, the one before or the new one is there, whole.
func (s *Store) Make(who Subject, nowNS int64) (*Identity, error) {
	files, err := s.renewal(who, nowNS)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := write(filepath.Join(s.dir, f.name), f.data, f.mode); err != nil {
			return nil, fmt.Errorf("cannot keep the gateway's certificate: %w", err)
		}
	}
	return s.Own()
}

// keptFile is a file of the store as it is to be.
type keptFile struct {
	name string
	data []byte
	mode fs.FileMode
}

// renewal makes a certificate and its key, as files to be written in this order: the
// key beside the present one, so that whichever certificate is there has its key.
func (s *Store) renewal(who Subject, nowNS int64) ([]keptFile, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	der, err := sign(who, key, nowNS)
	if err != nil {
		return nil, err
	}
	next, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	own, err := s.Own()
	if err != nil || own == nil { // none, or a pair that is of no use
		return []keptFile{{ownKey, next, 0o600}, {ownCertificate, der, 0o644}}, nil
	}
	present, err := encodeKey(own.Key)
	if err != nil {
		return nil, err
	}
	return []keptFile{{ownKey, slices.Concat(present, next), 0o600}, {ownCertificate, der, 0o644}, {ownKey, next, 0o600}}, nil
}

func encodeKey(key *rsa.PrivateKey) ([]byte, error) {
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), err
}

// sign makes a self-signed application instance certificate (OPC UA Part 6
// §6.2.2).
func sign(who Subject, key *rsa.PrivateKey, nowNS int64) ([]byte, error) {
	uri, err := url.Parse(who.URI)
	if err != nil {
		return nil, fmt.Errorf("the application's URI: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, err
	}
	id, err := keyID(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	made := time.Unix(max(nowNS/1e9, leastMade), 0).UTC()
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: who.Name, Organization: []string{"Tidemark"}},
		NotBefore: time.Unix(notBefore, 0).UTC(), NotAfter: made.AddDate(validFor, 0, 0),
		URIs: []*url.URL{uri}, SubjectKeyId: id, AuthorityKeyId: id, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment | x509.KeyUsageKeyEncipherment |
			x509.KeyUsageDataEncipherment | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(who.Host); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else if who.Host != "" {
		c.DNSNames = []string{who.Host}
	}
	return x509.CreateCertificate(rand.Reader, c, c, crypto.PublicKey(&key.PublicKey), key)
}

// keyID is the usual name of a key, its SHA-1 (RFC 5280 §4.2.1.2).
func keyID(key *rsa.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &info); err != nil {
		return nil, err
	}
	return sum1(info.Key.Bytes), nil
}
