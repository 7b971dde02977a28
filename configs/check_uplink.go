package configs

import "strings"

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
		c.withoutEffect(p, u)
	}
	c.unique("uplink", "uplinks", names)
}

// withoutEffect says which choices of an uplink nothing heeds yet.
func (c *checker) withoutEffect(p string, u *Uplink) {
	if u.Publish != PublishAll {
		c.notice(p+".publish", "publish: %s has no effect in this version: every result is published", u.Publish)
	}
	if u.Backlog.Order != LiveFirst {
		c.notice(p+".backlog.order", "order: %s has no effect in this version: every record goes in the order of its making, with new ones behind", u.Backlog.Order)
	}
	if u.Backlog.Rate != 0 {
		c.notice(p+".backlog.rate", "rate has no effect in this version: a backlog goes as fast as the broker takes it")
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
