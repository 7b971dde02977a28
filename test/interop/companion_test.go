package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/test/process"
)

// TestMosquittoCompanion uses configs/mosquitto.conf and mosquitto.acl as they are
// shipped, with its examples switched on, but for ports and directories: accounts,
// certificates, WebSocket, and a backlog beyond what mosquitto keeps as shipped.
func TestMosquittoCompanion(t *testing.T) {
	begin(t)
	c := newCompanion(t)
	times := newTimeServers(t, 3)
	times.start(t)
	s := &site{broker: c.broker, times: times, gateway: &service{config: filepath.Join(c.dir, "tidemark.yaml")}}
	process.Write(t, s.gateway.config, fmt.Sprintf(`gateway: {id: interop}
clock: {servers: [%s, %s, %s], poll_min: 250ms, poll_max: 1s}
store: {path: tidemark.db, quota: 256MiB, commit_interval: 100ms}
web: {listen: ""}
inputs:
  - name: in
    mqtt:
      url: mqtts://127.0.0.1:%d
      tls: {ca: ca.pem, cert: client.pem, key: {file: client.key}}
      login: {user: tidemark, password: {file: password}}
      subscribe: [{topic: "vib/{asset}/{device}/{sensor}", format: plain}]
  - name: web
    mqtt:
      url: ws://127.0.0.1:%d
      login: {user: tidemark, password: {file: password}}
      subscribe: [{topic: "web/{asset}/{device}/{sensor}", format: plain}]
features:
  - {name: all, window: 5m, functions: [count]}
uplinks:
  - name: up
    mqtt: {url: "mqtt://%s", login: {user: tidemark, password: {file: password}}}
`, times.addrs[0], times.addrs[1], times.addrs[2], c.tls, c.web, c.broker.Addr))
	s.gateway.Process = process.Prepare(t, c.dir, binary, "run", "-c", s.gateway.config)
	s.gateway.ready()
	process.Eventually(t, 20*time.Second, func() error {
		st, err := s.gateway.status()
		if err == nil && (st.Inputs[0].Reader.State != "connected" || st.Inputs[1].Reader.State != "connected" || st.Uplinks[0].State != "online") {
			err = fmt.Errorf("%+v, %+v, %+v", st.Inputs[0].Reader, st.Inputs[1].Reader, st.Uplinks[0])
		}
		return err
	})

	account := map[string]any{"user": "d1", "password": "secret-d1"}
	device := newPahoDevice(t, c.broker, "d1", account)
	say := func(topic string, n int) {
		ps := make([]publish, n)
		for i := range ps {
			ps[i] = publish{Topic: topic, Payload: strconv.Itoa(i)}
		}
		device.publish(ps...)
	}
	say("vib/a/d1/x", 3)
	say("web/a/d1/x", 2)
	none := 0
	other := newPahoDevice(t, c.broker, "liar", account) // mosquitto 2.0.11 hangs up on it
	other.publish(publish{Topic: "vib/a/d2/x", Payload: "1", QoS: &none})
	counted := func(in, web uint64) func() error {
		return func() error {
			st, err := s.gateway.status()
			if err == nil && (st.Inputs[0].Counts.Received != in || st.Inputs[1].Counts.Received != web) {
				err = fmt.Errorf("received %d and %d, want %d and %d", st.Inputs[0].Counts.Received, st.Inputs[1].Counts.Received, in, web)
			}
			return err
		}
	}
	process.Eventually(t, 20*time.Second, counted(3, 2))

	s.gateway.stop()
	say("vib/a/d1/x", 5000)
	c.broker.End(syscall.SIGTERM) // and the broker restarts meanwhile
	c.broker.Start()
	s.gateway.ready()
	process.Eventually(t, 60*time.Second, counted(5003, 2))
	s.gateway.stop()
}

// companion is a mosquitto as configs/mosquitto.conf has it.
type companion struct {
	broker   *process.Mosquitto
	dir      string
	tls, web int // ports
}

func newCompanion(t *testing.T) *companion {
	t.Helper()
	c := &companion{dir: process.Scratch(t), tls: process.FreePort(t, "tcp"), web: process.FreePort(t, "tcp")}
	port := process.FreePort(t, "tcp")
	shipped, err := os.ReadFile("../../configs/mosquitto.conf")
	if err != nil {
		t.Fatal(err)
	}
	text := string(shipped)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if len(l) > 1 && l[0] == '#' && l[1] != ' ' {
			lines[i] = l[1:]
		}
	}
	text = strings.Join(lines, "\n")
	for _, x := range [][2]string{
		{"\nlistener 1883\n", fmt.Sprintf("\nlistener %d 127.0.0.1\n", port)}, {"\nlistener 8883\n", fmt.Sprintf("\nlistener %d 127.0.0.1\n", c.tls)},
		{"\nlistener 9001\n", fmt.Sprintf("\nlistener %d 127.0.0.1\n", c.web)}, {" /etc/mosquitto/certs/", " " + c.dir + "/"}, {" /etc/mosquitto/", " " + c.dir + "/"},
		{" /var/lib/mosquitto/", " " + c.dir + "/"},
	} {
		if !strings.Contains(text, x[0]) {
			t.Fatalf("mosquitto.conf no longer has %q", x[0])
		}
		text = strings.ReplaceAll(text, x[0], x[1])
	}
	conf := filepath.Join(c.dir, "mosquitto.conf")
	process.Write(t, conf, text+"user root\n")
	acl, err := os.ReadFile("../../configs/mosquitto.acl")
	if err != nil {
		t.Fatal(err)
	}
	process.Write(t, filepath.Join(c.dir, "acl"), string(acl))
	process.Write(t, filepath.Join(c.dir, "password"), "secret-tidemark\n")
	for i, user := range []string{"tidemark", "d1"} {
		args := []string{"-b", filepath.Join(c.dir, "passwd"), user, "secret-" + user}
		if i == 0 {
			args = append([]string{"-c"}, args...)
		}
		if out, err := exec.Command("mosquitto_passwd", args...).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_passwd: %v: %s", err, out)
		}
	}
	c.certificates(t)
	c.broker = &process.Mosquitto{Process: process.Prepare(t, c.dir, "mosquitto", "-c", conf), Addr: process.Loopback(port)}
	c.broker.Start()
	return c
}

// certificates makes an authority, and certificates of server and gateway.
func (c *companion) certificates(t *testing.T) {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "plant"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root := c.key(t, "ca.key")
	c.certificate(t, "ca.pem", authority, authority, root, root)
	for i, name := range []string{"server", "client"} {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 2)), Subject: pkix.Name{CommonName: name}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		c.certificate(t, name+".pem", leaf, authority, c.key(t, name+".key"), root)
	}
}

func (c *companion) key(t *testing.T, name string) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	process.Write(t, filepath.Join(c.dir, name), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	return k
}

func (c *companion) certificate(t *testing.T, name string, cert, parent *x509.Certificate, key, by *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	process.Write(t, filepath.Join(c.dir, name), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}
