package trace_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"tidemark/reading"
	"tidemark/windowing/trace"
)

// show writes a step in one line, so that expectations can be read.
func show(b *reading.Batch) string {
	var s strings.Builder
	for i := range b.Readings {
		r := &b.Readings[i]
		tag := r.Tag.Value()
		fmt.Fprintf(&s, "%s/%s=%s@%d ", tag.Input, tag.Sensor, r.Value.AppendJSON(nil), r.Stamp.EventNS)
	}
	for _, m := range b.Marks {
		fmt.Fprintf(&s, "mark%d:%s,%s,%s,%s", m.Kind, m.Input, m.Device, m.Asset, m.Sensor)
		if m.TimeMS != reading.NoTime {
			fmt.Fprintf(&s, "@%d", m.TimeMS)
		}
		s.WriteByte(' ')
	}
	if b.GatewayMS != reading.NoTime {
		fmt.Fprintf(&s, "now=%d ", b.GatewayMS)
	}
	if b.Emit {
		s.WriteString("emit ")
	}
	return strings.TrimSpace(s.String())
}

func steps(t *testing.T, text string, explicit bool) (got []string, err error) {
	t.Helper()
	r := trace.NewReader(strings.NewReader(text), explicit)
	var seq uint64
	for n := 0; ; n++ {
		op, err := r.Next()
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		if op.Index != n {
			t.Errorf("operation %d calls itself %d", n, op.Index)
		}
		for i := range op.Steps {
			if seq++; op.Steps[i].Seq != seq {
				t.Errorf("step %d calls itself %d", seq, op.Steps[i].Seq)
			}
			got = append(got, fmt.Sprintf("%d: %s", n, show(&op.Steps[i])))
		}
	}
}

func TestOperations(t *testing.T) {
	got, err := steps(t, `
# a comment, and a blank line

{"op":"inputs","names":["A","B"]}
{"op":"reading","input":"A","sensor":"k","source_time":"1970-01-01T00:00:00.0000005Z","value":1}
   # another
{"op":"batch","readings":[{"input":"A","sensor":"k","source_time":1,"value":2,"ingest_time":99},{"input":"B","sensor":"k","source_time":-2,"value":3}]}
{"op":"batch","readings":[],"time":5}
{"op":"watermark","input":"A","time":"1969-12-31T23:59:59.9995Z"}
{"op":"idle","input":"A","device":"d"}
{"op":"active","input":"A","asset":"a","sensor":"k"}
{"op":"remove","input":"A"}
{"op":"advance","time":1e3}`+"\r\n", true)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0: mark1:A,,, mark1:B,,,",
		"1: A/k=1@500",
		"2: A/k=2@1000000 B/k=3@-2000000",
		"3: now=5 emit",
		"4: mark3:A,,,@-1",
		"5: mark4:A,d,,",
		"6: mark5:A,,a,k",
		"7: mark2:A,,,",
		"8: now=1000 emit",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A reading that arrives later than gateway time moves it first; inside a batch
// nothing does, and an advance may lie in the past.
func TestIngestTimeMovesGatewayTime(t *testing.T) {
	reading := func(ingest string) string {
		return `{"op":"reading","input":"A","sensor":"k","source_time":0,"value":1,"ingest_time":` + ingest + "}\n"
	}
	got, err := steps(t, reading("10")+reading("10")+reading(`"1970-01-01T00:00:00.0109999Z"`)+reading("9")+reading("null")+
		`{"op":"advance","time":7}`+"\n"+reading("11")+
		`{"op":"batch","readings":[{"input":"A","sensor":"k","source_time":0,"value":1,"ingest_time":50}],"time":20}`+"\n"+
		reading("21"), false)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0: now=10 emit", "0: A/k=1@0", "1: A/k=1@0", "2: A/k=1@0", "3: A/k=1@0", "4: A/k=1@0",
		"5: now=7 emit",
		"6: now=11 emit", "6: A/k=1@0",
		"7: A/k=1@0 now=20 emit",
		"8: now=21 emit", "8: A/k=1@0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func one(t *testing.T, fields string) reading.Reading {
	t.Helper()
	op, err := trace.NewReader(strings.NewReader(`{"op":"reading","input":"A","sensor":"k",`+fields+"}"), false).Next()
	if err != nil {
		t.Fatal(err)
	}
	return op.Steps[len(op.Steps)-1].Readings[0]
}

func TestReadingFields(t *testing.T) {
	got := one(t, `"device":"d1","asset":"press-07","lifecycle":"SN-1182","id":"e1","seq":18446744073709551615,"source_time":"2026-01-01T13:00:10.1234567891+01:00","ingest_time":"2026-01-01T12:00:10.2Z","value":10,"unit":"Cel","quality":"uncertain","novel":{"x":[1]}`)
	ns := int64(1767268810123456789)
	want := reading.Reading{
		Tag:   reading.MakeTag(reading.Series{Input: "A", Asset: "press-07", Device: "d1", Lifecycle: "SN-1182", Sensor: "k"}),
		Value: reading.IntValue(10), Unit: "Cel", Quality: reading.Quality{Level: reading.Uncertain},
		ID: "e1", Seq: 18446744073709551615, HasSeq: true,
		Source:   reading.SourceTime{NS: ns, Zoned: true, Raw: "2026-01-01T13:00:10.1234567891+01:00"},
		ServerNS: reading.NoTime, IngestNS: 1767268810200000000,
		Stamp: reading.Stamp{Disposition: reading.Accept, Policy: reading.PolicyTrusted, EventNS: ns, WatermarkMS: ns / 1e6},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b reading.Value) bool { return a == b }), cmp.Comparer(func(a, b reading.Tag) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// SEMANTICS N3: integers stay exact; a value may be no number.
func TestValues(t *testing.T) {
	for text, want := range map[string]reading.Value{
		"9007199254740993":     reading.IntValue(9007199254740993),
		"-9223372036854775808": reading.IntValue(-9223372036854775808),
		"18446744073709551615": reading.UintValue(18446744073709551615),
		"18446744073709551616": reading.FloatValue(18446744073709551616),
		"-0":                   reading.IntValue(0),
		"-0.0":                 reading.FloatValue(0),
		"1e2":                  reading.FloatValue(100),
		"2.5":                  reading.FloatValue(2.5),
		"true":                 reading.BoolValue(true),
		"false":                reading.BoolValue(false),
		`"RUN\u00e9"`:          reading.TextValue("RUNé"),
		"null":                 {},
	} {
		if got := one(t, `"source_time":0,"value":`+text).Value; got != want {
			t.Errorf("%s: got %s", text, got.AppendJSON(nil))
		}
	}
}

// SEMANTICS W4: a time that int64 nanoseconds cannot hold is quarantined, never
// wrapped.
func TestSourceTimesOutOfRange(t *testing.T) {
	for _, text := range []string{
		"9223372036855", "-9223372036855", "9223372036854775807", "-9223372036854775808", "1e30",
		"123456789012345678901234567890", `"2262-04-11T23:47:16.854775808Z"`, `"1677-09-21T00:12:43.145224192Z"`, `"1677-09-21T00:12:43.145Z"`, `"9999-12-31T23:59:59Z"`, `"0000-01-01T00:00:00Z"`,
	} {
		got := one(t, `"value":1,"source_time":`+text)
		if got.Stamp.Disposition != reading.Quarantine || got.Stamp.Reason != reading.SourceTimeRange ||
			got.Source.Fault != reading.TimeRange || got.Source.Raw != strings.Trim(text, `"`) || got.Stamp.EventNS != reading.NoTime {
			t.Errorf("%s: %+v %+v", text, got.Source, got.Stamp)
		}
	}
	for text, want := range map[string]int64{
		"9223372036854": 9223372036854e6, "-9223372036854": -9223372036854e6,
		`"2262-04-11T23:47:16.854775807Z"`: 9223372036854775807, `"1969-12-31T23:59:59.999999999Z"`: -1,
		`"1677-09-21T00:12:43.145224193Z"`: -9223372036854775807,
	} {
		if got := one(t, `"value":1,"source_time":`+text); got.Source.NS != want || !got.Stamp.Disposition.Accepted() {
			t.Errorf("%s: got %d", text, got.Source.NS)
		}
	}
}

func TestFaultsNameLineAndRemedy(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		got, err := steps(t, "\n# one\n"+`{"op":"advance","time":1}`+"\n"+line+"\n"+`{"op":"advance","time":2}`, false)
		var fault *trace.Fault
		if !errors.As(err, &fault) || fault.Line != 4 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one of line 4 with %q", line, err, want)
		}
		if len(got) != 1 {
			t.Errorf("%s: %d steps before it", line, len(got))
		}
	}
	f(`{"op":"advance","time":`, "is not JSON")
	f(`{"op":"advance","time":1}{}`, "is not JSON")
	f(`[1]`, "is no JSON object but an array")
	f(`3`, "is no JSON object but a number")
	f(`{}`, "op is missing")
	f(`{"op":"reding"}`, `unknown op "reding"`)
	f(`{"op":"advance"}`, "time is missing")
	f(`{"op":"advance","time":"noon"}`, `time "noon" is no RFC 3339 time`)
	f(`{"op":"advance","time":"2026-13-01T00:00:00Z"}`, "is no RFC 3339 time")
	f(`{"op":"advance","time":1.5}`, `time "1.5" is no whole number of milliseconds`)
	f(`{"op":"advance","time":1e30}`, `time "1e30" is out of range`)
	f(`{"op":"advance","time":true}`, "time cannot be a boolean")
	f(`{"op":"watermark","input":"A","time":1}`, "--watermarks explicit")
	f(`{"op":"idle"}`, "input is missing")
	f(`{"op":"inputs"}`, "names is missing")
	f(`{"op":"inputs","names":[1]}`, "names[0] cannot be a number")
	f(`{"op":"batch"}`, "readings is missing")
	f(`{"op":"batch","readings":[{"input":"A","sensor":"k","source_time":1,"value":1},{"input":"A"}]}`, "readings[1]: sensor is missing")
	f(`{"op":"reading","sensor":"k","source_time":1,"value":1}`, "input is missing")
	f(`{"op":"reading","input":"A","sensor":"k","value":1}`, "source_time is missing")
	f(`{"op":"reading","input":"A","sensor":"k","source_time":null,"value":1}`, "source_time is missing")
	f(`{"op":"reading","input":"A","sensor":"k","source_time":1}`, "value is missing")
	f(`{"op":"reading","input":"A","sensor":"k","source_time":1,"value":{}}`, "value cannot be an object")
	f(`{"op":"reading","input":"A","sensor":"k","source_time":1,"value":1e999}`, `value "1e999" is beyond every float`)
	f(`{"op":"reading","input":"A","sensor":"k","source_time":1,"value":NaN}`, "is not JSON")
	f(`{"op":"reading","input":"A","sensor":7,"source_time":1,"value":1}`, "sensor cannot be a number")
	f(`{"op":"reading","input":"A","sensor":"k","seq":-1,"source_time":1,"value":1}`, `seq "-1" is no whole number`)
	f(`{"op":"reading","input":"A","sensor":"k","source_time":1,"value":1,"quality":"fine"}`, `unknown quality "fine"`)
	f(`{"op":"reading","input":"A","sensor":"k","source_time":1,"value":1,"ingest_time":"9999-01-01T00:00:00Z"}`, "ingest_time")
}

func TestLongLines(t *testing.T) {
	long := `{"op":"advance","time":1,"why":"` + strings.Repeat("x", trace.MaxLine-34) + `"}`
	if got, err := steps(t, long+"\n"+long, false); err != nil || len(got) != 2 {
		t.Fatalf("lines of %d bytes: %v", len(long), err)
	}
	_, err := steps(t, long+"\n"+long+strings.Repeat(" ", 100), false)
	var fault *trace.Fault
	if !errors.As(err, &fault) || fault.Line != 2 || !strings.Contains(err.Error(), "longer than 16 MiB") {
		t.Fatalf("error %v", err)
	}
}

// A source that fails is no fault of the trace, even in the middle of a line.
func TestReadErrorIsNoFault(t *testing.T) {
	broken := errors.New("broken pipe")
	r := trace.NewReader(io.MultiReader(strings.NewReader(`{"op":"adv`), iotest.ErrReader(broken)), false)
	if _, err := r.Next(); err != broken {
		t.Fatalf("error %v", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(`{"op":"reading","input":"A","device":"d1","asset":"a","lifecycle":"l","sensor":"k","id":"e1","seq":3,"source_time":"2026-01-01T12:00:10Z","ingest_time":5,"value":-1.5,"unit":"Cel","quality":"good"}`, true)
	f.Add("# c\n\n"+`{"op":"batch","readings":[{"input":"A","sensor":"k","source_time":1,"value":null}],"time":"2026-01-01T12:00:11Z"}`, false)
	f.Add(`{"op":"watermark","input":"A","time":-5}`+"\n"+`{"op":"idle","input":"B","device":"d"}`, true)
	f.Add(` {"op" : "\u0072eading", "input":"\"A\\","sensor":"k\xff","\u0069d":"{[","source_time":1 , "value" : "}", "x":{"y":["\"]"]}} `, false)
	f.Add(`{"op":"inputs","names":["A","B"]}`+"\n"+`{"op":"advance","time":1e3}`, false)
	f.Add(`{"op":"clock","segment":4,"state":"synchronized","error_ns":4100000,"boot":"9f"}`+"\n"+`{"op":"clock","source":12,"verdict":"OK"}`+"\n"+
		`{"op":"batch","seq":9,"clock":4,"wall_time":5,"emit":true,"marks":[{"op":"catchup","at":1,"input":"A","state":"end"}],"readings":[{"input":"A","sensor":"k",`+
		`"source_time":null,"source_time_sent":"x","source_time_fault":"unparseable","value":1.0,"delivery":["initial"],"stamp":{"flags":["CORRECTED"],"source_clock":12}}]}`, false)
	f.Add(`{"op":"config","features":[{"name":"f","version":1,"window":300000,"definition":"0000002a","select":{"type":"number"}}],"floor":5}`+"\n"+
		`{"op":"evidence","input":"A","time":7}`, false)
	f.Fuzz(func(t *testing.T, text string, explicit bool) {
		r := trace.NewReader(strings.NewReader(text), explicit)
		for n := 0; ; n++ {
			op, err := r.Next()
			if err != nil {
				if op != nil {
					t.Fatal("an operation beside an error")
				}
				return
			}
			if op.Index != n || len(op.Steps) == 0 && !strings.Contains(text, "clock") {
				t.Fatalf("operation %d: %+v", n, op)
			}
			if !strings.Contains(text, "\n") {
				compare(t, text, op)
			}
			for i := range op.Steps {
				back, err := reading.DecodeBatch(reading.AppendBatch(nil, &op.Steps[i]))
				if err != nil || len(back.Readings) != len(op.Steps[i].Readings) {
					t.Fatalf("no batch: %v", err)
				}
				for j := range op.Steps[i].Readings {
					s := &op.Steps[i].Readings[j].Stamp
					if strings.Contains(text, "stamp") {
						continue // it says what it likes
					}
					if s.Disposition.Accepted() != (s.EventNS != reading.NoTime) || s.WatermarkMS != reading.FloorMS(s.EventNS) {
						t.Fatalf("stamp %+v", s)
					}
				}
			}
		}
	})
}

// compare reads a line with the standard library's decoder, which must see the
// same names and values.
func compare(t *testing.T, line string, op *trace.Op) {
	t.Helper()
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatalf("not JSON: %v", err)
	}
	if m["op"] != "reading" {
		return
	}
	r := op.Steps[len(op.Steps)-1].Readings[0]
	tag := r.Tag.Value()
	for name, got := range map[string]string{"input": tag.Input, "device": tag.Device, "asset": tag.Asset,
		"lifecycle": tag.Lifecycle, "sensor": tag.Sensor, "id": r.ID, "unit": r.Unit} {
		if want, _ := m[name].(string); got != want {
			t.Fatalf("%s is %q, want %q", name, got, want)
		}
	}
	switch want := m["value"].(type) {
	case string:
		if r.Value != reading.TextValue(want) {
			t.Fatalf("value %v, want %q", r.Value, want)
		}
	case json.Number:
		if f, _ := want.Float64(); r.Value.Float() != f {
			t.Fatalf("value %v, want %s", r.Value, want)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	line := `{"op":"reading","input":"A","device":"d1","asset":"press-07","lifecycle":"SN-1182","sensor":"bearing-temp","id":"e1","source_time":"2026-01-01T12:00:10Z","ingest_time":"2026-01-01T12:00:10.2Z","value":10.25,"unit":"Cel","quality":"good"}` + "\n"
	text := strings.Repeat(line, 1000)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r := trace.NewReader(strings.NewReader(text), false)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
	b.ReportMetric(float64(1000*b.N)/b.Elapsed().Seconds(), "readings/s")
}
