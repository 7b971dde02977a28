package mqtt

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"tidemark/reading"
)

// sparkplugFormat reads Sparkplug B (Eclipse Sparkplug 3.0, chapters 4 to 6): what
// edge nodes and their devices publish under spBv1.0/GROUP/TYPE/NODE[/DEVICE].
//
// A birth names the metrics, and the data after it may name them by alias alone.
// Births are remembered over restarts (Parcel.Memory). Where one is missing, or the
// sequence of an edge node has a gap, the node is asked to be born again.
//
// A birth's values are the state of things, not new measurements: Initial. A death
// idles the device, or the node with all its devices.
type sparkplugFormat struct{ edges *edges }

func (s *subscription) declareSparkplug() error {
	if s.declared() {
		return errors.New("sparkplug has its own time, unit and value, and no ids: take time, id, seq, quality, each, value.path and value.unit.path away")
	}
	if s.Device.Given() || s.pattern.names(devicePart) {
		return errors.New("a sparkplug device is group/node/device: take device away, or name the {asset} with it")
	}
	s.naming = byName
	if !s.Sensor.Given() && !s.pattern.names(sensorPart) {
		s.Sensor.Path = sparkplugMetric
	}
	if !s.Asset.Given() && !s.pattern.names(assetPart) {
		s.Asset.Path = sparkplugDevice
	}
	s.Device.Path, s.Value.Path, s.Value.Unit.Path, s.TimeUnit = sparkplugSource, "value", "engUnit", reading.UnitMillis
	return nil
}

// origin is who a Sparkplug message is from.
type origin struct{ group, node, device string }

// source is how the device is named: group/node/device.
func (o origin) source() string {
	if o.device == "" {
		return o.group + "/" + o.node
	}
	return o.group + "/" + o.node + "/" + o.device
}

// name is the device's id, or the edge node's.
func (o origin) name() string {
	if o.device == "" {
		return o.node
	}
	return o.device
}

// sparkplugTopic reads a topic: the kind of message and who sent it, or why it is
// none of Sparkplug B's. What is for edge nodes, not from them, has no kind.
func sparkplugTopic(topic string) (kind string, from origin, why string) {
	levels := strings.Split(topic, "/")
	if len(levels) > 1 && levels[1] == "STATE" || len(levels) > 2 && (levels[2] == "NCMD" || levels[2] == "DCMD") {
		return "", from, ""
	}
	if len(levels) < 4 || len(levels) > 5 || levels[0] != "spBv1.0" {
		return "", from, "a Sparkplug B topic is spBv1.0/GROUP/TYPE/NODE or spBv1.0/GROUP/TYPE/NODE/DEVICE"
	}
	kind, from = levels[2], origin{group: levels[1], node: levels[3]}
	if len(levels) == 5 {
		from.device = levels[4]
	}
	kinds := []string{"NBIRTH", "NDATA", "NDEATH"}
	if from.device != "" {
		kinds = []string{"DBIRTH", "DDATA", "DDEATH"}
	}
	if !slices.Contains(kinds, kind) {
		return "", from, "a Sparkplug B message is NBIRTH, NDATA or NDEATH of a node, DBIRTH, DDATA or DDEATH of a device, not " + short(kind)
	}
	return kind, from, ""
}

func (f *sparkplugFormat) read(d *Decoder) {
	kind, from, why := sparkplugTopic(d.route.topic)
	switch {
	case why != "":
		d.malformed("not_sparkplug", why)
		return
	case kind == "":
		return
	}
	p, err := parseSparkplug(d.body)
	if err == nil && p.compressed {
		body, ok := d.unpacked(p.unpack(&d.unpack))
		if !ok {
			return
		}
		if p, err = parseSparkplug(body); err == nil && p.compressed {
			err = errors.New("what its compressed body holds is compressed once more")
		}
	}
	if err != nil {
		d.malformed("not_sparkplug", "the payload is no Sparkplug B: "+err.Error())
		return
	}
	e := f.edges.node(from)
	if e == nil {
		d.reject(reading.Unmatched, tooManySeries, "there are more edge nodes and metrics than the sensors that this input may have; raise max_series", "")
		return
	}
	if kind == "NDEATH" {
		f.nodeDeath(d, e, from, p)
		return
	}
	if kind == "NBIRTH" {
		e.born(p)
	}
	if !e.follows(kind, p) {
		f.edges.ask(e, from, d.msg.At.BootNS)
	}
	switch kind {
	case "DDEATH":
		e.forget(from.device)
		f.edges.changed = true
		d.gone(from)
		return
	case "NBIRTH", "DBIRTH":
		f.birth(d, e, from, p)
	}
	f.metrics(d, e, from, p, strings.HasSuffix(kind, "BIRTH"))
}

// birth learns the metrics of a node or a device.
func (f *sparkplugFormat) birth(d *Decoder, e *edge, from origin, p *spPayload) {
	e.forget(from.device)
	f.edges.changed = true
	room := f.edges.room()
	for i := range p.metrics {
		switch m := &p.metrics[i]; {
		case len(m.name) > maxName:
			d.malformed("name_too_long", "the name of a metric has more than "+strconv.Itoa(maxName)+" bytes")
		case i >= room:
			d.reject(reading.Unmatched, tooManySeries, "metric "+short(m.name)+" is one more than the sensors that this input may have; raise max_series", "")
		default:
			e.learn(from.device, m)
		}
	}
}

// nodeDeath idles a node and all its devices, unless it is the will of a session
// before the one that the node was last born in.
func (f *sparkplugFormat) nodeDeath(d *Decoder, e *edge, from origin, p *spPayload) {
	if seq, ok := p.bdSeq(); ok && e.Alive && seq != e.BdSeq {
		return
	}
	d.gone(from)
	for _, device := range e.devices() {
		d.gone(origin{from.group, from.node, device})
	}
	e.die()
	f.edges.changed = true
}

func (d *Decoder) gone(from origin) {
	d.out.Marks = append(d.out.Marks, reading.Mark{Kind: reading.MarkIdle, At: len(d.out.Readings),
		Input: d.router.input, Device: from.source(), TimeMS: reading.NoTime})
}

// metrics hands on what a message measures.
func (f *sparkplugFormat) metrics(d *Decoder, e *edge, from origin, p *spPayload, birth bool) {
	source, name := field{wording, from.source()}, field{wording, from.name()}
	for i := range p.metrics {
		m := &p.metrics[i]
		known := e.find(m, from.device)
		d.breathe()
		d.raw = ""
		switch {
		case known == nil && m.name == "":
			f.edges.ask(e, from, d.msg.At.BootNS)
			d.malformed("alias_unknown", "no birth that was seen names this alias; the edge node is asked to be born again")
			continue
		case known == nil:
			known = &metric{Name: m.name, Type: m.datatype}
		}
		if known.Name == "bdSeq" || strings.HasPrefix(known.Name, "Node Control/") || strings.HasPrefix(known.Name, "Device Control/") {
			continue // of the session, not of the machine
		}
		f.metric(d, known, m, p, source, name, birth)
	}
}

func (f *sparkplugFormat) metric(d *Decoder, known *metric, m *spMetric, p *spPayload, source, name field, birth bool) {
	slots, plan := d.clear(), &d.route.sub.plan
	if at, ok := m.time(p); ok {
		slots[slotTime] = at
	}
	for _, x := range [...]pair{{sparkplugMetric, field{wording, known.Name}}, {sparkplugDevice, name}, {sparkplugSource, source}} {
		plan.putNamed(x.name, x.f, slots)
	}
	if known.Unit != "" {
		slots[slotUnit] = field{wording, known.Unit}
	}
	if !d.begin(-1) {
		return
	}
	if m.historical {
		d.base.Delivery |= reading.Historical
	}
	if birth {
		d.base.Delivery |= reading.Initial
	}
	d.base.Quality = m.quality()
	datatype := m.datatype
	if datatype == 0 {
		datatype = known.Type
	}
	if values, ok := m.array(datatype); ok {
		for i, v := range values {
			slots[slotValue] = v
			d.named(known.Name+"["+decimalName(i)+"]", field{})
		}
		return
	}
	v, why := m.value(datatype)
	if why != "" {
		d.malformed("sparkplug_type", "metric "+short(known.Name)+" "+why)
		return
	}
	slots[slotValue] = v
	d.named("", field{})
}
