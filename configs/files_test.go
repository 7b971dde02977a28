package configs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"tidemark/configs"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	c, err := configs.Load(write(t, dir, "t.yaml", "gateway: {id: g}\nstore: {path: t.db}\n"))
	if err != nil || c.Store.Path.String() != filepath.Join(dir, "t.db") {
		t.Errorf("a relative path is not taken from the file's directory: %v, %v", c, err)
	}
	if _, err := configs.Load(filepath.Join(dir, "none.yaml")); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	write(t, dir, "cred", "pässword \r\n")
	file := write(t, dir, "file", "one\ntwo\n")
	write(t, dir, "empty", "\n")
	write(t, dir, "large", strings.Repeat("x", 65<<10))
	for _, x := range []struct {
		name   string
		secret configs.Secret
		want   string
		err    string
	}{
		{"none", configs.Secret{}, "", ""},
		{"credential, its line break cut", configs.Secret{Credential: "cred"}, "pässword ", ""},
		{"file, inner line breaks kept", configs.Secret{File: configs.Path(file)}, "one\ntwo", ""},
		{"empty", configs.Secret{Credential: "empty"}, "", "cannot read credential empty: it is empty"},
		{"too long", configs.Secret{Credential: "large"}, "", "cannot read credential large: longer than 65536 bytes"},
		{"missing", configs.Secret{File: "/nowhere/x"}, "", "cannot read file /nowhere/x: no such file or directory"},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, err := x.secret.Read()
			if string(got) != x.want || (err == nil) != (x.err == "") || err != nil && err.Error() != x.err {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if s := fmt.Sprintf("%v %+v", configs.Secret{Credential: "cred"}, configs.Login{User: "u", Password: configs.Secret{File: "f"}}); s != "credential cred {User:u Password:file f}" {
		t.Errorf("prints as %s", s)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	if _, err := (configs.Secret{Credential: "cred"}).Read(); err == nil || !strings.Contains(err.Error(), "LoadCredential=cred") {
		t.Errorf("without systemd: %v", err)
	}
}

// keyPair returns a self-signed certificate and its key in PEM.
func keyPair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(4e9, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", secret)
}

func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	cert, key := keyPair(t)
	other, _ := keyPair(t)
	for name, text := range map[string]string{"ca.pem": cert, "cert.pem": cert, "other.pem": other, "key.pem": key, "no.pem": "x", "pw": "geheim"} {
		write(t, dir, name, text)
	}
	const head = `
gateway: {id: g}
clock: {trust: local}
store: {path: t.db}
uplinks: []
features: []
inputs:
`
	for _, x := range []struct{ name, inputs, fault, notice string }{
		{"all there", `  - {name: a, mqtt: {url: "mqtts://h", tls: {ca: ca.pem, cert: cert.pem, key: {file: key.pem}}, login: {user: u, password: {file: pw}}, subscribe: [{topic: "x/{sensor}"}]}}`, "", ""},
		{"no authority", `  - {name: a, mqtt: {url: "mqtts://h", tls: {ca: none.pem}, subscribe: [{topic: "x/{sensor}"}]}}`, `8:45: cannot read tls.ca: open DIR/none.pem: no such file or directory`, ""},
		{"an authority that is none", `  - {name: a, mqtt: {url: "mqtts://h", tls: {ca: no.pem}, subscribe: [{topic: "x/{sensor}"}]}}`, `8:45: tls.ca DIR/no.pem holds no certificate in PEM`, ""},
		{"the key of another", `  - {name: a, mqtt: {url: "mqtts://h", tls: {cert: other.pem, key: {file: key.pem}}, subscribe: [{topic: "x/{sensor}"}]}}`, `8:45: tls.cert DIR/other.pem and its key: tls: private key does not match public key`, ""},
		{"no password", `  - {name: a, mqtt: {url: "mqtts://h", login: {user: u, password: {file: none}}, subscribe: [{topic: "x/{sensor}"}]}}`, `8:67: cannot read file DIR/none: no such file or directory`, ""},
		{"credentials away from systemd", `  - {name: a, mqtt: {url: "mqtts://h", login: {user: u, password: {credential: x}}, subscribe: [{topic: "x/{sensor}"}]}}`, "", `8:67: credential "x" is only there under systemd (LoadCredential); it was not looked at`},
		{"no tag file", `  - {name: a, opcua: {endpoint: "opc.tcp://h", nodes: [{tags: tags.csv}]}}`, `8:63: cannot read the file: open DIR/tags.csv: no such file or directory`, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			file := filepath.Join(dir, "t.yaml")
			c, err := configs.Parse(file, []byte(head+x.inputs+"\n"), "h")
			if err != nil {
				t.Fatal(err)
			}
			faults, notices := c.CheckFiles()
			lines := []string{}
			for _, n := range notices {
				lines = append(lines, n.String())
			}
			short := func(s string) string {
				return strings.ReplaceAll(strings.ReplaceAll(s, file+":", ""), dir, "DIR")
			}
			if got := short(faults.Error()); got != x.fault {
				t.Errorf("faults %q, want %q", got, x.fault)
			}
			if got := short(strings.Join(lines, "\n")); got != x.notice {
				t.Errorf("notices %q, want %q", got, x.notice)
			}
		})
	}
}

func TestCheckFilesLooksAtTheStoresDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "x")
	for path, want := range map[string]string{
		"t.db":      "",
		"no/t.db":   "1:15: the store's directory DIR/no does not exist; create it, or name another store.path (systemd creates it with StateDirectory=)",
		"file/t.db": "1:15: DIR/file is no directory; name another store.path",
	} {
		file := filepath.Join(dir, "t.yaml")
		c, err := configs.Parse(file, []byte("store: {path: "+path+"}\n"), "h")
		if err != nil {
			t.Fatal(err)
		}
		faults, _ := c.CheckFiles()
		got := strings.ReplaceAll(strings.ReplaceAll(faults.Error(), file+":", ""), dir, "DIR")
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// The first configuration is a bench that works, but for whoever vouches for the clock.
func TestStartExplainsTheBench(t *testing.T) {
	text, err := configs.Start("line-3", nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	bench := strings.Replace(string(text), "#trust: local", "trust: local", 1)
	c := mustParse(t, bench)
	if c.Clock.Trust != configs.TrustLocal || len(c.Uplinks) != 1 || c.Uplinks[0].MQTT.URL.String() != "mqtt://127.0.0.1:1883" {
		t.Errorf("trust %s, uplinks %v", c.Clock.Trust, c.Uplinks)
	}
}

func TestHostServers(t *testing.T) {
	host := fstest.MapFS{
		"etc/chrony/chrony.conf":                        {Data: []byte("# server 192.0.2.99\npool 2.debian.pool.ntp.org iburst\nserver 10.0.3.1 iburst\n  SERVER ntp.plant.example prefer\nserver\n")},
		"etc/chrony/sources.d/plant.sources":            {Data: []byte("peer 10.0.3.2\n")},
		"run/chrony-dhcp/eth0.sources":                  {Data: []byte("server 10.0.3.3 iburst\n")},
		"etc/systemd/timesyncd.conf":                    {Data: []byte("[Time]\n#NTP=192.0.2.98\nNTP=10.0.3.1 fd00::1\nFallbackNTP=0.debian.pool.ntp.org\n")},
		"etc/systemd/timesyncd.conf.d/10-public.conf":   {Data: []byte("[Time]\nNTP=time.cloudflare.com\n")},
		"run/systemd/timesyncd.conf.d/01-dhclient.conf": {Data: []byte("# NTP server entries received from DHCP server\n[Time]\nNTP=10.0.3.5 10.0.3.3\n")},
		"run/systemd/netif/leases/2":                    {Data: []byte("ADDRESS=10.0.3.77\nDNS=10.0.3.9\nNTP=10.0.3.6\n")},
		"var/lib/dhcp/dhclient.eth0.leases":             {Data: []byte("lease {\n  option routers 10.0.3.9;\n  option ntp-servers 10.0.3.7,10.0.3.3;\n}\n")},
		"etc/ntp.conf":                                  {Data: []byte("server 127.127.1.0\nserver 10.0.3.4\nserver bad/name\nrestrict default\n")},
		"etc/systemd/timesyncd.conf.d/binary.conf":      {Data: []byte{0xff, 0, '\n'}},
		"etc/systemd/timesyncd.conf.d/dir.conf/ignore":  {Data: nil},
	}
	var got []string
	for _, s := range configs.HostServers(host) {
		got = append(got, fmt.Sprint(s.Server, " ", s.Public))
	}
	want := []string{"10.0.3.1 false", "ntp.plant.example false", "10.0.3.2 false", "10.0.3.3 false", "fd00::1 false", "10.0.3.5 false", "10.0.3.6 false", "10.0.3.7 false", "10.0.3.4 false",
		"2.debian.pool.ntp.org true", "time.cloudflare.com true"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Whatever a host is called and was told, its first configuration is valid and
// names no public server.
func TestStartIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.OneOf(rapid.StringMatching(`[a-z0-9-]{1,63}`), rapid.SampledFrom([]string{"007", "no", "1e3", "~", "null", "-", "a: b", "ü", "0x1f"})).Draw(t, "host")
		servers := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9][a-z0-9.]{1,20}|fd00::[0-9a-f]{1,4}|10\.0\.0\.[1-9]`), 0, 5, rapid.ID).Draw(t, "servers")
		conf := "pool 2.debian.pool.ntp.org iburst\n"
		for _, s := range servers {
			conf += "server " + s + "\n"
		}
		service := rapid.Bool().Draw(t, "service")
		text, err := configs.Start(host, configs.HostServers(fstest.MapFS{"etc/chrony.conf": {Data: []byte(conf)}}), service, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := configs.Parse("start.yaml", text, "")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if c.Gateway.ID != host || !slices.Equal(c.Clock.Servers, servers) {
			t.Fatalf("host %q, servers %v\n%s", c.Gateway.ID, c.Clock.Servers, text)
		}
		if want := map[bool]string{true: "/var/lib/tidemark/tidemark.db", false: "tidemark.db"}[service]; c.Store.Path.String() != want {
			t.Fatalf("the store is %s, want %s", c.Store.Path, want)
		}
	})
}
