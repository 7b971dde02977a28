package mqtt

import (
	"strconv"
	"strings"

	"tidemark/reading"
)

// begin reads what holds for all values of the element whose fields are in the
// slots. index is its place among the message's elements, -1 if it is the only
// one. It returns false where the element is rejected as a whole.
func (d *Decoder) begin(index int) bool {
	sub := d.route.sub
	r := &d.base
	r.ID, r.Seq, r.HasSeq, r.Quality, r.Delivery = "", 0, false, reading.Quality{}, d.delivery
	if v := d.meta(slotTime); v.exists() {
		r.Source = inZone(sourceTime(v, sub.TimeUnit), d.zone)
	} else {
		r.Source = noTime
	}
	if v := d.meta(slotQuality); v.exists() {
		r.Quality = levelOf(v, sub.QualityMap)
	}
	d.identity(index)
	d.names = &d.route.names
	return sub.fixed || d.naming()
}

// meta returns a field that may stand in the element or around it.
func (d *Decoder) meta(slot int) field {
	if v := d.slots[slot]; v.exists() || !d.enclosed {
		return v
	}
	return d.around[slot]
}

// identity reads the event id and the sequence number (SEMANTICS D1).
func (d *Decoder) identity(index int) {
	if v := d.meta(slotID); v.exists() {
		if id, ok := v.word(); ok && id != "" && len(id) <= maxName {
			if index >= 0 {
				d.base.ID = id + "#" + strconv.Itoa(index)
			} else {
				d.base.ID = strings.Clone(id)
			}
		}
	}
	if v := d.meta(slotSeq); v.exists() {
		text, _ := v.word()
		if seq, ok := parseDecimal(text); ok && seq.exp == 0 && !seq.neg && !seq.full {
			d.base.Seq, d.base.HasSeq = seq.digits, true
		}
	}
}

// naming completes the route's names from the element.
func (d *Decoder) naming() bool {
	d.own = d.route.names
	d.names = &d.own
	for _, w := range [...]struct {
		part     part
		slot     int
		required bool
	}{{assetPart, slotAsset, true}, {devicePart, slotDevice, true}, {lifecyclePart, slotLifecycle, false}} {
		path := d.route.sub.plan.paths[w.slot]
		if path == "" {
			continue
		}
		text, found := d.meta(w.slot).word()
		switch {
		case len(text) > maxName:
			d.tooLong()
			return false
		case found && text != "":
			d.own[w.part] = text
		case w.required:
			d.missing(path)
			return false
		}
	}
	return true
}

func (d *Decoder) missing(path string) {
	d.reject(reading.Malformed, "field_missing", "there is nothing at "+path+"; send it, or mend the path", d.base.ID)
}

func (d *Decoder) tooLong() {
	d.reject(reading.Malformed, "name_too_long", "a name has more than "+strconv.Itoa(maxName)+" bytes", d.base.ID)
}

// fields reads an element with a field for each sensor. A field that is not
// there is no fault as long as another one is.
func (d *Decoder) fields() {
	sub := d.route.sub
	found := false
	for i := range sub.Sensors {
		v := d.slots[fixedSlots+i]
		if !v.exists() {
			continue
		}
		found = true
		var id *series
		if d.route.ids != nil {
			id = d.route.ids[i]
		}
		if id = d.known(id, sub.Sensors[i].Name); id == nil {
			continue
		}
		if d.route.ids != nil {
			d.route.ids[i] = id
		}
		d.value(id, i, v)
	}
	if !found {
		d.reject(reading.Malformed, "field_missing", "none of the sensors is there; mend sensors.*.path", d.base.ID)
	}
}

// named reads an element of one sensor. key is its name unless the topic or the
// element has it; e is its value unless that stands in a slot.
func (d *Decoder) named(key string, e field) {
	sub := d.route.sub
	id := d.sensor(key)
	if id == nil {
		return
	}
	if id.sensor < 0 && len(sub.Sensors) > 0 {
		d.reject(reading.Unmatched, "sensor_unknown", "sensor "+id.name+" is not among sensors; add it there", d.base.ID)
		return
	}
	if path := sub.plan.paths[slotValue]; path != "" && (sub.naming != byKey || e.kind == nested) {
		if e = d.slots[slotValue]; !e.exists() {
			d.missing(path)
			return
		}
	}
	d.value(id, id.sensor, e)
}

// sensor returns the series that key, the topic or the element names; nil, and a
// reject, if there is none.
func (d *Decoder) sensor(key string) *series {
	rt := d.route
	path := rt.sub.plan.paths[slotSensor]
	if key == "" && path == "" {
		id := d.known(rt.only, d.names[sensorPart])
		if rt.sub.fixed {
			rt.only = id
		}
		return id
	}
	if key == "" {
		var ok bool
		if key, ok = d.meta(slotSensor).word(); !ok || key == "" {
			d.missing(path)
			return nil
		}
	}
	if len(key) > maxName {
		d.tooLong()
		return nil
	}
	if !rt.sub.fixed {
		return d.known(nil, key)
	}
	met := rt.named[key]
	id := d.known(met, key)
	if id != met && id != nil {
		rt.remember(id)
	}
	return id
}

// known returns the series of a sensor: id, if that is it still. It is nil, and
// the value rejected, where the input has as many series as it may.
func (d *Decoder) known(id *series, sensor string) *series {
	if id == nil || id.forgotten {
		n := d.names
		if id = d.router.series(seriesKey{d.route.sub, n[assetPart], n[devicePart], n[lifecyclePart], sensor}); id == nil {
			d.reject(reading.Unmatched, tooManySeries, "sensor "+short(sensor)+" is one more than the "+
				strconv.Itoa(d.router.maxSeries)+" that this input may have; is the topic or the sensor's name something that changes all the time? else raise max_series", d.base.ID)
			return nil
		}
	}
	id.seen = d.router.epoch
	return id
}

// value appends the reading of one value; sensor is -1 if it is not listed.
func (d *Decoder) value(id *series, sensor int, v field) {
	sub := d.route.sub
	rule, unit := &sub.rule, sub.Value.Unit.Text
	if sensor >= 0 {
		rule = &sub.rules[sensor]
		if u := sub.Sensors[sensor].Unit; u != "" {
			unit = u
		}
	}
	if unit == "" && sub.plan.paths[slotUnit] != "" {
		if text, ok := d.meta(slotUnit).word(); ok && len(text) <= maxName {
			unit = d.unit(text)
		}
	}
	if sub.Waveform != nil && v.kind == nested {
		d.waveform(id, rule, unit, v)
		return
	}
	d.sample(id, rule, unit, v)
}

// sample appends the reading of one value at the element's time.
func (d *Decoder) sample(id *series, rule *valueRule, unit string, v field) {
	value, level, f := rule.read(v)
	if f.code != "" {
		d.reject(reading.Malformed, f.code, "value of sensor "+id.name+" is "+short(v.raw())+": "+f.hint, d.base.ID)
		return
	}
	d.out.Readings = append(d.out.Readings, d.base)
	r := &d.out.Readings[len(d.out.Readings)-1]
	r.Value, r.Unit = value, unit
	r.Quality.Level = max(d.base.Quality.Level, level)
	at := d.base.Source.NS
	if !d.base.Source.Given() {
		at = d.base.IngestNS
	}
	r.Tag = id.tags.At(at)
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
