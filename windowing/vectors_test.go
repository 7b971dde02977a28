package windowing_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"tidemark/reading"
	"tidemark/windowing"
)

// vector is a case of testdata/vectors.jsonl: flags of the replay command, a
// trace, and everything that must come out.
type vector struct {
	Name, Source string
	Flags        []string
	Trace        []operation
	Expect       []map[string]any
}

// operation is a line of a trace, as the contract has it.
type operation struct {
	Op, Input, Device, Asset, Lifecycle, Sensor, ID, Quality string

	Seq        *uint64
	SourceTime json.RawMessage `json:"source_time"`
	IngestTime json.RawMessage `json:"ingest_time"`
	Value      json.RawMessage
	Time       json.RawMessage
	Names      []string
	Readings   []operation
}

func parseTime(t testing.TB, raw json.RawMessage) int64 {
	t.Helper()
	if len(raw) == 0 {
		return reading.NoTime
	}
	if raw[0] != '"' {
		var ms int64
		if err := json.Unmarshal(raw, &ms); err != nil {
			t.Fatal(err)
		}
		return ms * 1e6
	}
	at, err := time.Parse(time.RFC3339Nano, strings.Trim(string(raw), `"`))
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixNano()
}

func (o *operation) reading(t testing.TB) reading.Reading {
	t.Helper()
	ns := parseTime(t, o.SourceTime)
	r := reading.Reading{
		Tag: reading.MakeTag(reading.Series{Input: o.Input, Device: o.Device, Asset: o.Asset, Lifecycle: o.Lifecycle, Sensor: o.Sensor}),
		ID:  o.ID, Source: reading.SourceTime{NS: ns, Zoned: true}, ServerNS: reading.NoTime,
		Stamp: reading.Stamp{Disposition: reading.Accept, EventNS: ns, WatermarkMS: reading.FloorMS(ns)},
	}
	if o.Seq != nil {
		r.Seq, r.HasSeq = *o.Seq, true
	}
	r.Quality.Level, _ = reading.ParseLevel(o.Quality)
	var i int64
	var f float64
	if json.Unmarshal(o.Value, &i) == nil {
		r.Value = reading.IntValue(i)
	} else if json.Unmarshal(o.Value, &f) == nil {
		r.Value = reading.FloatValue(f)
	}
	return r
}

// batches turns an operation into what the engine steps.
func (o *operation) batches(t testing.TB, now int64) []*reading.Batch {
	t.Helper()
	mark := func(kind reading.MarkKind) []*reading.Batch {
		m := reading.Mark{Kind: kind, Input: o.Input, Device: o.Device, Asset: o.Asset, Sensor: o.Sensor, TimeMS: reading.NoTime}
		if len(o.Time) > 0 {
			m.TimeMS = reading.FloorMS(parseTime(t, o.Time))
		}
		return []*reading.Batch{{GatewayMS: reading.NoTime, Marks: []reading.Mark{m}}}
	}
	switch o.Op {
	case "reading":
		b := &reading.Batch{GatewayMS: reading.NoTime, Readings: []reading.Reading{o.reading(t)}}
		if at := reading.FloorMS(parseTime(t, o.IngestTime)); at > now {
			return []*reading.Batch{{GatewayMS: at, Emit: true}, b}
		}
		return []*reading.Batch{b}
	case "batch":
		b := &reading.Batch{GatewayMS: reading.FloorMS(parseTime(t, o.Time)), Emit: len(o.Time) > 0}
		for i := range o.Readings {
			b.Readings = append(b.Readings, o.Readings[i].reading(t))
		}
		return []*reading.Batch{b}
	case "advance":
		return []*reading.Batch{{GatewayMS: reading.FloorMS(parseTime(t, o.Time)), Emit: true}}
	case "inputs":
		b := &reading.Batch{GatewayMS: reading.NoTime}
		for _, name := range o.Names {
			b.Marks = append(b.Marks, reading.Mark{Kind: reading.MarkExists, Input: name, TimeMS: reading.NoTime})
		}
		return []*reading.Batch{b}
	case "watermark":
		return mark(reading.MarkWatermark)
	case "idle":
		return mark(reading.MarkIdle)
	case "active":
		return mark(reading.MarkActive)
	case "remove":
		return mark(reading.MarkRemove)
	}
	t.Fatalf("unknown operation %q", o.Op)
	return nil
}

// replayConfig is the configuration of the replay command with these flags.
func replayConfig(t testing.TB, flags []string) windowing.Config {
	t.Helper()
	f := windowing.Feature{
		ID: windowing.FeatureID{Name: "replay", Version: 1}, SizeMS: 300_000, OutOfOrdernessMS: 20_000,
		AllowedLatenessMS: 120_000, IdleAfterMS: 60_000, Functions: []string{"count", "sum", "mean"},
	}
	c := windowing.Config{FloorMS: reading.NoTime, LateIdentityMS: windowing.Forever}
	for i := 0; i < len(flags); i += 2 {
		var ms int64
		if d, err := time.ParseDuration(flags[i+1]); err == nil {
			ms = d.Milliseconds()
		}
		switch flags[i] {
		case "--window":
			f.SizeMS = ms
		case "--offset":
			f.OffsetMS = ms
		case "--out-of-orderness":
			f.OutOfOrdernessMS = ms
		case "--idle-after":
			f.IdleAfterMS = ms
		case "--allowed-lateness":
			f.AllowedLatenessMS = ms
		case "--watermarks":
			c.Explicit = flags[i+1] == "explicit"
		case "--scope":
			f.Scope, _ = windowing.ParseScope(flags[i+1])
		case "--emit", "--functions":
		default:
			t.Fatalf("unknown flag %s", flags[i])
		}
	}
	c.Features = []windowing.Feature{f}
	return c
}

// render gives an emission the fields that vectors name.
func render(t testing.TB, after int, m *windowing.Emission) map[string]any {
	t.Helper()
	var b bytes.Buffer
	field := func(name string, v []byte) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(reading.AppendJSONString(nil, name))
		b.WriteByte(':')
		b.Write(v)
	}
	text := func(name, v string) {
		if v != "" || name == "sensor" {
			field(name, reading.AppendJSONString(nil, v))
		}
	}
	b.WriteByte('{')
	n, _ := json.Marshal(after)
	field("after", n)
	place := func() {
		text("asset", m.Asset)
		text("lifecycle", m.Lifecycle)
		text("sensor", m.Sensor)
		field("window_start", reading.AppendJSONTimeMS(nil, m.StartMS))
		field("window_end", reading.AppendJSONTimeMS(nil, m.EndMS))
	}
	revision, _ := json.Marshal(m.Revision)
	switch m.Kind {
	case windowing.EmitFeature:
		text("type", "feature")
		place()
		field("revision", revision)
		text("status", map[bool]string{true: "provisional", false: "corrected"}[m.Revision == 1])
		values := []byte{'{'}
		for i, v := range m.Values {
			if i > 0 {
				values = append(values, ',')
			}
			values = v.Value.AppendJSON(append(reading.AppendJSONString(values, v.Name), ':'))
		}
		field("values", append(values, '}'))
	case windowing.EmitClosed:
		text("type", "closed")
		place()
		field("revision", revision)
	case windowing.EmitLate:
		text("type", "late")
		place()
		text("id", m.Reading.ID)
		text("reason", m.Reason.String())
	case windowing.EmitDuplicate:
		s := m.Reading.Tag.Value()
		text("type", "duplicate")
		text("input", s.Input)
		text("sensor", s.Sensor)
		text("id", m.Reading.ID)
	case windowing.EmitWatermark:
		text("type", "watermark")
		field("time", reading.AppendJSONTimeMS(nil, m.WatermarkMS))
	default:
		t.Fatalf("unexpected kind %d", m.Kind)
	}
	b.WriteByte('}')
	var v map[string]any
	if err := json.Unmarshal(b.Bytes(), &v); err != nil {
		t.Fatalf("%s: %v", b.Bytes(), err)
	}
	return v
}

// covers reports whether got has every field of want, with its value.
func covers(got, want map[string]any) bool {
	for name, w := range want {
		g := got[name]
		if wm, ok := w.(map[string]any); ok {
			gm, ok := g.(map[string]any)
			if !ok || !covers(gm, wm) {
				return false
			}
		} else if strings.HasPrefix(name, "window_") || name == "time" {
			if !sameTime(g, w) {
				return false
			}
		} else if g != w {
			return false
		}
	}
	return true
}

func sameTime(a, b any) bool {
	at, err := time.Parse(time.RFC3339Nano, a.(string))
	if err != nil {
		return false
	}
	switch b := b.(type) {
	case string:
		bt, err := time.Parse(time.RFC3339Nano, b)
		return err == nil && at.Equal(bt)
	case float64:
		return float64(at.UnixMilli()) == b
	}
	return false
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	file, err := os.Open("testdata/vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []vector
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// The shared vectors: what is listed comes out at its operation, and nothing else.
func TestVectors(t *testing.T) {
	for _, v := range readVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			e, err := windowing.New(replayConfig(t, v.Flags))
			if err != nil {
				t.Fatal(err)
			}
			now := reading.NoTime // gateway time reached
			for i := range v.Trace {
				var left []map[string]any
				for _, b := range v.Trace[i].batches(t, now) {
					now = max(now, b.GatewayMS)
					out := e.Step(b)
					for n := range out.Emissions {
						m := &out.Emissions[n]
						if m.Kind == windowing.EmitWatermark && hasScope(v.Flags) {
							continue
						}
						left = append(left, render(t, i, m))
					}
				}
				checkVector(t, &v, i, left)
			}
		})
	}
}

func hasScope(flags []string) bool {
	return strings.Contains(strings.Join(flags, " "), "--scope")
}

func checkVector(t *testing.T, v *vector, op int, left []map[string]any) {
	t.Helper()
	watermarks := strings.Contains(strings.Join(v.Flags, " "), "watermark,") || strings.HasSuffix(strings.Join(v.Flags, " "), "watermark")
	for _, want := range v.Expect {
		if want["after"] != float64(op) {
			continue
		}
		hit := -1
		for i, got := range left {
			if covers(got, want) {
				hit = i
				break
			}
		}
		if hit < 0 {
			t.Fatalf("operation %d: missing %v\ncame: %v", op, want, left)
		}
		left = append(left[:hit:hit], left[hit+1:]...)
	}
	for _, m := range left {
		if m["type"] != "watermark" || watermarks {
			t.Errorf("operation %d: unexpected %v", op, m)
		}
	}
}
