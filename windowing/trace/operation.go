package trace

import (
	"encoding/json"
	"errors"
	"fmt"

	"tidemark/reading"
)

// operation is a line as it stands. Which fields hold depends on op; the rest is
// ignored.
type operation struct {
	op, readings, names, time token
	sample
}

// set is called for each member; the last of a name counts.
func (o *operation) set(key []byte, v token) error {
	switch string(key) {
	case "op":
		o.op = v
	case "readings":
		o.readings = v
	case "names":
		o.names = v
	case "time":
		o.time = v
	default:
		return o.sample.set(key, v)
	}
	return nil
}

func missing(field string) error { return fmt.Errorf("%s is missing", field) }

func (r *Reader) parse(line []byte) error {
	r.begin()
	if !json.Valid(line) {
		return fmt.Errorf("is not JSON: %w", json.Unmarshal(line, new(any)))
	}
	if whole := token(line); line[0] != '{' {
		return fmt.Errorf("is no JSON object but %s", whole.kind())
	}
	var o operation
	if err := token(line).members(o.set); err != nil {
		return err
	}
	op, err := o.op.text("op")
	if err != nil {
		return err
	}
	switch string(op) {
	case "":
		return missing("op")
	case "reading":
		return r.reading(&o)
	case "batch":
		return r.batch(&o)
	case "inputs":
		return r.inputs(&o)
	case "advance":
		ms, err := millis("time", o.time)
		if err == nil {
			r.advance(ms)
		}
		return err
	case "watermark":
		return r.watermark(&o)
	case "idle":
		return r.status(&o, reading.MarkIdle)
	case "active":
		return r.status(&o, reading.MarkActive)
	case "remove":
		return r.status(&o, reading.MarkRemove)
	}
	return fmt.Errorf("unknown op %s: it is one of reading, batch, watermark, idle, active, inputs, remove, advance", quote(op))
}

// reading: one that arrives later than gateway time first moves it there.
func (r *Reader) reading(o *operation) error {
	if err := r.add(&o.sample); err != nil {
		return err
	}
	if ms := reading.FloorMS(r.readings[0].IngestNS); ms > r.gatewayMS {
		r.advance(ms)
	}
	r.step(reading.Batch{GatewayMS: reading.NoTime, Readings: r.readings})
	return nil
}

func (r *Reader) batch(o *operation) error {
	err := list("readings", o.readings, func(i int, v token) error {
		var s sample
		if v[0] != '{' {
			return fmt.Errorf("readings[%d] is no object", i)
		}
		if err := v.members(s.set); err != nil {
			return fmt.Errorf("readings[%d]: %w", i, err)
		}
		if err := r.add(&s); err != nil {
			return fmt.Errorf("readings[%d]: %w", i, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b := reading.Batch{GatewayMS: reading.NoTime, Readings: r.readings}
	if o.time != nil {
		if b.GatewayMS, err = millis("time", o.time); err != nil {
			return err
		}
		b.Emit = true
	}
	r.step(b)
	return nil
}

func list(field string, v token, f func(i int, v token) error) error {
	switch {
	case v == nil:
		return missing(field)
	case v[0] != '[':
		return fmt.Errorf("%s cannot be %s", field, v.kind())
	}
	return v.elements(f)
}

func (r *Reader) inputs(o *operation) error {
	var marks []reading.Mark
	err := list("names", o.names, func(i int, v token) error {
		name, err := v.text(fmt.Sprintf("names[%d]", i))
		marks = append(marks, reading.Mark{Kind: reading.MarkExists, Input: string(name), TimeMS: reading.NoTime})
		return err
	})
	if err == nil {
		r.mark(marks...)
	}
	return err
}

func (r *Reader) watermark(o *operation) error {
	if !r.explicit {
		return errors.New("op watermark: watermarks are generated here; use --watermarks explicit")
	}
	ms, err := millis("time", o.time)
	if err != nil {
		return err
	}
	m, err := o.mark(reading.MarkWatermark)
	if err != nil {
		return err
	}
	m.TimeMS = ms
	r.mark(m)
	return nil
}

func (r *Reader) status(o *operation, kind reading.MarkKind) error {
	m, err := o.mark(kind)
	if err == nil {
		r.mark(m)
	}
	return err
}

// mark names the partition that an operation is about.
func (o *operation) mark(kind reading.MarkKind) (reading.Mark, error) {
	m := reading.Mark{Kind: kind, TimeMS: reading.NoTime}
	if o.input == nil {
		return m, missing("input")
	}
	for _, f := range [...]struct {
		name string
		to   *string
		from token
	}{{"input", &m.Input, o.input}, {"device", &m.Device, o.device}, {"asset", &m.Asset, o.asset}, {"sensor", &m.Sensor, o.sensor}} {
		text, err := f.from.text(f.name)
		if err != nil {
			return m, err
		}
		*f.to = string(text)
	}
	return m, nil
}
