package configs_test

import (
	"strings"
	"testing"

	"tidemark/configs"
)

// A password stands in no file that others read; where it is, is said.
func TestStartNamesTheCredential(t *testing.T) {
	in := configs.StartOPCUA{Name: "plant", Endpoint: "opc.tcp://10.0.3.20:4840", Security: "none", User: "operator", Under: "/Objects", Match: "{sensor}"}
	text, err := in.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/etc/tidemark/credentials/plant:", "login: {user: operator, password: {credential: plant}}"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

// What a visit to a server needed stands in the input that it proposes.
func TestStartKeepsTheCertificatesHost(t *testing.T) {
	in := configs.StartOPCUA{Name: "plant", Endpoint: "opc.tcp://10.0.3.20:4840", Security: "Basic256Sha256/SignAndEncrypt", Under: "/Objects", Match: "{asset}/{sensor}"}
	for host, want := range map[string]bool{"kepware.plant.example": true, "": false} {
		in.CertificateHost = host
		text, err := in.YAML()
		if err != nil || strings.Contains(string(text), "certificate_host: "+host) != want {
			t.Errorf("%q: %v\n%s", host, err, text)
		}
	}
}
