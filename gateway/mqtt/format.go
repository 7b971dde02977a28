package mqtt

import (
	"errors"
	"fmt"
	"strings"

	"tidemark/reading"
)

// Format is how payloads are written. The zero Format is JSON.
type Format uint8

const (
	JSON      Format = iota
	Plain            // the payload is the value
	CSV              // a line with columns for each element
	Influx           // InfluxDB line protocol
	SenML            // RFC 8428, as JSON
	Sparkplug        // Eclipse Sparkplug B 3.0
)

// String returns the format's name in a configuration.
func (f Format) String() string {
	return [...]string{"json", "plain", "csv", "influx", "senml", "sparkplug"}[min(f, Sparkplug)]
}

// The names of what a format says besides what its writer named.
const (
	influxMeasurement = "@measurement" // of a line of line protocol
	senmlName         = "name"         // bn and n in one
	sparkplugMetric   = "metric"
	sparkplugDevice   = "device" // the device's id, or the edge node's for its own metrics
	sparkplugSource   = "source" // group/node/device, or group/node
)

// declare settles what a format leaves no choice about, and how the sensor is
// known.
func (s *subscription) declare() error {
	named := s.Sensor.Given() || s.pattern.names(sensorPart)
	if s.Gzip && s.Format == Sparkplug {
		return errors.New("sparkplug says itself what is compressed: take gzip away")
	}
	switch s.Format {
	case Plain:
		return s.declarePlain(named)
	case SenML:
		return s.declareSenML()
	case Sparkplug:
		return s.declareSparkplug()
	case Influx:
		if s.TimePath != "" {
			return errors.New("time.path: a line has its time at its end; give time.unit alone")
		}
		if s.TimeUnit == reading.UnitNone {
			s.TimeUnit = reading.UnitNanos
		}
	}
	if s.Waveform != nil {
		if err := s.declareWaveform(); err != nil {
			return err
		}
	}
	switch {
	case s.Format != JSON && s.Each != "":
		return fmt.Errorf("each: %v has no arrays", s.Format)
	case s.Format != JSON && s.Waveform != nil:
		return fmt.Errorf("waveform: %v has no arrays; waveforms are JSON", s.Format)
	case named:
		s.naming = byName
		if s.Format == Influx && s.Value.Path == "" {
			s.Value.Path = "value"
		}
		if s.Format == CSV && s.Value.Path == "" {
			return errors.New("value.path: which column is the value?")
		}
	case s.Format != JSON && len(s.Sensors) == 0:
		s.naming = byKey
	case s.Each != "" && (len(s.Sensors) == 0 || s.Value.Path != ""):
		s.naming = byKey
	case len(s.Sensors) == 0:
		return errors.New("nothing names the sensor; give sensors, sensor, or a {sensor} in the topic")
	}
	return nil
}

func (s *subscription) declarePlain(named bool) error {
	switch {
	case !named || s.Sensor.Path != "":
		return errors.New("a plain payload is one value: name its sensor by {sensor} in the topic or by sensor: NAME")
	case s.Each != "" || s.Value.Path != "" || s.Value.Unit.Path != "" || s.Waveform != nil || s.inner():
		return errors.New("a plain payload is one value and has no fields: take the paths away, or declare another format")
	}
	s.naming = byName
	return nil
}

// inner reports whether anything beside the value is to be found in the payload.
func (s *subscription) inner() bool {
	return s.TimePath+s.IDPath+s.SeqPath+s.QualityPath+s.Asset.Path+s.Device.Path+s.Lifecycle.Path != ""
}

func newFormat(s *subscription, edges *edges) format {
	switch s.Format {
	case Plain:
		return plainFormat{}
	case CSV:
		return newCSVFormat(s)
	case Influx:
		return &influxFormat{sub: s}
	case SenML:
		return &senmlFormat{}
	case Sparkplug:
		return &sparkplugFormat{edges}
	}
	return newJSONFormat(s)
}

// pair is a named value of a flat format.
type pair struct {
	name string
	f    field
}

// flat hands on an element whose fields are in the slots already; values are those
// that no slot took, for payloads in which each is a sensor.
func (d *Decoder) flat(index int, values []pair) {
	if !d.begin(index) {
		return
	}
	switch d.route.sub.naming {
	case byField:
		d.fields()
	case byKey:
		for _, v := range values {
			d.named(v.name, v.f)
		}
	default:
		d.named("", field{})
	}
}

// plainFormat reads payloads that are one value: 21.5, true, ON.
type plainFormat struct{}

func (plainFormat) read(d *Decoder) {
	d.clear()
	if !d.begin(-1) {
		return
	}
	text := strings.TrimSpace(strings.TrimRight(d.raw, "\x00"))
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	d.named("", scalar(text))
}
