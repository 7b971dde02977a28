package trace_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/reading"
	"tidemark/windowing/trace"
)

// What any JSON encoder writes of a reading is read back exactly: names of any
// characters, integers of 64 bits, times to the nanosecond.
func TestReadingsReadBack(t *testing.T) {
	names := rapid.Map(rapid.String(), func(s string) string { return strings.ToValidUTF8(s, "") })
	values := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(i int64) reading.Value { return reading.IntValue(i) }),
		rapid.Map(rapid.Uint64(), reading.UintValue),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) reading.Value { return reading.FloatValue(f + 0.5) }),
		rapid.Map(rapid.Bool(), reading.BoolValue),
		rapid.Map(names, reading.TextValue),
		rapid.Just(reading.Value{}))
	rapid.Check(t, func(t *rapid.T) {
		s := reading.Series{Input: names.Draw(t, "input"), Device: names.Draw(t, "device"), Asset: names.Draw(t, "asset"),
			Lifecycle: names.Draw(t, "lifecycle"), Sensor: names.Draw(t, "sensor")}
		v := values.Draw(t, "value")
		ns := rapid.Int64Min(math.MinInt64+1).Draw(t, "source time")
		id, seq := names.Draw(t, "id"), rapid.Uint64().Draw(t, "seq")
		line, err := json.Marshal(map[string]any{
			"op": "reading", "input": s.Input, "device": s.Device, "asset": s.Asset, "lifecycle": s.Lifecycle, "sensor": s.Sensor,
			"id": id, "seq": seq, "value": json.RawMessage(v.AppendJSON(nil)),
			"source_time": time.Unix(0, ns).In(time.FixedZone("", rapid.IntRange(-14*60, 14*60).Draw(t, "zone")*60)),
		})
		if err != nil {
			t.Fatal(err)
		}
		op, err := trace.NewReader(strings.NewReader(string(line)), false).Next()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got := op.Steps[0].Readings[0]
		if got.Tag != reading.MakeTag(s) || got.ID != id || got.Seq != seq || got.Source.NS != ns {
			t.Fatalf("%s came back as %+v of %+v", line, got, got.Tag.Value())
		}
		if want := string(v.AppendJSON(nil)); string(got.Value.AppendJSON(nil)) != want {
			t.Fatalf("%s came back as %s", want, got.Value.AppendJSON(nil))
		}
	})
}
