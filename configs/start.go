package configs

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"text/template"
)

//go:embed start.yaml.tmpl
var startText string

// A gateway that runs as a service is configured by ServiceFile and keeps its store
// in ServiceDir.
const (
	ServiceFile = "/etc/tidemark/tidemark.yaml"
	ServiceDir  = "/var/lib/tidemark"
)

// Start returns an annotated configuration to begin with: one input, one feature,
// and the NTP servers that are not public. The input is what opcua says; nil: a
// broker on this host and one topic. With service the store is in ServiceDir, else
// beside the file, where whoever tries it may write.
func Start(host string, servers []HostServer, service bool, opcua *StartOPCUA) ([]byte, error) {
	t, err := template.New("start").Funcs(template.FuncMap{"yaml": quoted}).Parse(startText)
	if err != nil {
		return nil, err
	}
	input := ""
	if opcua != nil {
		text, err := opcua.YAML()
		if err != nil {
			return nil, err
		}
		input = string(text)
	}
	var proposed, public []HostServer
	for _, s := range servers {
		if s.Public {
			public = append(public, s)
		} else {
			proposed = append(proposed, s)
		}
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{"Host": host, "Servers": proposed, "Public": public, "Service": service, "Dir": ServiceDir, "Secrets": CredentialFiles, "Input": input, "OPCUA": opcua})
	return b.Bytes(), err
}

//go:embed start_opcua.yaml.tmpl
var startOPCUA string

// StartOPCUA is an OPC UA input to begin with, as found at a server.
type StartOPCUA struct {
	Name     string `json:"name"`
	Endpoint string `json:"endpoint"`
	Security string `json:"security"`
	// CertificateHost is what the server's certificate names, if not the endpoint's host.
	CertificateHost string   `json:"certificate_host,omitempty"`
	User            string   `json:"user,omitempty"`
	Under           string   `json:"under"`
	Match           string   `json:"match"`
	Exclude         []string `json:"exclude,omitempty"`
}

// YAML returns the input as an element of inputs, annotated.
func (s *StartOPCUA) YAML() ([]byte, error) {
	t, err := template.New("opcua").Funcs(template.FuncMap{"yaml": quoted}).Parse(startOPCUA)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		*StartOPCUA
		Secrets string
	}{s, CredentialFiles})
	return b.Bytes(), err
}

// quoted returns s as a YAML value: plain if it is a plain word, else in double
// quotes.
func quoted(s string) (string, error) {
	if s != "" && !strings.EqualFold(s, "null") && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == "" &&
		strings.ContainsAny(s[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") {
		return s, nil
	}
	b, err := json.Marshal(s)
	return string(b), err
}
