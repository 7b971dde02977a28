package uplink_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/reading"
	"tidemark/windowing"
)

var anyValue = rapid.OneOf(
	rapid.Map(rapid.Int64(), reading.IntValue), rapid.Map(rapid.Uint64(), reading.UintValue), rapid.Map(rapid.Float64(), reading.FloatValue),
	rapid.Map(rapid.Bool(), reading.BoolValue), rapid.Map(rapid.String(), reading.TextValue), rapid.Just(reading.Value{}),
	rapid.SampledFrom([]reading.Value{reading.FloatValue(math.MaxFloat64), reading.FloatValue(5e-324), reading.FloatValue(1e21), reading.FloatValue(math.Copysign(0, -1))}),
)

// valueOf is what a JSON value says, as a reading.Value of that kind.
func valueOf(t rapid.TB, raw json.RawMessage, kind reading.Kind) reading.Value {
	t.Helper()
	into := func(p any) {
		if err := json.Unmarshal(raw, p); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
	}
	switch kind {
	case reading.Int:
		var v int64
		into(&v)
		return reading.IntValue(v)
	case reading.Uint:
		var v uint64
		into(&v)
		return reading.UintValue(v)
	case reading.Float:
		var v float64
		into(&v)
		return reading.FloatValue(v)
	case reading.Bool:
		var v bool
		into(&v)
		return reading.BoolValue(v)
	case reading.Text:
		var v string
		into(&v)
		return reading.TextValue(v)
	}
	if string(raw) != "null" {
		t.Fatalf("a missing value is %s", raw)
	}
	return reading.Value{}
}

// Whatever names and values a feature has, its record reads back exactly.
func TestFeatureReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := feature()
		e.Asset, e.Lifecycle, e.Sensor = rapid.String().Draw(t, "asset"), rapid.String().Draw(t, "lifecycle"), rapid.String().Draw(t, "sensor")
		e.StartMS = rapid.Int64Range(-1e13, 1e13).Draw(t, "start")
		e.Revision = rapid.Uint32Min(1).Draw(t, "revision")
		names := rapid.SliceOfNDistinct(rapid.String(), 0, 5, rapid.ID[string]).Draw(t, "functions")
		e.Values = nil
		for _, n := range names {
			e.Values = append(e.Values, windowing.NamedValue{Name: n, Value: anyValue.Draw(t, n)})
		}
		line := payload(t, enc, &e)
		if bytes.ContainsAny(line, "\n\r") {
			t.Fatalf("a line break in %s", line)
		}
		var got struct {
			Asset, Lifecycle, Sensor string
			Start                    time.Time `json:"window_start"`
			Revision                 uint32
			Status                   string
			Values                   map[string]json.RawMessage
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if got.Asset != e.Asset || got.Lifecycle != e.Lifecycle || got.Sensor != e.Sensor || got.Start.UnixMilli() != e.StartMS ||
			got.Revision != e.Revision || (got.Status == "provisional") != (e.Revision == 1) || len(got.Values) != len(names) {
			t.Fatalf("%s", line)
		}
		for _, v := range e.Values {
			if back := valueOf(t, got.Values[v.Name], v.Value.Kind()); back != v.Value {
				t.Fatalf("%s: %v became %v", v.Name, v.Value, back)
			}
		}
	})
}

// Whatever a source sent, its evidence is a record of its schema's form and tells
// the value and the raw time exactly.
func TestEvidenceReadsBack(t *testing.T) {
	units := []reading.TimeUnit{reading.UnitNone, reading.UnitSeconds, reading.UnitMillis, reading.UnitMicros, reading.UnitNanos}
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom([]func() windowing.Emission{late, quarantined}).Draw(t, "record")()
		r := e.Reading
		r.Value = anyValue.Draw(t, "value")
		r.ID, r.Unit = rapid.String().Draw(t, "id"), rapid.String().Draw(t, "unit")
		r.Source.Raw = rapid.String().Draw(t, "raw")
		r.Source.Unit = rapid.SampledFrom(units).Draw(t, "time unit")
		r.Delivery = reading.Delivery(rapid.IntRange(0, 15).Draw(t, "delivery"))
		r.Stamp.Flags = reading.Flags(rapid.Uint16Range(0, 1<<11-1).Draw(t, "flags"))
		var got struct {
			Value json.RawMessage
			ID    *string
			Sent  json.RawMessage `json:"source_time_sent"`
		}
		line := payload(t, enc, &e)
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if back := valueOf(t, got.Value, r.Value.Kind()); back != r.Value {
			t.Fatalf("%v became %v", r.Value, back)
		}
		if (got.ID == nil) != (r.ID == "") || got.ID != nil && *got.ID != r.ID {
			t.Fatalf("id %q in %s", r.ID, line)
		}
		if raw := r.Source.Raw; raw != "" && valueOf(t, got.Sent, reading.Text).Text() != raw {
			t.Fatalf("raw time %q became %s", raw, got.Sent)
		}
	})
}
