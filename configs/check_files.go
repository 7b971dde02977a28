package configs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// CheckFiles looks at what the configuration names on this host: certificates,
// secrets, tag files, the store's directory. Credentials are only there under
// systemd; elsewhere they give a notice. Nothing is changed.
func (c *Config) CheckFiles() (Faults, []Notice) {
	k := newChecker(&Config{file: c.file, places: c.places}, nil, nil)
	for i, in := range c.Inputs {
		p := at("inputs", i)
		if in.MQTT != nil {
			k.tlsFiles(p+".mqtt.tls", in.MQTT.TLS)
			k.secret(p+".mqtt.login.password", in.MQTT.Login.Password)
		}
		if in.OPCUA != nil {
			k.secret(p+".opcua.login.password", in.OPCUA.Login.Password)
			k.tlsFiles(p+".opcua.login", TLS{Cert: in.OPCUA.Login.Cert, Key: in.OPCUA.Login.Key})
			for j, n := range in.OPCUA.Nodes {
				if n.Tags != "" {
					k.tags(at(p+".opcua.nodes", j)+".tags", string(n.Tags))
				}
			}
		}
	}
	for i, u := range c.Uplinks {
		p := at("uplinks", i) + ".mqtt"
		k.tlsFiles(p+".tls", u.MQTT.TLS)
		k.secret(p+".login.password", u.MQTT.Login.Password)
	}
	k.storeDir(filepath.Dir(c.Store.Path.String()))
	return k.faults.sort(), k.Notices
}

// storeDir looks at the directory that the store is created in. Who checks need
// not be who runs, so that a missing permission is only worth a notice.
func (c *checker) storeDir(dir string) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.fault("store.path", "", "the store's directory %s does not exist; create it, or name another store.path (systemd creates it with StateDirectory=)", dir)
	case err != nil:
		c.fault("store.path", "", "cannot look at the store's directory: %v", err)
	case !info.IsDir():
		c.fault("store.path", "", "%s is no directory; name another store.path", dir)
	case syscall.Access(dir, accessWrite) != nil:
		c.notice("store.path", "the user who checks may not write to %s; whoever runs the gateway has to", dir)
	}
}

// accessWrite is W_OK of access(2).
const accessWrite = 2

// tags looks at a tag file. Its faults have its own name and lines.
func (c *checker) tags(p, path string) {
	_, err := readTags(path)
	var faults Faults
	if errors.As(err, &faults) {
		c.faults = append(c.faults, faults...)
	} else if err != nil {
		c.fault(p, "", "%v", err)
	}
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
