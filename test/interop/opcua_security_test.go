package interop

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidemark/gateway"
	"tidemark/test/process"
)

const secured = "security: Basic256Sha256/SignAndEncrypt\npublishing: 200ms\n"

// newSecuredPlant has a certificate with nothing wrong.
func newSecuredPlant(t *testing.T, args ...string) *plant {
	t.Helper()
	certificate, key := serverCertificate(t, "127.0.0.1", false)
	return newPlant(t, append(args, "--counters", "1", "--certificate", certificate, "--key", key)...)
}

var trustCommand = regexp.MustCompile(`tidemark pki trust ([0-9a-fA-F]+)`)

// trust does what the gateway asks its reader to do, once it does.
func (l *line) trust() {
	l.t.Helper()
	var asked []string
	l.awaits(30*time.Second, func(r *gateway.ReaderStatus) bool {
		asked = trustCommand.FindStringSubmatch(r.Problem)
		return r.State == "refused" && asked != nil
	})
	if _, err := command(l.t, "pki", "trust", asked[1], "-c", l.config); err != nil {
		l.t.Fatal(err)
	}
}

// TestServerTrusted: a server is believed when somebody says so, without a restart
// and with each policy there is; so must the gateway be.
func TestServerTrusted(t *testing.T) {
	begin(t)
	p := newSecuredPlant(t)
	for _, policy := range []string{"Basic256Sha256", "Aes128_Sha256_RsaOaep", "Aes256_Sha256_RsaPss"} {
		l := newLine(t, p.endpoint, "security: "+policy+"/SignAndEncrypt\npublishing: 200ms", countersRule)
		l.Start()
		l.trust()
		l.awaits(30*time.Second, connected)
		l.counts(p)
		l.stop()
	}
}

// TestKeysAreRenewed: a channel outlives its keys, again and again, and loses nothing.
func TestKeysAreRenewed(t *testing.T) {
	begin(t)
	p := newSecuredPlant(t, "--token-life", "4000", "--every", "100")
	l := newLine(t, p.endpoint, "security: Aes256_Sha256_RsaPss/SignAndEncrypt\nsampling: 0s\npublishing: 200ms", countersRule)
	l.Start()
	l.trust()
	l.awaits(90*time.Second, connected)
	l.counts(p)
	time.Sleep(12 * time.Second) // four times three quarters of the keys' life
	led := l.finish(p)
	led.lossless()
	if r := led.status.Inputs[0].Reader; r.Reconnects != 0 || r.Rebuilt != 0 {
		t.Errorf("%d reconnects, %d subscriptions made anew", r.Reconnects, r.Rebuilt)
	}
}

// TestGatewayTrusted: a server that does not know the gateway refuses it, which the
// gateway says with the remedy.
func TestGatewayTrusted(t *testing.T) {
	begin(t)
	p := newSecuredPlant(t, "--strict")
	l := newLine(t, p.endpoint, secured, countersRule)
	l.Start()
	l.trust()
	l.awaits(30*time.Second, func(r *gateway.ReaderStatus) bool {
		return r.State == "refused" && says("tidemark pki export", "thumbprint")(r)
	})
	// What its administrator does with what it has set aside.
	rejected, err := filepath.Glob(filepath.Join(p.dir, "pki/rejected/*"))
	if err != nil || len(rejected) == 0 {
		t.Fatalf("the server has set nothing aside: %v", err)
	}
	for _, file := range rejected {
		if err := os.Rename(file, filepath.Join(p.dir, "pki/trusted/certs", filepath.Base(file))); err != nil {
			t.Fatal(err)
		}
	}
	l.awaits(90*time.Second, connected)
	l.counts(p)
	l.stop()
}

// TestOtherCertificates has servers show certificates with something wrong, and what
// lets them be believed all the same.
func TestOtherCertificates(t *testing.T) {
	for _, c := range []struct {
		name    string
		host    string
		expired bool
		refused []string // what is said
		setting string   // that allows it
		alarm   string   // that remains
	}{
		{"expired", "127.0.0.1", true, []string{"expired on", "allow_expired"}, "allow_expired: true", "expired on"},
		{"wrong host", "press-9.plant.example", false, []string{"is for press-9.plant.example, not for 127.0.0.1", "certificate_host"}, "certificate_host: press-9.plant.example", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin(t)
			certificate, key := serverCertificate(t, c.host, c.expired)
			p := newPlant(t, "--counters", "1", "--certificate", certificate, "--key", key)
			run := func(setting string, stands func(r *gateway.ReaderStatus) bool) *line {
				l := newLine(t, p.endpoint, secured+setting, countersRule)
				if _, err := command(t, "pki", "trust", certificate, "-c", l.config); err != nil {
					t.Fatal(err)
				}
				l.Start()
				l.awaits(30*time.Second, stands)
				return l
			}
			run("", func(r *gateway.ReaderStatus) bool { return r.State == "refused" && says(c.refused...)(r) }).stop()
			l := run(c.setting, func(r *gateway.ReaderStatus) bool {
				return r.State == "connected" && says(c.alarm)(r) && (c.alarm != "" || r.Problem == "")
			})
			l.counts(p)
			l.stop()
		})
	}
}

// TestLogin: users with passwords, right and wrong, and a password in a file that is
// put right while the gateway runs.
func TestLogin(t *testing.T) {
	begin(t)
	p := newSecuredPlant(t)
	l := newLine(t, p.endpoint, secured+"login: {user: operator, password: {file: password}}", countersRule)
	password := l.beside("password")
	secret := func(text string) {
		if err := os.WriteFile(password, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret("guess")
	l.Start()
	l.trust()
	l.awaits(30*time.Second, func(r *gateway.ReaderStatus) bool { return r.State == "refused" && says("login")(r) })
	secret("open sesame")
	l.awaits(60*time.Second, connected)
	l.counts(p)
	l.stop()
	if log := process.Tail(l.Log, 1<<20); strings.Contains(log, "sesame") || strings.Contains(log, "guess") {
		t.Error("a password stands in the log")
	}
}

// serverCertificate makes one that is signed by itself, and its key, in files.
func serverCertificate(t *testing.T, host string, expired bool) (certificate, keyFile string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ends := time.Now().AddDate(1, 0, 0)
	if expired {
		ends = time.Now().AddDate(0, 0, -3)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "Plant"},
		NotBefore: ends.AddDate(-2, 0, 0), NotAfter: ends, BasicConstraintsValid: true,
		URIs:         []*url.URL{{Scheme: "urn", Opaque: "plant.example:server"}},
		SubjectKeyId: []byte{1, 2, 3}, AuthorityKeyId: []byte{1, 2, 3},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment | x509.KeyUsageKeyEncipherment |
			x509.KeyUsageDataEncipherment | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := process.Scratch(t)
	certificate, keyFile = filepath.Join(dir, "plant.pem"), filepath.Join(dir, "plant.key")
	process.Write(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	process.Write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	return certificate, keyFile
}
