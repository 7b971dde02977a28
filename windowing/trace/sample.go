package trace

import (
	"cmp"
	"encoding/binary"
	"errors"

	"tidemark/reading"
)

// sample is a reading as it stands.
type sample struct {
	input, device, asset, lifecycle, sensor token
	id, seq                                 token
	sourceTime, ingestTime                  token
	value                                   token
	valued                                  bool // value is there, if only as null
	unit, quality                           token

	// What only a recorded reading has.
	serverTime, status, delivery, stamp      token
	timeSent, timeUnit, timeZoned, timeFault token
	sent                                     bool // how the source time was sent is told
}

func (s *sample) set(key []byte, v token) error {
	switch string(key) {
	case "input":
		s.input = v
	case "device":
		s.device = v
	case "asset":
		s.asset = v
	case "lifecycle":
		s.lifecycle = v
	case "sensor":
		s.sensor = v
	case "id":
		s.id = v
	case "seq":
		s.seq = v
	case "source_time":
		s.sourceTime = v
	case "ingest_time":
		s.ingestTime = v
	case "value":
		s.value, s.valued = v, true
	case "unit":
		s.unit = v
	case "quality":
		s.quality = v
	case "stamp":
		s.stamp = v
	case "server_time":
		s.serverTime = v
	case "quality_status":
		s.status = v
	case "delivery":
		s.delivery = v
	case "source_time_sent":
		s.timeSent, s.sent = v, true
	case "source_time_unit":
		s.timeUnit, s.sent = v, true
	case "source_time_zoned":
		s.timeZoned, s.sent = v, true
	case "source_time_fault":
		s.timeFault, s.sent = v, true
	}
	return nil
}

// add appends a reading to the operation's; clock is that of its batch.
func (r *Reader) add(s *sample, clock *reading.ClockSegment) error {
	rd, err := r.unjudged(s)
	if err != nil {
		return err
	}
	switch {
	case s.stamp != nil:
		if rd.Stamp, err = r.stamp(s.stamp, rd.Source, clock); err != nil {
			return err
		}
	case r.Judge == nil || clock == nil:
		rd.Stamp = trusted(rd.Source)
	case rd.IngestNS == reading.NoTime:
		return errors.New("ingest_time is missing: it is what the clock judges the source time by")
	default:
		rd.Stamp.Clock = clock
		r.Judge(&rd)
	}
	r.readings = append(r.readings, rd)
	return nil
}

// unjudged reads all of a reading but the verdict on it.
func (r *Reader) unjudged(s *sample) (rd reading.Reading, err error) {
	switch {
	case s.input == nil:
		return rd, missing("input")
	case s.sensor == nil:
		return rd, missing("sensor")
	case !s.valued:
		return rd, errors.New("value is missing: write null for a reading without one")
	}
	if rd.Tag, err = r.tag(s); err != nil {
		return rd, err
	}
	if rd.Value, err = value(s.value); err != nil {
		return rd, err
	}
	if rd.Source, err = s.readTime(); err != nil {
		return rd, err
	}
	if rd.IngestNS, err = instant("ingest_time", s.ingestTime); err != nil {
		return rd, err
	}
	if rd.ServerNS, err = instant("server_time", s.serverTime); err != nil {
		return rd, err
	}
	if rd.Quality.Level, err = level(s.quality); err != nil {
		return rd, err
	}
	if rd.Unit, err = r.intern("unit", s.unit); err != nil {
		return rd, err
	}
	id, err := s.id.text("id")
	rd.ID, rd.HasSeq = string(id), s.seq != nil
	return rd, cmp.Or(err, unsigned("seq", s.seq, &rd.Seq),
		unsigned("quality_status", s.status, &rd.Quality.Status), bits("delivery", s.delivery, deliveryNames, &rd.Delivery))
}

// trusted takes the source time at its word.
func trusted(t reading.SourceTime) reading.Stamp {
	if !t.Given() {
		return reading.Stamp{Disposition: reading.Quarantine, Reason: reading.SourceTimeRange, Policy: reading.PolicyTrusted,
			EventNS: reading.NoTime, WatermarkMS: reading.NoTime}
	}
	return reading.Stamp{Disposition: reading.Accept, Policy: reading.PolicyTrusted,
		EventNS: t.NS, WatermarkMS: reading.FloorMS(t.NS)}
}

// maxCached bounds what the reader remembers of names it has seen.
const maxCached = 1 << 16

// tag makes the reading's tag, or finds it among those made.
func (r *Reader) tag(s *sample) (reading.Tag, error) {
	var names [5][]byte
	r.key = r.key[:0]
	for i, f := range [...]struct {
		name string
		from token
	}{{"input", s.input}, {"asset", s.asset}, {"device", s.device}, {"lifecycle", s.lifecycle}, {"sensor", s.sensor}} {
		text, err := f.from.text(f.name)
		if err != nil {
			return reading.Tag{}, err
		}
		names[i] = text
		r.key = binary.AppendUvarint(r.key, uint64(len(text)))
		r.key = append(r.key, text...)
	}
	tag, ok := r.tags[string(r.key)]
	if !ok {
		if len(r.tags) >= maxCached {
			clear(r.tags)
		}
		tag = reading.MakeTag(reading.Series{Input: string(names[0]), Asset: string(names[1]), Device: string(names[2]),
			Lifecycle: string(names[3]), Sensor: string(names[4])})
		r.tags[string(r.key)] = tag
	}
	return tag, nil
}

// intern reads a string that few readings differ in.
func (r *Reader) intern(field string, t token) (string, error) {
	text, err := t.text(field)
	if err != nil || len(text) == 0 {
		return "", err
	}
	s, ok := r.units[string(text)]
	if !ok {
		if len(r.units) >= maxCached {
			clear(r.units)
		}
		s = string(text)
		r.units[s] = s
	}
	return s, nil
}
