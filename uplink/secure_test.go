package uplink_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/reading"
	"tidemark/uplink"
)

// identity is a certificate, its key, and itself as an authority, in PEM form.
type identity struct{ cert, key []byte }

// newIdentity makes a self-signed certificate for loopback that begins at that
// time.
func newIdentity(t *testing.T, from time.Time) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: from, NotAfter: from.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return identity{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
}

// tlsConfig trusts one identity and shows another.
func tlsConfig(t *testing.T, trusts, shows identity) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(shows.cert, shows.key)
	if err != nil {
		t.Fatal(err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	conf.RootCAs.AppendCertsFromPEM(trusts.cert)
	return conf
}

// startTLS puts TLS with client certificates before a broker.
func startTLS(t *testing.T, b *broker, server, client identity) *proxy {
	t.Helper()
	conf := tlsConfig(t, client, server)
	conf.ClientCAs, conf.ClientAuth = conf.RootCAs, tls.RequireAndVerifyClientCert
	conf.Time = func() time.Time { return time.Unix(0, at("2026-01-01T12:00:00Z")) }
	return proxyOn(t, b.addr, func(ln net.Listener) net.Listener { return tls.NewListener(ln, conf) })
}

// A machine without a battery clock starts in 1970, when no certificate is valid:
// the state says that the clock is wrong, not the broker. With the time come the
// records.
func TestTLSWaitsForTheClock(t *testing.T) {
	from := time.Unix(0, at("2026-01-01T00:00:00Z"))
	server, client := newIdentity(t, from), newIdentity(t, from.Add(-time.Hour))
	b := startBroker(t, nil)
	p := startTLS(t, b, server, client)
	src := newOutbox()
	src.numbered(10)
	var wall atomic.Int64
	wall.Store(at("1970-01-01T00:01:00Z"))
	cfg := quick()
	cfg.URL = &url.URL{Scheme: "mqtts", Host: p.ln.Addr().String()}
	cfg.TLS = func() (*tls.Config, error) { return tlsConfig(t, server, client), nil }
	cfg.Clock = func() (int64, reading.ClockState) { return wall.Load(), reading.ClockUnknown }
	u, stop := run(t, cfg, src, nil)
	eventually(t, "clock_not_set", func() bool { return u.Status().State == uplink.StateClock })
	if s := u.Status(); !strings.Contains(s.Reason, "1970-01-01T00:01:00Z") || !strings.Contains(s.Reason, "2026-01-01T00:00:00Z") {
		t.Errorf("reason: %s", s.Reason)
	}
	wall.Store(at("2026-01-01T12:00:00Z"))
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	if s := u.Status(); s.CertificateEndNS != from.Add(23*time.Hour).UnixNano() { // the client's, an hour before the server's
		t.Errorf("the certificates end at %d", s.CertificateEndNS)
	}
	stop()
	inOrder(t, b.records(), 10)
}

func TestTLSRefusals(t *testing.T) {
	from := time.Unix(0, at("2026-01-01T00:00:00Z"))
	server, client, stranger := newIdentity(t, from), newIdentity(t, from), newIdentity(t, from)
	p := startTLS(t, startBroker(t, nil), server, client)
	for name, c := range map[string]struct {
		tls    func() (*tls.Config, error)
		reason string
	}{
		"unknown authority":     {func() (*tls.Config, error) { return tlsConfig(t, stranger, client), nil }, "certificate"},
		"wrong client":          {func() (*tls.Config, error) { return tlsConfig(t, server, stranger), nil }, "certificate"},
		"credential is missing": {func() (*tls.Config, error) { return nil, errors.New("cannot read credential") }, "cannot read credential"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := quick()
			cfg.URL, cfg.TLS = &url.URL{Scheme: "mqtts", Host: p.ln.Addr().String()}, c.tls
			u, stop := run(t, cfg, newOutbox(), nil)
			eventually(t, "waiting", func() bool { return u.Status().State == uplink.StateWaiting })
			if s := u.Status(); !strings.Contains(s.Reason, c.reason) {
				t.Errorf("reason: %s", s.Reason)
			}
			stop()
		})
	}
}

// The password is asked for at every connection.
func TestLogin(t *testing.T) {
	asked := make(chan struct{}, 100)
	cfg := quick()
	b := startBroker(t, nil)
	b.login = func(user, password string) bool { return user == "tidemark" && password == "new" }
	cfg.URL = b.url()
	cfg.Login = func() (string, []byte, error) {
		asked <- struct{}{}
		if len(asked) < 3 {
			return "tidemark", []byte("old"), nil
		}
		return "tidemark", []byte("new"), nil
	}
	u, stop := run(t, cfg, newOutbox(), nil)
	eventually(t, "online", func() bool { return u.Status().State == uplink.StateOnline })
	if s := u.Status(); s.Failures != 2 {
		t.Errorf("status: %+v", s)
	}
	stop()
}

// MQTT over WebSocket, whose frames need not be packets.
func TestWebSocket(t *testing.T) {
	b := startBroker(t, nil)
	var sessions atomic.Int64
	up := websocket.Upgrader{Subprotocols: []string{"mqtt"}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mqtt" {
			http.NotFound(w, r)
			return
		}
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		sessions.Add(1)
		defer ws.Close()
		bridge(r.Context(), ws, b.addr)
	}))
	defer srv.Close()
	src := newOutbox()
	src.numbered(3000)
	cfg := quick()
	cfg.URL = &url.URL{Scheme: "ws", Host: strings.TrimPrefix(srv.URL, "http://"), Path: "/mqtt"}
	_, stop := run(t, cfg, src, nil)
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	inOrder(t, b.records(), 3000)
	if sessions.Load() != 1 {
		t.Errorf("%d connections", sessions.Load())
	}

	cfg.URL.Path = "/elsewhere"
	u, stop := run(t, cfg, src, nil)
	eventually(t, "waiting", func() bool { return u.Status().State == uplink.StateWaiting })
	if s := u.Status(); !strings.Contains(s.Reason, "404") {
		t.Errorf("reason: %s", s.Reason)
	}
	stop()
}

// bridge carries a WebSocket to TCP and back, in frames of odd sizes.
func bridge(ctx context.Context, ws *websocket.Conn, addr string) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer ws.Close()
		buf := make([]byte, 7)
		for {
			n, err := c.Read(buf)
			if err != nil || ws.WriteMessage(websocket.BinaryMessage, buf[:n]) != nil {
				return
			}
		}
	}()
	for {
		_, data, err := ws.ReadMessage()
		if err != nil {
			break
		}
		if _, err := c.Write(data); err != nil {
			break
		}
	}
	c.Close()
	<-done
}
