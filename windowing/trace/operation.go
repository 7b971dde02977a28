package trace

import (
	"encoding/json"
	"errors"
	"fmt"

	"tidemark/reading"
	"tidemark/windowing"
)

// operation is a line as it stands. Which fields hold depends on op; the rest is
// ignored.
type operation struct {
	op, readings, names, time        token
	marks, config, emit, wall, clock token
	clocked                          bool // clock is there, if only as null
	at, state, heldUntil             token
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
	case "marks":
		o.marks = v
	case "config":
		o.config = v
	case "emit":
		o.emit = v
	case "wall_time":
		o.wall = v
	case "clock":
		o.clock, o.clocked = v, true
	case "at":
		o.at = v
	case "state":
		o.state = v
	case "held_until":
		o.heldUntil = v
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
	case "clock":
		return r.clockOp(line)
	case "config":
		return r.config(line)
	}
	m, err := o.mark(op)
	if err == nil && m.Kind == reading.MarkWatermark && !r.explicit {
		err = errors.New("op watermark: watermarks are generated here; use --watermarks explicit")
	}
	if err == nil {
		r.mark(m)
	}
	return err
}

// reading: one that arrives later than gateway time first moves it there.
func (r *Reader) reading(o *operation) error {
	if err := r.add(&o.sample, r.clock); err != nil {
		return err
	}
	if ms := reading.FloorMS(r.readings[0].IngestNS); ms > r.gatewayMS {
		r.advance(ms)
	}
	r.step(reading.Batch{GatewayMS: reading.NoTime, Clock: r.clock, Readings: r.readings})
	return nil
}

// batch is what one step of the engine takes.
func (r *Reader) batch(o *operation) (err error) {
	b := reading.Batch{GatewayMS: reading.NoTime, Clock: r.clock}
	if o.clocked {
		if b.Clock, err = r.segment(o.clock); err != nil {
			return err
		}
	}
	if o.time != nil {
		if b.GatewayMS, err = millis("time", o.time); err != nil {
			return err
		}
		b.Emit = true
	}
	if o.wall != nil {
		if b.WallNS, err = instant("wall_time", o.wall); err != nil {
			return err
		}
	}
	if err = errors.Join(truth("emit", o.emit, &b.Emit), unsigned("seq", o.seq, &b.Seq)); err != nil {
		return err
	}
	if o.config != nil {
		if b.Config, err = r.configure(o.config); err != nil {
			return err
		}
	}
	if b.Marks, err = r.marks(o.marks); err != nil {
		return err
	}
	err = list("readings", o.readings, func(i int, v token) error {
		if v == nil || v[0] != '{' {
			return fmt.Errorf("readings[%d] is no object", i)
		}
		var s sample
		if err := v.members(s.set); err != nil {
			return fmt.Errorf("readings[%d]: %w", i, err)
		}
		if err := r.add(&s, b.Clock); err != nil {
			return fmt.Errorf("readings[%d]: %w", i, err)
		}
		return nil
	})
	if err == nil {
		b.Readings = r.readings
		r.step(b)
	}
	return err
}

// marks are a batch's marks in their order, each at its number of readings before.
func (r *Reader) marks(t token) (marks []reading.Mark, err error) {
	if t == nil {
		return nil, nil
	}
	err = list("marks", t, func(i int, v token) error {
		if v[0] != '{' {
			return fmt.Errorf("marks[%d] is no object", i)
		}
		var o operation
		if err := v.members(o.set); err != nil {
			return fmt.Errorf("marks[%d]: %w", i, err)
		}
		op, err := o.op.text("op")
		if err != nil {
			return fmt.Errorf("marks[%d]: %w", i, err)
		}
		m, err := o.mark(op)
		if err == nil {
			err = signed("at", o.at, &m.At)
		}
		if err != nil {
			return fmt.Errorf("marks[%d]: %w", i, err)
		}
		marks = append(marks, m)
		return nil
	})
	return marks, err
}

// config puts a configuration in force, in a step of its own.
func (r *Reader) config(line token) error {
	encoded, err := r.configure(line)
	if err == nil {
		r.step(reading.Batch{GatewayMS: reading.NoTime, Clock: r.clock, Config: encoded})
	}
	return err
}

func (r *Reader) configure(t token) ([]byte, error) {
	c, err := parseConfig(t)
	if err != nil {
		return nil, err
	}
	r.explicit = r.explicit || c.Explicit
	return windowing.AppendConfig(nil, c), nil
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

// markKinds are the operations about partitions, as a line of their own or among a
// batch's marks.
var markKinds = map[string]reading.MarkKind{
	"exists": reading.MarkExists, "remove": reading.MarkRemove, "watermark": reading.MarkWatermark,
	"idle": reading.MarkIdle, "active": reading.MarkActive, "evidence": reading.MarkActive, "catchup": reading.MarkCatchUpBegin,
}

// mark reads an operation about partitions.
func (o *operation) mark(op []byte) (reading.Mark, error) {
	m := reading.Mark{Kind: markKinds[string(op)], TimeMS: reading.NoTime}
	if m.Kind == 0 {
		return m, unknownOp(op)
	}
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
	return m, o.particulars(string(op), &m)
}

// particulars reads what belongs to one kind of mark.
func (o *operation) particulars(op string, m *reading.Mark) (err error) {
	switch op {
	case "watermark":
		m.TimeMS, err = millis("time", o.time)
	case "evidence":
		if o.time != nil {
			m.TimeMS, err = millis("time", o.time)
		}
	case "idle":
		if o.heldUntil != nil {
			m.TimeMS, err = millis("held_until", o.heldUntil)
		}
	case "catchup":
		var state []byte
		if state, err = o.state.text("state"); err != nil {
			return err
		}
		switch string(state) {
		case "begin":
		case "end":
			m.Kind = reading.MarkCatchUpEnd
		default:
			return fmt.Errorf("state %s is neither begin nor end", quote(state))
		}
	}
	return err
}

func unknownOp(op []byte) error {
	return fmt.Errorf("unknown op %s: it is one of reading, batch, watermark, idle, active, inputs, remove, advance, clock, evidence, catchup, config", quote(op))
}
