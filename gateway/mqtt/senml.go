package mqtt

import (
	"errors"
	"strconv"
	"strings"

	"tidemark/reading"
)

// senmlFormat reads a SenML pack in JSON (RFC 8428): records with base values that
// hold for those after them, resolved as section 4.6 has it. A sum (s) is the
// reading of a sensor of its own, named as the record with .sum behind. A time
// below 2^28 is relative to the arrival (section 4.5.3).
//
// In the configuration a record's fields have the names name (bn and n in one), bn,
// n and u.
type senmlFormat struct {
	base senmlRecord
}

// senmlRecord has a record's fields, in their order here: those of which the base
// holds for the records after it first.
type senmlRecord struct {
	bn, bt, bu, bv, bs, bver field
	n, u, v, vs, vb, vd, s   field
	t                        field
	foreign                  string // a field that must be understood and is not
}

// senmlVersion is the newest version of SenML that is understood.
const senmlVersion = 10

// senmlRelative is below which seconds are from now, not since 1970.
const senmlRelative = 1 << 28 * int64(1e9)

func (s *subscription) declareSenML() error {
	if s.declared() {
		return errors.New("senml has its own time, unit and value, and no ids: take time, id, seq, quality, each, value.path and value.unit.path away")
	}
	s.naming = byName
	if !s.Sensor.Given() && !s.pattern.names(sensorPart) {
		s.Sensor.Path = senmlName
	}
	s.Value.Path, s.Value.Unit.Path, s.TimeUnit = "v", "u", reading.UnitSeconds
	return nil
}

// declared reports whether something is declared that a format has of its own.
func (s *subscription) declared() bool {
	return s.TimePath+s.IDPath+s.SeqPath+s.QualityPath+s.Each+s.Value.Path+s.Value.Unit.Path != "" || s.Waveform != nil
}

func (f *senmlFormat) read(d *Decoder) {
	s := d.raw
	if p := (scanner{s: s}); !p.skip() || !p.end() {
		d.malformed("not_json", "the payload is no JSON; SenML comes as JSON")
		return
	}
	p := scanner{s: s}
	if p.next() != '[' {
		d.malformed("not_senml", "the payload is no SenML: a pack is an array of records")
		return
	}
	f.base = senmlRecord{}
	p.each(func(int, string, bool) bool {
		d.breathe()
		return f.record(d, &p)
	})
}

// record reads a record; it returns false to leave the rest of the pack.
func (f *senmlFormat) record(d *Decoder, p *scanner) bool {
	if p.next() != '{' {
		d.raw = ""
		d.malformed("not_senml", "a record of the pack is no object")
		return p.skip()
	}
	start := p.i
	var r senmlRecord
	p.each(func(_ int, name string, _ bool) bool {
		v, ok := p.any()
		r.put(name, v)
		return ok
	})
	d.raw = p.s[start:p.i]
	f.base.inherit(&r)
	if n, ok := parseDecimal(f.base.bver.text); f.base.bver.exists() && (!ok || n.exp != 0 || n.digits > senmlVersion) {
		d.malformed("senml_version", "the pack is of SenML version "+short(f.base.bver.text)+"; versions up to "+strconv.Itoa(senmlVersion)+" are understood")
		return false
	}
	if r.foreign != "" {
		d.malformed("senml_field", "the pack says that field "+short(r.foreign)+" must be understood, and it is not")
		return false
	}
	f.resolve(d, &r)
	return true
}

func (r *senmlRecord) put(name string, v field) {
	into := map[string]*field{"bn": &r.bn, "bt": &r.bt, "bu": &r.bu, "bv": &r.bv, "bs": &r.bs, "bver": &r.bver,
		"n": &r.n, "u": &r.u, "v": &r.v, "vs": &r.vs, "vb": &r.vb, "vd": &r.vd, "s": &r.s, "t": &r.t}[name]
	switch {
	case into != nil:
		*into = v
	case strings.HasSuffix(name, "_"):
		r.foreign = name
	}
}

// inherit takes the base values that a record sets.
func (r *senmlRecord) inherit(from *senmlRecord) {
	for _, x := range [...]struct{ to, from *field }{{&r.bn, &from.bn}, {&r.bt, &from.bt}, {&r.bu, &from.bu}, {&r.bv, &from.bv}, {&r.bs, &from.bs}, {&r.bver, &from.bver}} {
		if x.from.exists() {
			*x.to = *x.from
		}
	}
}

// resolve hands on what a record measures. One with base values alone measures
// nothing.
func (f *senmlFormat) resolve(d *Decoder, r *senmlRecord) {
	base := &f.base
	v := r.value(base.bv)
	s := plus(r.s, base.bs)
	if !v.exists() && !s.exists() {
		if r.n.exists() {
			d.malformed("field_missing", "the record has none of v, vs, vb, vd and s")
		}
		return
	}
	name := base.bn.text + r.n.text
	if name == "" {
		d.malformed("field_missing", "the record has no name: neither n nor a bn before it")
		return
	}
	unit := r.u
	if !unit.exists() {
		unit = base.bu
	}
	slots, plan := d.clear(), &d.route.sub.plan
	for _, x := range [...]pair{{senmlName, field{wording, name}}, {"bn", base.bn}, {"n", r.n}, {"u", unit}} {
		plan.putNamed(x.name, x.f, slots)
	}
	if !d.begin(-1) {
		return
	}
	d.base.Source = senmlTime(base.bt, r.t, d.msg.At.WallNS)
	if v.exists() {
		slots[slotValue] = v
		d.named("", field{})
	}
	if s.exists() {
		slots[slotValue] = s
		d.named(name+".sum", field{})
	}
}

// value returns the record's value, whichever kind it has.
func (r *senmlRecord) value(bv field) field {
	switch {
	case r.v.exists():
		return plus(r.v, bv)
	case r.vb.exists():
		return r.vb
	case r.vs.exists():
		return r.vs
	}
	return r.vd
}

// plus adds a base to a number, exactly where both are whole.
func plus(v, base field) field {
	if !v.exists() || !base.exists() {
		return v
	}
	x, okx := parseNumber(v.text)
	y, oky := parseNumber(base.text)
	if !okx || !oky {
		return v
	}
	sum := reading.FloatValue(x.Float() + y.Float())
	if a, ok := x.Int(); ok {
		if b, ok := y.Int(); ok && (a+b > a) == (b > 0) {
			sum = reading.IntValue(a + b)
		}
	}
	return field{numeric, string(sum.AppendJSON(nil))}
}

// senmlTime adds base time and time. None, or 0, is now: the record has no time of
// its own.
func senmlTime(bt, t field, arrivalNS int64) reading.SourceTime {
	sum, sent := int64(0), ""
	for _, f := range [...]field{bt, t} {
		if !f.exists() {
			continue
		}
		at := sourceTime(f, reading.UnitSeconds)
		if f.kind != numeric || !at.Given() {
			return reading.SourceTime{NS: reading.NoTime, Fault: max(at.Fault, reading.TimeUnparseable), Raw: clip(f.raw())}
		}
		if (sum+at.NS > sum) != (at.NS > 0) { // beyond int64
			return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeRange, Raw: clip(f.raw())}
		}
		sum += at.NS
		if sent != "" {
			sent += "+"
		}
		sent += f.text
	}
	switch {
	case sum == 0:
		return noTime
	case sum < senmlRelative:
		return reading.SourceTime{NS: arrivalNS + sum, Zoned: true, Unit: reading.UnitSeconds, Raw: clip(sent)}
	}
	return reading.SourceTime{NS: sum, Zoned: true, Unit: reading.UnitSeconds, Raw: clip(sent)}
}
