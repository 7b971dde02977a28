package uplink_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tidemark/reading"
	"tidemark/uplink"
	"tidemark/windowing"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

var enc = uplink.Encoder{Gateway: "line-3", Generation: 1767225600123456, Prefix: "tidemark"}

// at returns Unix nanoseconds.
func at(s string) int64 {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t.UnixNano()
}

func atMS(s string) int64 { return reading.FloorMS(at(s)) }

var processFeature = windowing.FeatureID{Name: "bearing-temp-5m", Version: 1, Definition: 0x9f2c41d7, Tuning: 0x03ab11c2}

func feature() windowing.Emission {
	return windowing.Emission{
		Kind: windowing.EmitFeature, Feature: processFeature,
		Asset: "press-07", Lifecycle: "SN-1182", Sensor: "bearing-temp",
		StartMS: atMS("2026-01-01T12:00:00Z"), EndMS: atMS("2026-01-01T12:05:00Z"), Revision: 2, Cause: windowing.CauseLateReading,
		Values: []windowing.NamedValue{
			{Name: "count", Value: reading.IntValue(3)}, {Name: "sum", Value: reading.UintValue(1<<64 - 1)},
			{Name: "mean", Value: reading.FloatValue(20)}, {Name: "min", Value: reading.FloatValue(0.1)},
			{Name: "max", Value: reading.IntValue(1<<53 + 1)}, {Name: "slope", Value: reading.FloatValue(1e-7)},
			{Name: "stddev"}, {Name: `state_share.a"b`, Value: reading.FloatValue(0.25)},
		},
		Unit:        "Cel",
		Coverage:    windowing.Coverage{Expected: 300, Observed: 3, LongestGapMS: 170000, CoveredMS: 300000, Certain: 3},
		Quality:     windowing.QualityCounts{Good: 3},
		Clock:       windowing.ClockSummary{State: reading.ClockSynchronized, MaxBound: reading.MakeBound(4_100_000), Flags: reading.FuturePossible | reading.HistoricalFlag},
		Inputs:      windowing.InputSummary{Active: []string{"A"}, Idle: []string{"B"}, ActiveCount: 12, IdleCount: 1},
		WatermarkMS: atMS("2026-01-01T12:05:07.25Z"), MaterializedNS: at("2026-01-01T12:05:08.123456789Z"),
	}
}

func bareFeature() windowing.Emission {
	e := feature()
	e.Lifecycle, e.Unit, e.Revision, e.Cause, e.PartialStart = "", "", 1, windowing.CauseWatermark, true
	e.Values = []windowing.NamedValue{{Name: "count", Value: reading.IntValue(0)}, {Name: "mean"}}
	e.Coverage = windowing.Coverage{Expected: -1, LongestGapMS: -1, CoveredMS: -1}
	e.Quality = windowing.QualityCounts{Bad: 2}
	e.Clock, e.Inputs, e.WatermarkMS, e.MaterializedNS = windowing.ClockSummary{}, windowing.InputSummary{}, reading.NoTime, 0
	return e
}

func closed() windowing.Emission {
	e := feature()
	e.Kind, e.Cause, e.Values, e.Unit = windowing.EmitClosed, 0, nil, ""
	return e
}

func retired() windowing.Emission {
	e := closed()
	e.Reason, e.Revision = windowing.ReasonRetired, 0
	return e
}

var lateReading = reading.Reading{
	Tag:   reading.MakeTag(reading.Series{Input: "vibration", Device: "d1", Asset: "press-07", Lifecycle: "SN-1182", Sensor: "bearing-temp"}),
	Value: reading.FloatValue(40.5), Unit: "Cel", Quality: reading.Quality{Level: reading.Uncertain, Status: 0x40930000},
	ID: "D#2", Seq: 17, HasSeq: true,
	Source:   reading.SourceTime{NS: at("2026-01-01T12:02:00.0001Z"), Zoned: true, Raw: "2026-01-01T13:02:00.0001+01:00"},
	ServerNS: reading.NoTime, IngestNS: at("2026-01-01T12:20:00.5Z"), Delivery: reading.Redelivered,
	Stamp: reading.Stamp{
		Disposition: reading.Flag, Flags: reading.OffsetPossible, Basis: reading.BasisSource,
		EventBound: reading.MakeBound(1_000_000), IngestBound: reading.MakeBound(900_000), TimeQuality: 10,
		EventNS: at("2026-01-01T12:02:00.0001Z"),
		Clock:   &reading.ClockSegment{ID: 4, Epoch: 1, State: reading.ClockSynchronized, Method: reading.MethodNTP, Traceable: true, E0NS: 1, Servers: 4},
		Source:  &reading.SourceSegment{ID: 2, LoNS: -1_500_000, HiNS: 1_000_001, Verdict: reading.SourceOffsetPossible},
	},
}

func late() windowing.Emission {
	e := feature()
	r := lateReading
	e.Kind, e.Revision, e.Cause, e.Values, e.Unit = windowing.EmitLate, 0, 0, nil, ""
	e.Reason, e.Reading = windowing.ReasonWindowClosed, &r
	return e
}

func lateOfGroup() windowing.Emission {
	e := late()
	e.Sensor = "all-temps"
	return e
}

// quarantined is a reading with as little known about it as can be.
func quarantined() windowing.Emission {
	return windowing.Emission{Kind: windowing.EmitQuarantine, WatermarkMS: reading.NoTime, MaterializedNS: at("2026-01-01T12:00:01Z"), Reading: &reading.Reading{
		Tag: reading.MakeTag(reading.Series{Input: "kepware-3", Sensor: "speed"}), Value: reading.IntValue(-12),
		Source: reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeUnparseable, Raw: "yester\x00day"}, ServerNS: reading.NoTime,
		IngestNS: at("2026-01-01T12:00:00Z"),
		Stamp:    reading.Stamp{Disposition: reading.Quarantine, Reason: reading.TSUnparseable, Policy: reading.PolicyUseServer, EventNS: reading.NoTime},
	}}
}

func quarantinedMillis() windowing.Emission {
	e := quarantined()
	e.Reading.Source = reading.SourceTime{NS: at("2030-01-01T00:00:00.25Z"), Zoned: true, Unit: reading.UnitMillis}
	e.Reading.ServerNS = at("2026-01-01T11:59:59.9Z")
	e.Reading.Value = reading.TextValue("RUNNING")
	e.Reading.Stamp.Reason = reading.Future
	return e
}

func silent() windowing.Emission {
	return windowing.Emission{
		Kind: windowing.EmitSilent, Asset: "press-07", Sensor: "bearing-temp",
		StartMS: atMS("2026-01-01T11:00:00Z"), WatermarkMS: reading.NoTime, QuietMS: 3_600_001,
	}
}

func resumed() windowing.Emission {
	e := silent()
	e.Kind, e.StartMS = windowing.EmitResumed, reading.NoTime
	return e
}

// emissions are goldens of records that the engine causes.
var emissions = map[string]func() windowing.Emission{
	"feature": feature, "feature_bare": bareFeature, "closed": closed, "closed_retired": retired,
	"late": late, "late_group": lateOfGroup, "quarantine": quarantined, "quarantine_future": quarantinedMillis, "event_silent": silent, "event_resumed": resumed,
}

// stored are goldens of records that the gateway causes.
var stored = map[string]uplink.Record{
	"event_gap": {Kind: uplink.KindEvent, Data: uplink.NewEvent(uplink.EventGap, at("2026-01-01T12:00:00Z"), reading.ClockFreeRunning).
		Str("input", "kepware-3").Time("from", at("2026-01-01T11:59:00Z")).Time("to", reading.NoTime).
		Int("step", -2).Uint("lost", 1<<63).Millis("lasted_ms", 1_500_001).List("nodes", []string{"a", "b/ü"}).Record()},
	"event_malformed": {Kind: uplink.KindEvent, Data: uplink.RejectEvent("vibration", &reading.Reject{
		Kind: reading.Malformed, Reason: "not_json", Detail: "the payload ends early", Place: "vib/a/telemetry",
		Excerpt: []byte(`{"ts":`), IngestNS: at("2026-01-01T12:00:00Z")}, reading.ClockSynchronized).Record()},
	"event_unmatched_binary": {Kind: uplink.KindEvent, Data: uplink.RejectEvent("vibration", &reading.Reject{
		Kind: reading.Unmatched, Reason: "unknown_sensor", Place: "vib", ID: "e7", Excerpt: []byte{0xff, 0}, IngestNS: at("2026-01-01T12:00:00Z")},
		reading.ClockSynchronized).Record()},
	"raw": {Kind: uplink.KindReading, Reading: &lateReading},
	"definition": {Kind: uplink.KindDefinition, Data: uplink.DefinitionRecord(processFeature, at("2026-01-01T00:00:00Z"),
		reading.ClockSynchronized, []byte(`{"window":"5m","functions":["count","mean"]}`))},
}

// render returns what is published, the payload indented.
func render(t *testing.T, r uplink.Record) []byte {
	t.Helper()
	var m uplink.Message
	if err := enc.Encode(&m, r); err != nil {
		t.Fatal(err)
	}
	return show(t, &m)
}

func show(t *testing.T, m *uplink.Message) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(m.Topic)
	if m.Retain {
		b.WriteString(" (retained)")
	}
	b.WriteByte('\n')
	for _, p := range m.Properties(at("2026-01-01T12:06:00.5Z"), true) {
		b.WriteString(p.Name + ": " + p.Value + "\n")
	}
	if err := json.Indent(&b, m.Payload, "", "  "); err != nil {
		t.Fatalf("%v in %s", err, m.Payload)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// records are all records of the goldens, as the outbox has them.
func records() map[string]uplink.Record {
	all := map[string]uplink.Record{}
	for name, f := range emissions {
		e := f()
		all[name] = uplink.Record{Kind: uplink.KindEmission, Data: windowing.AppendEmission(nil, &e)}
	}
	for name, r := range stored {
		all[name] = r
	}
	return all
}

// message is an emission as it is published.
func message(t rapid.TB, c uplink.Encoder, e *windowing.Emission) (m uplink.Message) {
	t.Helper()
	if err := c.Encode(&m, uplink.Record{Kind: uplink.KindEmission, Data: windowing.AppendEmission(nil, e)}); err != nil {
		t.Fatal(err)
	}
	return m
}

// payload is the JSON of an emission.
func payload(t rapid.TB, c uplink.Encoder, e *windowing.Emission) []byte {
	t.Helper()
	return message(t, c, e).Payload
}

func TestRecordsAsPublished(t *testing.T) {
	for name, r := range records() {
		t.Run(name, func(t *testing.T) { golden(t, name, render(t, r)) })
	}
}

func TestReplayLines(t *testing.T) {
	duplicate, conflict, watermark := late(), quarantined(), feature()
	duplicate.Kind, duplicate.Reason = windowing.EmitDuplicate, 0
	conflict.Kind, conflict.Conflict = windowing.EmitDuplicate, true
	watermark.Kind = windowing.EmitWatermark
	var b []byte
	add := func(e windowing.Emission) {
		b = append(uplink.AppendReplay(b, 1+bytes.Count(b, []byte("\n")), &e), '\n')
	}
	for _, e := range []windowing.Emission{feature(), bareFeature(), closed(), retired(), late(), quarantined(), quarantinedMillis(), duplicate, conflict, watermark} {
		add(e)
	}
	golden(t, "replay", b)
}

// A closing that carries the last result is that result to an uplink that sends
// nothing else of a window, and a closing to the others.
func TestFinalFeature(t *testing.T) {
	e := feature()
	e.Kind, e.Final, e.Cause = windowing.EmitClosed, true, windowing.CauseWatermark
	r := uplink.Record{Kind: uplink.KindEmission, Data: windowing.AppendEmission(nil, &e)}
	finals := enc
	finals.Finals = true
	var m uplink.Message
	if err := finals.Encode(&m, r); err != nil {
		t.Fatal(err)
	}
	checkRecord(t, m.Payload)
	golden(t, "feature_final", show(t, &m))
	golden(t, "closed", render(t, r))

	e.Reason, e.Cause = windowing.ReasonStateLimit, windowing.CauseStateLimit
	checkRecord(t, payload(t, finals, &e))
	e.Final, e.Reason = false, windowing.ReasonRetired // it had no result that stands
	if line := payload(t, finals, &e); !bytes.HasPrefix(line, []byte(`{"type":"closed"`)) {
		t.Errorf("rendered as %s", line)
	}
}

// A record that cannot be read is an error, never a panic and never half a record.
func TestUnreadableRecords(t *testing.T) {
	for name, r := range map[string]uplink.Record{
		"unknown kind":             {Kind: 9, Data: []byte("x")},
		"no emission":              {Kind: uplink.KindEmission, Data: []byte{0xff}},
		"event that is no JSON":    {Kind: uplink.KindEvent, Data: []byte(`{"kind":`)},
		"event without kind":       {Kind: uplink.KindEvent, Data: []byte(`{}`)},
		"event that is an array":   {Kind: uplink.KindEvent, Data: []byte(`[1]`)},
		"definition of no feature": {Kind: uplink.KindDefinition, Data: []byte(`{"version":1}`)},
		"nothing":                  {Kind: uplink.KindDefinition},
	} {
		t.Run(name, func(t *testing.T) {
			var m uplink.Message
			if err := enc.Encode(&m, r); err == nil {
				t.Errorf("rendered as %s", m.Payload)
			}
		})
	}
}

// The same record has the same update_id for ever; another has another one.
func TestUpdateID(t *testing.T) {
	id := func(c uplink.Encoder, e windowing.Emission) string {
		var r struct {
			UpdateID string `json:"update_id"`
		}
		if err := json.Unmarshal(payload(t, c, &e), &r); err != nil {
			t.Fatal(err)
		}
		return r.UpdateID
	}
	seen := map[string]string{}
	for name, f := range emissions {
		if a, b := id(enc, f()), id(enc, f()); a != b {
			t.Errorf("%s: %s, then %s", name, a, b)
		}
		seen[id(enc, f())] = name
	}
	change := map[string]func(e *windowing.Emission){
		"revision": func(e *windowing.Emission) { e.Revision++ },
		"version":  func(e *windowing.Emission) { e.Feature.Version++ },
		"window":   func(e *windowing.Emission) { e.StartMS--; e.EndMS-- },
		"names":    func(e *windowing.Emission) { e.Asset, e.Lifecycle = e.Asset+"S", "N-1182" },
	}
	for name, f := range change {
		e := feature()
		f(&e)
		if other, ok := seen[id(enc, e)]; ok {
			t.Errorf("another %s has the update_id of %s", name, other)
		}
	}
	next := enc
	next.Generation++
	if _, ok := seen[id(next, feature())]; ok {
		t.Error("another generation has the same update_id")
	}
	e := feature()
	e.MaterializedNS++
	if id(enc, e) != id(enc, feature()) {
		t.Error("update_id depends on what is no part of the key")
	}
}

// A reconciled view is of a type of its own: nobody takes it for what was served.
func TestReconciledRecord(t *testing.T) {
	e := feature()
	view := uplink.View{Name: "v1", ReconciledAtNS: at("2026-02-01T00:00:00Z"), FromNS: reading.NoTime, ToNS: at("2026-01-31T00:00:00.5Z")}
	whole := string(enc.AppendReconciled(nil, &view, &e, []string{}))
	partial := string(enc.AppendReconciled(nil, &view, &e, []string{"gap", "not_over"}))
	checkRecord(t, []byte(whole))
	checkRecord(t, []byte(partial))
	for _, part := range []string{
		`{"type":"reconciled",`, `"view":"v1","reconciled_at":"2026-02-01T00:00:00Z"`, `"partial":false,"partial_because":[]`,
		`"journal":{"from":null,"to":"2026-01-31T00:00:00.5Z"}`,
	} {
		if !strings.Contains(whole, part) {
			t.Errorf("%s is missing in %s", part, whole)
		}
	}
	if !strings.Contains(partial, `"partial":true,"partial_because":["gap","not_over"]`) {
		t.Errorf("a partial window is shown as %s", partial)
	}
	id := func(record string) string {
		_, rest, _ := strings.Cut(record, `"update_id":"`)
		return rest[:32]
	}
	other := view
	other.Name = "v2"
	if id(whole) != id(partial) || id(whole) == id(string(enc.AppendReconciled(nil, &other, &e, nil))) || id(whole) == id(string(payload(t, enc, &e))) {
		t.Error("an update_id names a window of one view")
	}
}
