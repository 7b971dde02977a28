package mqtt_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

// door lets in whoever has the password; an empty one lets everybody in.
type door struct {
	mochi.HookBase
	password string
}

func (d *door) Provides(b byte) bool {
	return b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck
}

func (d *door) OnConnectAuthenticate(_ *mochi.Client, p packets.Packet) bool {
	return d.password == "" || string(p.Connect.Password) == d.password
}

func (d *door) OnACLCheck(*mochi.Client, string, bool) bool { return true }

// newMochi is a real broker, in this process.
func newMochi(t *testing.T, l listeners.Listener, password string) *mochi.Server {
	t.Helper()
	t.Parallel()
	s := mochi.New(&mochi.Options{InlineClient: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	for _, err := range []error{s.AddHook(&door{password: password}, nil), s.AddListener(l), s.Serve()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestRetainedMessagesAreInitial(t *testing.T) {
	ln := listeners.NewTCP(listeners.Config{ID: "t", Address: "127.0.0.1:0"})
	s := newMochi(t, ln, "")
	s.Publish("in/d", []byte("1"), true, 1)
	_, sink, _ := start(t, "mqtt://"+ln.Address(), nil)
	if r := sink.take(t).Readings[0]; !r.Delivery.Has(reading.Initial) {
		t.Errorf("got %+v", r)
	}
	s.Publish("in/d", []byte("2"), true, 1)
	if r := sink.take(t).Readings[0]; r.Delivery != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestTLSWithClientCertificate(t *testing.T) {
	ca, server, client := certificates(t)
	pool := x509.NewCertPool()
	pem, _ := os.ReadFile(ca)
	pool.AppendCertsFromPEM(pem)
	pair, err := tls.LoadX509KeyPair(server[0], server[1])
	if err != nil {
		t.Fatal(err)
	}
	ln := listeners.NewTCP(listeners.Config{ID: "t", Address: "127.0.0.1:0",
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}})
	s := newMochi(t, ln, "secret")
	s.Publish("in/d", []byte("1"), true, 1)
	var told atomic.Bool
	clk := newHandClock()
	today := clk.wall.Swap(0)
	r, sink, _ := startAt(t, "mqtts://"+ln.Address(), clk, func(c *mqtt.Config) {
		c.TLS = func() (*tls.Config, error) {
			shown, err := tls.LoadX509KeyPair(client[0], client[1])
			return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{shown}}, err
		}
		c.Login = func() (string, []byte, error) {
			if told.Load() {
				return "me", []byte("secret"), nil
			}
			return "me", []byte("wrong"), nil
		}
	})
	eventually(t, "no trust in the clock", func() bool {
		return strings.HasPrefix(r.Status().Problem, "the gateway's clock says 1970-01-01T00:00:00Z, before")
	})
	clk.wall.Store(today)
	eventually(t, "refused", func() bool { return r.Status().State == mqtt.Refused })
	told.Store(true)
	sink.take(t)
	shown, err := tls.LoadX509KeyPair(client[0], client[1])
	if err != nil {
		t.Fatal(err)
	}
	first := min(shown.Leaf.NotAfter.UnixNano(), pair.Leaf.NotAfter.UnixNano())
	if s := r.Status(); s.CertificateEndNS != first || s.Reconnects != 0 {
		t.Errorf("the certificates end at %d, %d reconnects; want %d, 0", s.CertificateEndNS, s.Reconnects, first)
	}

	r, _, _ = start(t, "mqtts://"+ln.Address(), nil) // trusts the host's authorities only
	eventually(t, "waiting", func() bool { return strings.Contains(r.Status().Problem, "certificate") })
}

func TestWebSocket(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	s := newMochi(t, listeners.NewWebsocket(listeners.Config{ID: "w", Address: addr}), "")
	r, sink, _ := start(t, "ws://"+addr, nil)
	eventually(t, "subscribed", func() bool { return len(s.Topics.Subscribers("in/d").Subscriptions) == 1 })
	var got []int64
	for i := range int64(50) {
		s.Publish("in/d", []byte(fmt.Sprint(i)), false, 1)
	}
	got, token := sink.collect(t, 50)
	if !slices.IsSorted(got) {
		t.Errorf("got %v", got)
	}
	r.Committed(token)
	eventually(t, "acknowledged", func() bool {
		cl, ok := s.Clients.Get("tidemark-a")
		return ok && cl.State.Inflight.Len() == 0
	})
}

// certificates writes an authority and two certificates with their keys.
func certificates(t *testing.T) (ca string, server, client [2]string) {
	t.Helper()
	dir := t.TempDir()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sign := func(name string, c *x509.Certificate, key *ecdsa.PrivateKey) [2]string {
		der, err := x509.CreateCertificate(rand.Reader, c, root, &key.PublicKey, rootKey)
		if err != nil {
			t.Fatal(err)
		}
		secret, _ := x509.MarshalECPrivateKey(key)
		return [2]string{write(name+".pem", "CERTIFICATE", der), write(name+".key", "EC PRIVATE KEY", secret)}
	}
	leaf := func(name string, serial int64) [2]string {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return sign(name, &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, key)
	}
	return sign("ca", root, rootKey)[0], leaf("server", 2), leaf("client", 3)
}
