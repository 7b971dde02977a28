package configs

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tidemark/internal/topic"
	"tidemark/reading"
)

// format checks that a subscription asks of its payloads what their format has.
func (c *checker) format(p string, s *Subscribe) {
	never := func(why string, keys ...string) {
		for _, key := range keys {
			if c.places.given(p + "." + key) {
				c.fault(p+"."+key, "", "%s", why)
			}
		}
	}
	if s.Format != FormatJSON {
		never(string(s.Format)+" has no arrays below a path; it is json that has", "each", "waveform")
	}
	if s.Format != FormatCSV {
		never("csv is for format: csv", "csv")
	}
	if s.Format != FormatInflux && c.places.given(p+".time") && s.Time.Path == "" && s.Format != FormatPlain && s.Format != FormatSenML && s.Format != FormatSparkplug {
		if !c.misspelt(p+".time", "path") {
			c.fault(p+".time", "", "path is missing")
		}
	}
	switch s.Format {
	case FormatPlain:
		never("a plain payload is the value alone and has no fields", "time", "id", "seq", "quality", "value.path", "value.unit.path")
		if s.Sensor.Path != "" {
			c.fault(p+".sensor", "", "a plain payload has no fields; name the sensor by {sensor} in the topic or by sensor: NAME")
		}
	case FormatInflux:
		never("a line has its time at its end; time.unit alone says what it counts", "time.path")
	case FormatSenML:
		never("SenML says this itself", "time", "id", "seq", "quality", "value.path", "value.unit.path")
	case FormatSparkplug:
		never("Sparkplug says itself what is compressed", "gzip")
		never("Sparkplug says this itself", "time", "id", "seq", "quality", "value.path", "value.unit.path")
		if s.Share != "" {
			c.fault(p+".share", "", "Sparkplug data are understood by the births before them, and a shared subscription gives those to one gateway and these to another; take share away")
		}
		if s.Device.Given() || slices.Contains(strings.Split(s.Topic, "/"), "{device}") {
			c.fault(p+".topic", "", "a Sparkplug device is group/node/device; take device away, or name the {asset} with it")
		}
	case FormatCSV:
		c.csv(p, s)
	}
	c.waveform(p, s)
}

func (c *checker) csv(p string, s *Subscribe) {
	if utf8.RuneCountInString(s.CSV.Separator) != 1 || strings.ContainsAny(s.CSV.Separator, "\"\r\n\uFFFD") {
		c.fault(p+".csv.separator", ",", "a separator is one character, and neither a quote nor the end of a line")
	}
	if len(s.CSV.Columns) == 0 {
		return
	}
	wanted := map[string]string{"time.path": s.Time.Path, "id.path": s.ID.Path, "seq.path": s.Seq.Path, "quality.path": s.Quality.Path, "value.path": s.Value.Path}
	for i := range s.Sensors {
		wanted[at("sensors", i)+".path"] = s.Sensors[i].Path
	}
	for key, column := range wanted {
		if column != "" && !slices.Contains(s.CSV.Columns, column) {
			c.fault(p+"."+key, Nearest(column, s.CSV.Columns), "csv.columns has no %q", clip(column))
		}
	}
}

func (c *checker) waveform(p string, s *Subscribe) {
	w := s.Waveform
	if w == nil {
		return
	}
	p += ".waveform"
	switch {
	case c.misspelt(p, "rate", "step"):
	case w.Rate.Given() == (w.Step.Path != ""):
		c.fault(p, "", "a waveform has a rate, in samples a second, or a step, the time between two samples")
	case w.Step.Path != "" && w.Step.Unit == reading.UnitNone:
		c.fault(p+".step", "", "is the step in s, ms, us or ns? say unit")
	case s.Time.Path == "":
		c.fault(p, "", "samples are counted from the start: say where it is, with time")
	}
	if r, err := strconv.ParseFloat(w.Rate.Text, 64); w.Rate.Text != "" && (err != nil || !(r > 0 && r < 1e18)) {
		c.fault(p+".rate", "", "%q is no number of samples a second", clip(w.Rate.Text))
	}
}

// presence checks the topics that say whether a device is there.
func (c *checker) presence(p string, m *MQTTInput) {
	for i := range m.Presence {
		x, p := &m.Presence[i], at(p, i)
		captured := c.topic(p+".topic", x.Topic)
		within(c, p+".qos", x.QoS, 0, 2)
		device := slices.Contains(captured, "device")
		switch {
		case device && x.Device != "":
			c.fault(p+".device", "", "the topic names the device already, by {device}")
		case !device && x.Device == "" && !slices.Contains(captured, "sensor") && x.Topic != "":
			c.fault(p+".topic", "", "whose presence is it? the topic names the {device}, or device does")
		}
		if x.Device != "" {
			c.name(p+".device", x.Device)
		}
		if len(x.Gone) == 0 {
			c.fault(p+".gone", "[offline]", "nothing means that the device is gone")
		}
		if slices.ContainsFunc(m.Subscribe, func(s Subscribe) bool { return s.Topic == x.Topic }) {
			c.fault(p+".topic", "", "this topic is subscribed to for readings already")
		}
		if slices.ContainsFunc(m.Presence[:i], func(o Presence) bool { return o.Topic == x.Topic }) {
			c.fault(p+".topic", "", "this topic stands under presence twice")
		}
	}
}

// echoes reports inputs that would read what the gateway publishes: every feature
// would become a reading, and that a feature.
func (c *checker) echoes() {
	for i := range c.Inputs {
		in := c.Inputs[i].MQTT
		if in == nil {
			continue
		}
		p := at("inputs", i) + ".mqtt"
		for _, u := range c.Uplinks {
			if hostOf(in.URL) != hostOf(u.MQTT.URL) || in.URL.Host == "" {
				continue
			}
			own := u.Prefix + "/v1/" + c.Gateway.ID
			for j := range in.Subscribe {
				c.echo(at(p+".subscribe", j)+".topic", in.Subscribe[j].Topic, own, u.Name, portOf(in.URL) == portOf(u.MQTT.URL))
			}
			for j := range in.Presence {
				c.echo(at(p+".presence", j)+".topic", in.Presence[j].Topic, own, u.Name, portOf(in.URL) == portOf(u.MQTT.URL))
			}
		}
	}
}

func (c *checker) echo(p, filter, own, uplink string, same bool) {
	switch {
	case !topic.Meet(filter, own+"/+/#"):
	case same:
		c.fault(p, "", "this takes in what uplink %s publishes to the same broker, below %s: the gateway would read its own results; subscribe to less, or give the uplink a prefix outside", uplink, own)
	default:
		c.notice(p, "if this is the broker of uplink %s, the gateway would read its own results, below %s", uplink, own)
	}
}

// hostOf is a host by one name.
func hostOf(u URL) string {
	if local(u.Hostname()) {
		return "localhost"
	}
	return strings.ToLower(u.Hostname())
}

func portOf(u URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"mqtt": "1883", "mqtts": "8883", "ws": "80", "wss": "443"}[u.Scheme]
}
