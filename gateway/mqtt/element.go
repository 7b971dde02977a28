package mqtt

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tidemark/reading"
)

// element reads one element of the message at hand. index is its place under
// each, -1 if the message is one element; key is its name in an object.
func (d *Decoder) element(e gjson.Result, index int, key string) {
	sub := d.route.sub
	if index >= 0 {
		d.raw = e.Raw
	}
	sub.plan.find(e, d.slots[:fixedSlots+len(sub.Sensors)])
	base := reading.Reading{
		Source:   reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeNull},
		ServerNS: reading.NoTime,
		IngestNS: d.msg.At.WallNS,
		Stamp:    reading.Stamp{IngestBound: d.bound, Clock: d.msg.At.Segment},
	}
	if d.msg.Retain {
		base.Delivery |= reading.Initial
	}
	if d.msg.Dup {
		base.Delivery |= reading.Redelivered
	}
	if v := d.meta(slotTime); v.Exists() {
		base.Source = inZone(sourceTime(v, sub.TimeUnit), d.zone)
	}
	if v := d.meta(slotQuality); v.Exists() {
		base.Quality = levelOf(v, sub.QualityMap)
	}
	d.identity(&base, index)
	n := &d.route.names
	if !sub.fixed {
		own, ok := d.names(base.ID)
		if !ok {
			return
		}
		n = &own
	}
	if sub.naming == byField {
		d.fields(&base, n)
		return
	}
	d.named(&base, n, e, key)
}

// meta returns a field that may stand in the element or around it.
func (d *Decoder) meta(slot int) gjson.Result {
	if v := d.slots[slot]; v.Exists() || d.route.sub.Each == "" || d.route.sub.plan.paths[slot] == "" {
		return v
	}
	if !d.looked {
		d.looked = true
		d.route.sub.plan.around(d.root, d.around[:])
	}
	return d.around[slot]
}

// identity reads the event id and the sequence number (SEMANTICS D1).
func (d *Decoder) identity(r *reading.Reading, index int) {
	if v := d.meta(slotID); v.Exists() {
		if id, ok := word(v); ok && id != "" && len(id) <= maxName {
			if index >= 0 {
				r.ID = id + "#" + strconv.Itoa(index)
			} else {
				r.ID = strings.Clone(id)
			}
		}
	}
	if v := d.meta(slotSeq); v.Exists() {
		text, _ := word(v)
		if seq, ok := parseDecimal(text); ok && seq.exp == 0 && !seq.neg && !seq.full {
			r.Seq, r.HasSeq = seq.digits, true
		}
	}
}

// word is the text of a string, number or boolean.
func word(v gjson.Result) (string, bool) {
	switch v.Type {
	case gjson.String:
		return v.Str, true
	case gjson.Number, gjson.True, gjson.False:
		return v.Raw, true
	}
	return "", false
}

// names completes the route's names from the element.
func (d *Decoder) names(id string) (n names, ok bool) {
	n = d.route.names
	for _, w := range [...]struct {
		part     part
		slot     int
		required bool
	}{{assetPart, slotAsset, true}, {devicePart, slotDevice, true}, {lifecyclePart, slotLifecycle, false}} {
		if d.route.sub.plan.paths[w.slot] == "" {
			continue
		}
		text, found := word(d.meta(w.slot))
		switch {
		case len(text) > maxName:
			d.tooLong(id)
			return n, false
		case found && text != "":
			n[w.part] = text
		case w.required:
			d.missing(id, d.route.sub.plan.paths[w.slot])
			return n, false
		}
	}
	return n, true
}

func (d *Decoder) missing(id, path string) {
	d.reject(reading.Malformed, "field_missing", "there is nothing at "+path+"; send it, or mend the path", id)
}

func (d *Decoder) tooLong(id string) {
	d.reject(reading.Malformed, "name_too_long", "a name has more than "+strconv.Itoa(maxName)+" bytes", id)
}

// fields reads an element with a field for each sensor. A field that is not
// there is no fault as long as another one is.
func (d *Decoder) fields(base *reading.Reading, n *names) {
	sub := d.route.sub
	found := false
	for i := range sub.Sensors {
		v := d.slots[fixedSlots+i]
		if !v.Exists() {
			continue
		}
		found = true
		var id *tagID
		if d.route.ids != nil {
			id = d.route.ids[i]
		}
		if id == nil {
			id = d.router.tag(tagKey{sub, n[assetPart], n[devicePart], n[lifecyclePart], sub.Sensors[i].Name})
			if d.route.ids != nil {
				d.route.ids[i] = id
			}
		}
		d.reading(base, id, i, v)
	}
	if !found {
		d.reject(reading.Malformed, "field_missing", "none of the sensors is there; mend sensors.*.path", base.ID)
	}
}

// named reads an element of one sensor.
func (d *Decoder) named(base *reading.Reading, n *names, e gjson.Result, key string) {
	sub := d.route.sub
	name := n[sensorPart]
	if sub.naming == byKey {
		name = key
	} else if path := sub.plan.paths[slotSensor]; path != "" {
		var ok bool
		if name, ok = word(d.slots[slotSensor]); !ok || name == "" {
			if name, ok = word(d.meta(slotSensor)); !ok || name == "" {
				d.missing(base.ID, path)
				return
			}
		}
	}
	if len(name) > maxName {
		d.tooLong(base.ID)
		return
	}
	id := d.router.tag(tagKey{sub, n[assetPart], n[devicePart], n[lifecyclePart], name})
	if id.sensor < 0 && len(sub.Sensors) > 0 {
		d.reject(reading.Unmatched, "sensor_unknown", "sensor "+strings.Clone(name)+" is not among sensors; add it there", base.ID)
		return
	}
	v := e
	if path := sub.plan.paths[slotValue]; path != "" && (sub.naming != byKey || e.IsObject()) {
		if v = d.slots[slotValue]; !v.Exists() {
			d.missing(base.ID, path)
			return
		}
	}
	d.reading(base, id, id.sensor, v)
}

// reading appends the reading of one value; sensor is -1 if it is not listed.
func (d *Decoder) reading(base *reading.Reading, id *tagID, sensor int, v gjson.Result) {
	sub := d.route.sub
	rule, unit := &sub.rule, sub.Value.Unit.Text
	if sensor >= 0 {
		rule = &sub.rules[sensor]
		if u := sub.Sensors[sensor].Unit; u != "" {
			unit = u
		}
	}
	value, level, f := rule.read(v)
	if f.code != "" {
		d.reject(reading.Malformed, f.code, "value of sensor "+id.tag.Value().Sensor+" is "+string(excerpt(v.Raw)[:min(len(v.Raw), 40)])+": "+f.hint, base.ID)
		return
	}
	if unit == "" && sub.plan.paths[slotUnit] != "" {
		if text, ok := word(d.meta(slotUnit)); ok && len(text) <= maxName {
			unit = d.unit(text)
		}
	}
	d.out.Readings = append(d.out.Readings, *base)
	r := &d.out.Readings[len(d.out.Readings)-1]
	r.Value, r.Unit = value, unit
	r.Quality.Level = worse(base.Quality.Level, level)
	if r.Tag = id.tag; len(id.specimens) > 0 {
		at := base.Source.NS
		if !base.Source.Given() {
			at = base.IngestNS
		}
		r.Tag = id.at(at)
	}
}

// unit returns text as a string that is kept once.
func (d *Decoder) unit(text string) string {
	if u, ok := d.units.get(text); ok {
		return u
	}
	u := strings.Clone(text)
	d.units.put(u, u)
	return u
}
