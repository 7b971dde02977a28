package configs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tidemark/internal/topic"
	"tidemark/reading"
)

func (c *checker) inputs() {
	if len(c.Inputs) == 0 {
		c.notice("", "no input is configured: nothing is collected")
	}
	names := make([]string, len(c.Inputs))
	for i, in := range c.Inputs {
		p := at("inputs", i)
		names[i] = in.Name
		c.name(p+".name", in.Name)
		switch {
		case in.MQTT == nil && in.OPCUA == nil:
			if !c.misspelt(p, "mqtt", "opcua") {
				c.fault(p, "", "an input has a source: mqtt or opcua")
			}
		case in.MQTT != nil && in.OPCUA != nil:
			c.fault(p+".opcua", "", "an input has one source, mqtt or opcua; make it two inputs")
		case in.MQTT != nil:
			c.mqtt(p+".mqtt", in.MQTT)
		default:
			c.opcua(p+".opcua", in.OPCUA)
		}
		c.timestamps(p+".timestamps", &in)
	}
	c.unique("input", "inputs", names)
}

func (c *checker) timestamps(p string, in *Input) {
	t := in.Timestamps
	if in.MQTT != nil && t.Use == UseServer {
		c.fault(p+".use", "", "MQTT has no server timestamps; use source or ingest")
	}
	if in.MQTT != nil && t.WhenWrong == reading.PolicyUseServer {
		c.fault(p+".when_wrong", "use_ingest", "MQTT has no server timestamps")
	}
	if t.Ordered && in.shared() {
		c.fault(p+".ordered", "", "a shared subscription breaks the order: what one gateway leaves unacknowledged another may get behind newer readings, and would quarantine; take ordered or share away")
	}
	if t.WhenWrong == reading.PolicyTrusted {
		c.notice(p+".when_wrong", "the times of input %q are trusted without check: for benches, simulators and replayed history", in.Name)
	}
	within(c, p+".max_ahead", t.MaxAhead, 0, Day)
	within(c, p+".max_behind", t.MaxBehind, Duration(time.Second), 3660*Day)
	within(c, p+".max_delay", t.MaxDelay, Duration(time.Millisecond), Duration(time.Hour))
}

// connection checks what every MQTT session has.
func (c *checker) connection(p string, u URL, tls TLS, login Login) {
	secure := u.Scheme == "mqtts" || u.Scheme == "wss"
	schemes := []string{"mqtt", "mqtts", "ws", "wss"}
	if u.Host != "" && !slices.Contains(schemes, u.Scheme) {
		near := map[string]string{"tcp": "mqtt", "ssl": "mqtts", "tls": "mqtts", "http": "ws", "https": "wss"}[u.Scheme]
		if near == "" {
			near = Nearest(u.Scheme, schemes)
		}
		if near != "" {
			v := u
			v.Scheme = near
			near = v.String()
		}
		c.fault(p+".url", near, "%q is no MQTT scheme; use mqtt, mqtts, ws or wss", clip(u.Scheme))
	} else if u.Hostname() == "" && u.Scheme != "" {
		c.fault(p+".url", "", "the address names no host")
	} else if (u.Scheme == "mqtt" || u.Scheme == "ws") && tls != (TLS{}) {
		v := u
		v.Scheme += "s"
		c.fault(p+".tls", v.String(), "tls has no effect with %s", u.Scheme)
	}
	if (tls.Cert != "") != tls.Key.Given() && !c.misspelt(p+".tls", "cert", "key") && !c.misspelt(p+".tls.key", secretKeys...) {
		c.fault(p+".tls", "", "cert and key go together")
	}
	c.login(p+".login", login)
	if login.Password.Given() && !secure && u.Scheme != "" && !local(u.Hostname()) {
		c.notice(p+".url", "the password travels unencrypted to %s", u.Host)
	}
}

func (c *checker) login(p string, l Login) {
	if l.Password.Given() && l.User == "" && !c.misspelt(p, "user") {
		c.fault(p, "", "a password needs a user")
	}
}

// local reports whether a host is this one by its name.
func local(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

func (c *checker) mqtt(p string, m *MQTTInput) {
	c.connection(p, m.URL, m.TLS, m.Login)
	c.clientID(p+".client_id", m.ClientID)
	within(c, p+".receive_maximum", m.ReceiveMaximum, 1, 65535)
	within(c, p+".keep_alive", m.KeepAlive, Duration(time.Second), 65535*Duration(time.Second))
	within(c, p+".session_expiry", m.SessionExpiry, Duration(time.Second), 3660*Day)
	within(c, p+".max_payload", m.MaxPayload, 1, 256<<20)
	within(c, p+".max_series", m.MaxSeries, 1, 1_000_000)
	if len(m.Subscribe) == 0 && c.places.given(p+".subscribe") {
		c.fault(p+".subscribe", "", "an MQTT input subscribes to something")
	}
	unpaced := 0
	for i := range m.Subscribe {
		unpaced += c.subscribe(at(p+".subscribe", i), &m.Subscribe[i])
		c.beside(at(p+".subscribe", i)+".topic", &m.Subscribe[i], m.Subscribe[:i])
	}
	c.presence(p+".presence", m)
	if m.SparkplugHost != "" {
		c.name(p+".sparkplug_host", m.SparkplugHost)
		switch {
		case strings.ContainsAny(m.SparkplugHost, "/+#"):
			c.fault(p+".sparkplug_host", "", "the id of a host application is a level of a topic: no / + or #")
		case !slices.ContainsFunc(m.Subscribe, func(s Subscribe) bool { return s.Format == FormatSparkplug }):
			c.fault(p+".sparkplug_host", "", "a host application reads Sparkplug, and no subscription has format: sparkplug")
		}
	}
	if unpaced > 0 {
		c.notice(p, "sensors without expect_every (%d): the coverage of their features has no ratio", unpaced)
	}
}

// beside reports a subscription that takes messages of those before it.
func (c *checker) beside(p string, s *Subscribe, before []Subscribe) {
	for i := range before {
		b := &before[i]
		// The gateway leaves out of a session what another filter covers.
		covered := b.Share == s.Share && (topic.Covers(b.Topic, s.Topic) && b.QoS >= s.QoS || topic.Covers(s.Topic, b.Topic) && s.QoS >= b.QoS)
		switch {
		case s.Topic == b.Topic:
			c.fault(p, "", "this topic is subscribed to twice; one subscription reads all its sensors")
			return
		case !covered && topic.Meet(s.Topic, b.Topic):
			c.notice(p, "a broker may send what matches %s and %s once for each (mosquitto does), and readings with neither id nor time would count twice: write a topic that covers the other, with the same qos and share, or topics that do not meet", s.Topic, b.Topic)
		}
	}
}

// subscribe returns how many sensors have no expect_every.
func (c *checker) subscribe(p string, s *Subscribe) (unpaced int) {
	captured := c.topic(p+".topic", s.Topic)
	within(c, p+".qos", s.QoS, 0, 2)
	if s.QoS == 0 {
		c.notice(p+".qos", "with qos 0 the broker forgets a message at once: what comes while the gateway is down or full is lost")
	}
	if strings.ContainsAny(s.Share, "/+#") {
		c.fault(p+".share", "", "the group of a shared subscription has no / + or #")
	}
	for _, o := range []struct {
		key    string
		origin Origin
	}{{"asset", s.Asset}, {"device", s.Device}, {"lifecycle", s.Lifecycle}, {"sensor", s.Sensor}} {
		if o.origin.Given() && slices.Contains(captured, o.key) {
			c.fault(p+"."+o.key, "", "the topic names the %s already, by {%s}", o.key, o.key)
		}
		if o.origin.Text != "" {
			c.name(p+"."+o.key, o.origin.Text)
		}
	}
	c.format(p, s)
	named := s.namesSensors()
	switch {
	case named:
	case c.misspelt(p, "sensor", "sensors", "value", "topic", "each"): // a fault already
	case c.places.given(p + ".value"):
		c.fault(p+".value", "", "value wants to know the sensor: {sensor} in the topic, or sensor: {path: …}")
	case len(s.Sensors) == 0:
		c.fault(p, "", "no sensor is read: give sensors, or sensor and value for payloads that name it")
	}
	for i := range s.Sensors {
		c.sensor(at(p+".sensors", i), &s.Sensors[i], named)
		if s.Sensors[i].ExpectEvery == 0 {
			unpaced++
		}
	}
	return unpaced
}

func (c *checker) sensor(p string, s *Sensor, named bool) {
	c.name(p, s.Name)
	if named && c.places.given(p+".path") {
		c.fault(p+".path", "", "where the payload names the sensor, value.path says where its value is")
	}
	if s.Type != TypeNumber {
		for _, key := range []string{"range", "scale", "offset", "unit"} {
			if c.places.given(p + "." + key) {
				c.fault(p+"."+key, "", "a %s has no %s", s.Type, key)
			}
		}
	}
	if s.Scale == 0 {
		c.fault(p+".scale", "", "a scale of 0 makes every value the same")
	}
	if c.places.given(p + ".expect_every") {
		within(c, p+".expect_every", s.ExpectEvery, Duration(time.Millisecond), 366*Day)
	}
	c.alarmAfter(p+".alarm_after", s.AlarmAfter, s.ExpectEvery)
	c.unit(p+".unit", s.Unit)
}

// alarmAfter reports an alarm that a sensor in good order would raise.
func (c *checker) alarmAfter(p string, alarm, every Duration) {
	switch {
	case !c.places.given(p) || alarm == 0:
	case alarm < every:
		c.fault(p, "", "%v is below expect_every, %v: a sensor that speaks as expected would be called silent", alarm, every)
	default:
		within(c, p, alarm, Duration(time.Second), 366*Day)
	}
}

// misunits are unit spellings that UCUM has otherwise.
var misunits = map[string]string{
	"°C": "Cel", "C": "Cel", "degC": "Cel", "celsius": "Cel", "°F": "[degF]", "degF": "[degF]", "rpm": "{rpm}/min", "RPM": "{rpm}/min",
	"psi": "[psi]", "sec": "s", "hr": "h", "percent": "%", "µm": "um", "Ω": "Ohm", "m³/h": "m3/h", "m/s²": "m/s2",
}

// unit reports what cannot be UCUM.
func (c *checker) unit(p, unit string) {
	if near, reason := wrongUnit(unit); reason != "" {
		c.fault(p, near, "%s", reason)
	}
}

// wrongUnit returns why unit cannot be UCUM, which is ASCII without spaces (UCUM
// §1), and what may have been meant.
func wrongUnit(unit string) (near, reason string) {
	if near, ok := misunits[unit]; ok {
		return near, fmt.Sprintf("%q is no UCUM unit", unit)
	}
	if strings.ContainsFunc(unit, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Sprintf("%q is no UCUM unit: those are ASCII without spaces", clip(unit))
	}
	return "", ""
}

var captures = []string{"asset", "device", "sensor", "lifecycle"}

// topic checks a filter and returns what it captures (MQTT 5 §4.7).
func (c *checker) topic(p, topic string) (captured []string) {
	if topic == "" {
		if c.places.given(p) {
			c.fault(p, "", "a topic cannot be empty")
		}
		return nil
	}
	if len(topic) > 65535 || strings.ContainsRune(topic, 0) {
		c.fault(p, "", "a topic is at most 65535 bytes long")
		return nil
	}
	if strings.HasPrefix(topic, "$share/") {
		c.fault(p, "", "a shared subscription is written as share: GROUP beside the topic")
		return nil
	}
	levels := strings.Split(topic, "/")
	for i, level := range levels {
		switch {
		case level == "#" && i != len(levels)-1:
			c.fault(p, "", "# stands for all levels below and comes last")
		case level == "#" || level == "+":
		case strings.HasPrefix(level, "{") && strings.HasSuffix(level, "}"):
			name := level[1 : len(level)-1]
			if !slices.Contains(captures, name) {
				near := Nearest(name, captures)
				if near != "" {
					near = "{" + near + "}"
				}
				c.fault(p, near, "a topic has no %q; it can name {asset}, {device}, {sensor} and {lifecycle}", clip(level))
			} else if slices.Contains(captured, name) {
				c.fault(p, "", "{%s} stands in the topic twice", name)
			}
			captured = append(captured, name)
		case strings.ContainsAny(level, "+#{}"):
			c.fault(p, "", "in %q a wildcard or a name in braces shares its level; it takes the whole level", clip(level))
		}
	}
	return captured
}
