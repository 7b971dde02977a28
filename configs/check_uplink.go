package configs

import (
	"slices"
	"strings"
)

func (c *checker) uplinks() {
	if len(c.Uplinks) == 0 {
		c.notice("", "no uplink is configured: features stay in the store")
	}
	names := make([]string, len(c.Uplinks))
	for i := range c.Uplinks {
		u, p := &c.Uplinks[i], at("uplinks", i)
		names[i] = u.Name
		c.name(p+".name", u.Name)
		c.connection(p+".mqtt", u.MQTT.URL, u.MQTT.TLS, u.MQTT.Login)
		c.clientID(p+".mqtt.client_id", u.MQTT.ClientID)
		c.prefix(p+".prefix", u.Prefix)
		within(c, p+".backlog.rate", u.Backlog.Rate, 0, 1_000_000)
		c.records(p, u)
	}
	c.unique("uplink", "uplinks", names)
}

// records checks which records go to an uplink, and in what.
func (c *checker) records(p string, u *Uplink) {
	within(c, p+".batch", u.Batch, 0, 10_000)
	for i := range u.Raw {
		c.selection(at(p+".raw", i), &u.Raw[i])
	}
	for i, t := range u.Records {
		if slices.Contains(u.Records[:i], t) {
			c.fault(at(p+".records", i), "", "%s stands there twice", t)
		}
	}
	wants := func(t RecordType) bool { return len(u.Records) == 0 || slices.Contains(u.Records, t) }
	if len(u.Records) > 0 && u.Publish == PublishFinal && wants(RecordClosed) {
		c.notice(p+".records", "closed has no effect with publish: final: the one record of a window says that it is closed")
	}
	if u.Retain && !wants(RecordFeature) {
		c.notice(p+".retain", "retain has no effect: no features are sent")
	}
}

// prefix checks the first levels of published topics (MQTT 5 §4.7).
func (c *checker) prefix(p, prefix string) {
	switch {
	case prefix == "":
		c.fault(p, "tidemark", "a prefix cannot be empty")
	case strings.ContainsAny(prefix, "+#\x00"):
		c.fault(p, "", "a prefix has no + or #: nobody can publish to a wildcard")
	case strings.HasPrefix(prefix, "$"):
		c.fault(p, strings.TrimLeft(prefix, "$"), "topics that begin with $ belong to the broker")
	case strings.HasPrefix(prefix, "/") || strings.HasSuffix(prefix, "/"):
		c.fault(p, strings.Trim(prefix, "/"), "a prefix neither begins nor ends with a slash")
	case len(prefix) > 1024:
		c.fault(p, "", "a prefix is at most 1024 bytes long")
	}
}

// clientID checks what names a session at the broker (MQTT 5 §3.1.3.1).
func (c *checker) clientID(p, id string) {
	if id == "" || len(id) > 65535 || strings.ContainsRune(id, 0) {
		c.fault(p, "", "a client_id is 1 to 65535 bytes long")
	}
}

// sessions reports two sessions of one broker with one client id: they would
// take the connection from each other for ever.
func (c *checker) sessions() {
	type session struct{ host, id string }
	first := map[session]string{}
	see := func(p string, u URL, id string) {
		s := session{u.Host, id}
		if other, ok := first[s]; ok && u.Host != "" {
			c.fault(p+".client_id", "", "the client_id %q is used at the same broker in line %d; two sessions of one name push each other out",
				clip(id), c.places.of(other+".client_id").line)
			return
		}
		first[s] = p
	}
	for i, in := range c.Inputs {
		if in.MQTT != nil {
			see(at("inputs", i)+".mqtt", in.MQTT.URL, in.MQTT.ClientID)
		}
	}
	for i, u := range c.Uplinks {
		see(at("uplinks", i)+".mqtt", u.MQTT.URL, u.MQTT.ClientID)
	}
}
