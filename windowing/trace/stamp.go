package trace

import (
	"fmt"

	"tidemark/reading"
)

// verdict is a stamp as it stands.
type verdict struct {
	disposition, reason, basis, policy, flags token
	eventTime, watermark                      token
	timed, marked                             bool // eventTime and watermark are there, if only as null
	eventError, ingestError, quality          token
	clock, source                             token
	clocked                                   bool // clock is there, if only as null
}

func (v *verdict) set(key []byte, t token) error {
	switch string(key) {
	case "disposition":
		v.disposition = t
	case "reason":
		v.reason = t
	case "time_basis":
		v.basis = t
	case "policy":
		v.policy = t
	case "flags":
		v.flags = t
	case "event_time":
		v.eventTime, v.timed = t, true
	case "watermark":
		v.watermark, v.marked = t, true
	case "event_error_ns":
		v.eventError = t
	case "ingest_error_ns":
		v.ingestError = t
	case "time_quality":
		v.quality = t
	case "clock":
		v.clock, v.clocked = t, true
	case "source_clock":
		v.source = t
	}
	return nil
}

// stamp reads the verdict on a reading with the source time; clock is the one of
// its batch.
func (r *Reader) stamp(t token, source reading.SourceTime, clock *reading.ClockSegment) (s reading.Stamp, err error) {
	if t[0] != '{' {
		return s, fmt.Errorf("stamp cannot be %s", t.kind())
	}
	var v verdict
	if err := t.members(v.set); err != nil {
		return s, err
	}
	s = reading.Stamp{Disposition: reading.Accept, EventNS: source.NS, Clock: clock}
	for _, err := range [...]error{
		enum("disposition", v.disposition, reading.Pending, reading.Disposition.String, &s.Disposition),
		enum("reason", v.reason, reading.EngineFault, reading.Reason.String, &s.Reason),
		enum("time_basis", v.basis, reading.BasisCorrected, reading.Basis.String, &s.Basis),
		enum("policy", v.policy, reading.PolicyTrusted, reading.Policy.String, &s.Policy),
		bits("flags", v.flags, flagNames, &s.Flags),
		errorBound("event_error_ns", v.eventError, &s.EventBound), errorBound("ingest_error_ns", v.ingestError, &s.IngestBound),
		unsigned("time_quality", v.quality, &s.TimeQuality),
	} {
		if err != nil {
			return s, err
		}
	}
	if v.timed {
		if s.EventNS, err = instant("event_time", v.eventTime); err != nil {
			return s, err
		}
	}
	s.WatermarkMS = reading.FloorMS(s.EventNS)
	if v.marked {
		s.WatermarkMS = reading.NoTime
		if v.watermark != nil {
			if s.WatermarkMS, err = millis("watermark", v.watermark); err != nil {
				return s, err
			}
		}
	}
	if v.clocked {
		if s.Clock, err = r.segment(v.clock); err != nil {
			return s, err
		}
	}
	if v.source != nil {
		var id uint64
		if err := unsigned("source_clock", v.source, &id); err != nil {
			return s, err
		}
		if s.Source = r.sources.get(id); s.Source == nil {
			return s, fmt.Errorf("source_clock %d: no operation clock has told of it", id)
		}
	}
	return s, nil
}

// segment finds the clock segment that an operation has told of; null is none.
func (r *Reader) segment(t token) (*reading.ClockSegment, error) {
	if t == nil {
		return nil, nil
	}
	var id uint64
	if err := unsigned("clock", t, &id); err != nil {
		return nil, err
	}
	s := r.clocks.get(id)
	if s == nil {
		return nil, fmt.Errorf("clock %d: no operation clock has told of it", id)
	}
	return s, nil
}

func errorBound(field string, t token, to *reading.Bound) error {
	ns := int64(-1)
	err := signed(field, t, &ns)
	*to = reading.MakeBound(ns)
	return err
}
