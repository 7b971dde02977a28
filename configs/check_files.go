package configs

import (
	"os"
	"path/filepath"
)

// CheckFiles looks at what the configuration names on this host: certificates,
// secrets, tag files, the store's directory. Credentials are only there under
// systemd; elsewhere they give a notice. Nothing is changed.
func (c *Config) CheckFiles() (Faults, []Notice) {
	k := newChecker(&Config{file: c.file, places: c.places}, nil)
	for i, in := range c.Inputs {
		p := at("inputs", i)
		if in.MQTT != nil {
			k.tlsFiles(p+".mqtt.tls", in.MQTT.TLS)
			k.secret(p+".mqtt.login.password", in.MQTT.Login.Password)
		}
		if in.OPCUA != nil {
			k.secret(p+".opcua.login.password", in.OPCUA.Login.Password)
			for j, n := range in.OPCUA.Nodes {
				k.readable(at(p+".opcua.nodes", j)+".tags", n.Tags)
			}
		}
	}
	for i, u := range c.Uplinks {
		p := at("uplinks", i) + ".mqtt"
		k.tlsFiles(p+".tls", u.MQTT.TLS)
		k.secret(p+".login.password", u.MQTT.Login.Password)
	}
	if dir := filepath.Dir(c.Store.Path.String()); !isDir(dir) {
		k.notice("store.path", "the directory %s does not exist on this host yet", dir)
	}
	return k.faults.sort(), k.Notices
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (c *checker) readable(p string, path Path) {
	if path == "" {
		return
	}
	f, err := os.Open(string(path))
	if err != nil {
		c.fault(p, "", "cannot read the file: %v", err)
		return
	}
	f.Close()
}

// secret reports whether a secret could be read.
func (c *checker) secret(p string, s Secret) bool {
	if s.Credential != "" && os.Getenv("CREDENTIALS_DIRECTORY") == "" {
		c.notice(p, "credential %q is only there under systemd (LoadCredential); it was not looked at", s.Credential)
		return false
	}
	if _, err := s.Read(); err != nil {
		c.fault(p, "", "%v", err)
		return false
	}
	return true
}

func (c *checker) tlsFiles(p string, t TLS) {
	if t.Key.Given() && !c.secret(p+".key", t.Key) {
		t.Cert = "" // without its key only the authority can be looked at
	}
	if _, err := t.Load(); err != nil {
		c.fault(p, "", "%v", err)
	}
}
