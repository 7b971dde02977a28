package configs

import (
	"slices"
	"strings"
	"time"
)

func (c *checker) opcua(p string, o *OPCUA) {
	if o.Endpoint.Host != "" && o.Endpoint.Scheme != "opc.tcp" {
		u := o.Endpoint
		u.Scheme = "opc.tcp"
		c.fault(p+".endpoint", u.String(), "%q is no OPC UA scheme", clip(o.Endpoint.Scheme))
	}
	if o.Security == "none" && !local(o.Endpoint.Hostname()) {
		c.notice(p+".security", "the connection is neither signed nor encrypted")
	}
	c.login(p+".login", Login{User: o.Login.User, Password: o.Login.Password})
	switch l := o.Login; {
	case l.User != "" && l.Cert != "":
		c.fault(p+".login", "", "log in with a user or with a certificate, not with both")
	case (l.Cert != "") != l.Key.Given():
		c.fault(p+".login", "", "a certificate and its key come together: cert and key")
	}
	within(c, p+".sampling", o.Sampling, 0, Day)
	within(c, p+".publishing", o.Publishing, Duration(10*time.Millisecond), Day)
	within(c, p+".backfill.max", o.Backfill.Max, 0, 366*Day)
	if len(o.Nodes) == 0 && c.places.given(p+".nodes") {
		c.fault(p+".nodes", "", "an OPC UA input names nodes")
	}
	for i, n := range o.Nodes {
		c.nodes(at(p+".nodes", i), &n)
	}
}

func (c *checker) nodes(p string, n *Nodes) {
	switch {
	case n.Tags != "" && (n.Under != "" || n.Match != "" || n.Asset != "" || len(n.Exclude) > 0):
		c.fault(p, "", "nodes come from tags: FILE or from under and match, not both")
	case c.misspelt(p, "tags", "under", "match"): // a fault already
	case n.Tags == "" && n.Under == "":
		c.fault(p, "", "names no nodes: give under and match, or tags: FILE")
	case n.Tags == "":
		c.browseRule(p, n)
	}
	if n.Deadband.Percent < 0 || n.Deadband.Percent > 100 {
		c.fault(p+".deadband.percent", "", "%v is out of range: 0 to 100", n.Deadband.Percent)
	}
	if n.Deadband.Absolute < 0 {
		c.fault(p+".deadband.absolute", "", "a deadband is not below 0")
	}
	if n.Deadband.Percent != 0 && n.Deadband.Absolute != 0 {
		c.fault(p+".deadband", "", "a deadband is percent or absolute, not both")
	}
	if n.Deadband != (Deadband{}) && n.Trigger != TriggerStatusValue {
		c.fault(p+".trigger", "", "servers pass over a deadband where the trigger is %s: leave one of them out", n.Trigger)
	}
}

func (c *checker) browseRule(p string, n *Nodes) {
	if wrong := wrongNode(n.Under); wrong != "" {
		c.fault(p+".under", "", "%s", wrong)
	}
	if n.Asset != "" {
		c.name(p+".asset", n.Asset)
	}
	levels := strings.Split(n.Match, "/")
	if !slices.Contains(levels, "{sensor}") {
		c.fault(p+".match", "{asset}/{sensor}", "match names the {sensor} in the browse path")
		return
	}
	for i, level := range levels {
		name, ok := strings.CutPrefix(level, "{")
		name, closed := strings.CutSuffix(name, "}")
		switch {
		case level == "":
			c.fault(p+".match", "", "an empty level in %q", clip(n.Match))
		case ok && closed && !slices.Contains(captures, name):
			near := Nearest(name, captures)
			if near != "" {
				near = "{" + near + "}"
			}
			c.fault(p+".match", near, "match has no %q; it can name {asset}, {device}, {sensor} and {lifecycle}", clip(level))
		case ok && closed && slices.Contains(levels[:i], level):
			c.fault(p+".match", "", "%s stands in match twice", level)
		case (!ok || !closed) && strings.ContainsAny(level, "{}"):
			c.fault(p+".match", "", "in %q a name in braces shares its level; it takes the whole level", clip(level))
		case level == "{asset}" && n.Asset != "":
			c.fault(p+".asset", "", "match names the asset already, by {asset}")
		}
	}
}

// wrongNode returns what is wrong with the way that a node is named, if anything:
// nsu=URI;s=NAME, i=NUMBER, or a browse path from the root.
func wrongNode(text string) string {
	if strings.HasPrefix(text, "/") {
		if strings.Contains(strings.ReplaceAll(text, "&&", "")+"/", "//") {
			return "a browse path has no empty levels, as in /Objects/Line3"
		}
		return ""
	}
	local := text
	switch rest, uri := strings.CutPrefix(text, "nsu="); {
	case uri:
		var namespace string
		namespace, local, _ = strings.Cut(rest, ";")
		if namespace == "" {
			local = ""
		}
	case strings.HasPrefix(text, "ns=0;"):
		local = text[len("ns=0;"):]
	case strings.HasPrefix(text, "ns="):
		return "a namespace goes by its URI: its index may be another one after the server's next start; write nsu=URI;… (`tidemark browse` shows it)"
	}
	if len(local) < 3 || !strings.ContainsRune("isgb", rune(local[0])) || local[1] != '=' {
		return "this is no node id; write nsu=URI;s=NAME (or i=, g=, b= in place of s=), or a browse path such as /Objects/Line3"
	}
	return ""
}
