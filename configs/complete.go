package configs

import "path/filepath"

// complete fills in the defaults that depend on other parts of the tree.
func (c *checker) complete(host string) {
	if c.Gateway.ID == "" && !c.places.given("gateway.id") {
		if c.Gateway.ID = host; host == "" {
			c.fault("gateway.id", "", "gateway.id is missing, and this host has no name to stand in for it")
		} else {
			c.notice("", "gateway.id is not given; the host's name %q stands in every record and topic in its place", host)
		}
	}
	if !c.places.given("pki.dir") {
		c.PKI.Dir = Path(filepath.Join(filepath.Dir(c.Store.Path.String()), "pki"))
	}
	for i := range c.Inputs {
		if m := c.Inputs[i].MQTT; m != nil {
			c.completeMQTT(at("inputs", i)+".mqtt", c.Inputs[i].Name, m)
		}
	}
	for i := range c.Uplinks {
		u := &c.Uplinks[i]
		if !c.places.given(at("uplinks", i) + ".mqtt.client_id") {
			u.MQTT.ClientID = "tidemark-" + c.Gateway.ID + "-up-" + u.Name
		}
	}
	if c.Features == nil {
		c.Features = []Feature{defaultFeature(c.Config)}
		c.notice("", "no feature is configured: one named default takes every number, window %v", c.Defaults.Window)
	}
	for i := range c.Features {
		if f := &c.Features[i]; !c.places.given(at("features", i) + ".every") {
			f.Every = f.Window
		}
	}
	for i := range c.Features {
		c.Features[i].hash(c.Config)
	}
}

func (c *checker) completeMQTT(p, name string, m *MQTTInput) {
	if !c.places.given(p + ".client_id") {
		m.ClientID = "tidemark-" + c.Gateway.ID + "-in-" + name
	}
	for i := range m.Subscribe {
		s := &m.Subscribe[i]
		for j := range s.Sensors {
			if x := &s.Sensors[j]; x.Path == "" && !s.namesSensors() {
				x.Path = x.Name
			}
		}
	}
}
