package mqtt_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

const arrivalNS = 1767225600_500_000_000 // 2026-01-01T00:00:00.5Z

var telemetry = mqtt.Subscription{
	Topic: "vib/{asset}/{device}/telemetry", Each: "samples",
	TimePath: "ts", TimeUnit: reading.UnitMillis, IDPath: "seq", Lifecycle: mqtt.Origin{Path: "serial"},
	Sensors: []mqtt.Sensor{
		{Name: "velocity-rms", Path: "v_rms", Unit: "mm/s", Range: &[2]float64{0, 100}},
		{Name: "temperature", Path: "t", Unit: "Cel"},
	},
}

var generator = mqtt.Subscription{
	Topic: "in/#", Each: "@this", TimePath: "ts", TimeUnit: reading.UnitMillis, SeqPath: "seq", QualityPath: "quality",
	Sensor: mqtt.Origin{Path: "sensor"}, Value: mqtt.Value{Path: "value", Unit: mqtt.Origin{Path: "unit"}},
}

func decoder(t testing.TB, subs ...mqtt.Subscription) *mqtt.Decoder {
	t.Helper()
	d, err := mqtt.NewDecoder(mqtt.Config{Input: "in", Subscriptions: subs, Assets: map[string]reading.Asset{
		"press-07": {
			Aliases:    map[string]string{"bearing_temp_old": "bearing-temp"},
			Lifecycles: []reading.Lifecycle{{ID: "SN-1", FromNS: reading.NoTime}, {ID: "SN-2", FromNS: arrivalNS}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func decode(d *mqtt.Decoder, topic, payload string) (out reading.Parcel) {
	d.Decode(&mqtt.Message{Topic: []byte(topic), Payload: []byte(payload), At: reading.Instant{WallNS: arrivalNS}}, &out, nil)
	return out
}

// said renders what matters of a parcel: a line for each reading and reject.
func said(p reading.Parcel) string {
	var b strings.Builder
	for _, r := range p.Readings {
		s := r.Tag.Value()
		b.WriteString(strings.Join([]string{s.Asset, s.Device, s.Lifecycle, s.Sensor}, "/"))
		b.WriteString(" " + string(r.Value.AppendJSON(nil)) + r.Unit + " " + r.Quality.Level.String())
		switch r.Source.Fault {
		case reading.TimeOK:
			b.WriteString(" @" + strings.Trim(string(reading.AppendJSONTime(nil, r.Source.NS)), `"`))
		case reading.TimeUnparseable:
			b.WriteString(" @unparseable:" + r.Source.Raw)
		case reading.TimeRange:
			b.WriteString(" @range:" + r.Source.Raw)
		}
		if r.ID != "" {
			b.WriteString(" id=" + r.ID)
		}
		b.WriteString("\n")
	}
	for _, r := range p.Rejects {
		b.WriteString(r.Kind.String() + " " + r.Reason + "\n")
	}
	return b.String()
}

func TestDecodeShapes(t *testing.T) {
	object := mqtt.Subscription{Topic: "m/{asset}/{sensor}", Value: mqtt.Value{Path: "v", Unit: mqtt.Origin{Text: "Cel"}}, TimePath: "t"}
	bare := mqtt.Subscription{Topic: "bare/{asset}/{sensor}"}
	keyed := mqtt.Subscription{Topic: "keys/{asset}", Each: "values", TimePath: "at", TimeUnit: reading.UnitSeconds, Value: mqtt.Value{Path: "v"}}
	pairs := mqtt.Subscription{Topic: "pairs/{asset}/{sensor}", Each: "@this", TimePath: "0", TimeUnit: reading.UnitSeconds, Value: mqtt.Value{Path: "1"}}
	listed := mqtt.Subscription{Topic: "l/{asset}", Sensor: mqtt.Origin{Path: "n.name"}, Value: mqtt.Value{Path: "n.v", Type: mqtt.Number},
		Sensors: []mqtt.Sensor{{Name: "bearing-temp", Unit: "Cel", Scale: 0.1, Offset: -40}}}
	who := mqtt.Subscription{Topic: "who", Asset: mqtt.Origin{Path: "a"}, Device: mqtt.Origin{Text: "dev"}, Sensor: mqtt.Origin{Text: "s"}, Value: mqtt.Value{Path: "v"}}

	for _, c := range []struct {
		name, topic, payload, want string
	}{
		{"array below a path, serial around it", "vib/p1/d1/telemetry", `{"serial":"SN-9","samples":[{"ts":1767225600000,"seq":4,"v_rms":1.5,"t":20},{"ts":1767225601000,"seq":5,"t":21}]}`,
			"p1/d1/SN-9/velocity-rms 1.5mm/s good @2026-01-01T00:00:00Z id=4#0\np1/d1/SN-9/temperature 20Cel good @2026-01-01T00:00:00Z id=4#0\np1/d1/SN-9/temperature 21Cel good @2026-01-01T00:00:01Z id=5#1\n"},
		{"one bad element does not stop the others", "vib/p1/d1/telemetry", `{"samples":[{"ts":1,"t":"x"},7,{"ts":1767225600000,"t":2},{}]}`,
			"p1/d1//temperature \"x\"Cel good @1970-01-01T00:00:00.001Z\np1/d1//temperature 2Cel good @2026-01-01T00:00:00Z\nmalformed field_missing\nmalformed field_missing\n"},
		{"outside the range is bad", "vib/p1/d1/telemetry", `{"samples":[{"v_rms":100},{"v_rms":100.5},{"v_rms":-1}]}`,
			"p1/d1//velocity-rms 100mm/s good\np1/d1//velocity-rms 100.5mm/s bad\np1/d1//velocity-rms -1mm/s bad\n"},
		{"lifecycle by source time", "m/press-07/x", `{"v":1,"t":"2026-01-01T00:00:00.4Z"}`, "press-07//SN-1/x 1Cel good @2026-01-01T00:00:00.4Z\n"},
		{"lifecycle by arrival without one", "m/press-07/x", `{"v":1}`, "press-07//SN-2/x 1Cel good\n"},
		{"alias", "m/press-07/bearing_temp_old", `{"v":1,"t":"2026-01-01T00:00:00.5Z"}`, "press-07//SN-2/bearing-temp 1Cel good @2026-01-01T00:00:00.5Z\n"},
		{"time in words", "m/a/x", `{"v":1,"t":"yesterday"}`, "a///x 1Cel good @unparseable:yesterday\n"},
		{"a number where text is declared", "m/a/x", `{"v":1,"t":17}`, "a///x 1Cel good @unparseable:17\n"},
		{"null time", "m/a/x", `{"v":1,"t":null}`, "a///x 1Cel good\n"},
		{"value missing", "m/a/x", `{"w":1}`, "malformed field_missing\n"},
		{"value null", "m/a/x", `{"v":null}`, "a///x nullCel bad\n"},
		{"value an object", "m/a/x", `{"v":{}}`, "malformed not_a_value\n"},
		{"the payload is the value", "bare/a/x", ` 21.5 `, "a///x 21.5 good\n"},
		{"the payload is text", "bare/a/x", `"on"`, "a///x \"on\" good\n"},
		{"keys are sensors", "keys/a", `{"at":1767225600,"values":{"t1":20,"t2":{"v":true,"at":1767225601},"t3":{}}}`,
			"a///t1 20 good @2026-01-01T00:00:00Z\na///t2 true good @2026-01-01T00:00:01Z\nmalformed field_missing\n"},
		{"pairs", "pairs/a/x", `[[1767225600.25,1],[1767225601,2]]`, "a///x 1 good @2026-01-01T00:00:00.25Z\na///x 2 good @2026-01-01T00:00:01Z\n"},
		{"scale and offset", "l/a", `{"n":{"name":"bearing-temp","v":654}}`, "a///bearing-temp 25.400000000000006Cel good\n"},
		{"numbers in quotes", "l/a", `{"n":{"name":"bearing-temp","v":"400"}}`, "a///bearing-temp 0Cel good\n"},
		{"decimal comma", "l/a", `{"n":{"name":"bearing-temp","v":"21,5"}}`, "malformed not_a_number\n"},
		{"unknown sensor", "l/a", `{"n":{"name":"other","v":1}}`, "unmatched sensor_unknown\n"},
		{"sensor not named", "l/a", `{"n":{"v":1}}`, "malformed field_missing\n"},
		{"alias of a listed sensor", "l/press-07", `{"n":{"name":"bearing_temp_old","v":400}}`, "press-07//SN-2/bearing-temp 0Cel good\n"},
		{"asset from the payload", "who", `{"a":"p1","v":1}`, "p1/dev//s 1 good\n"},
		{"asset a number", "who", `{"a":17,"v":1}`, "17/dev//s 1 good\n"},
		{"asset missing", "who", `{"v":1}`, "malformed field_missing\n"},
		{"a single object where an array may be", "in/data", `{"sensor":"s1","ts":1767225600000,"value":-3,"unit":"C","quality":"bad","seq":7}`, "///s1 -3C bad @2026-01-01T00:00:00Z\n"},
		{"an array", "in/data", `[{"sensor":"s1","value":1},{"sensor":"","value":1},{"sensor":"s2","value":2}]`, "///s1 1 good\n///s2 2 good\nmalformed field_missing\n"},
		{"an empty array", "in/data", `[]`, ""},
		{"each is a number", "vib/p1/d1/telemetry", `{"samples":3}`, "malformed not_an_array\n"},
		{"each is missing", "vib/p1/d1/telemetry", `{}`, "malformed field_missing\n"},
		{"unknown topic level", "vib/p1/telemetry", `{}`, "unmatched topic_unmatched\n"},
		{"not JSON", "in/data", `sensor=1`, "malformed not_json\n"},
		{"JSON and more", "in/data", `{} {}`, "malformed not_json\n"},
		{"nothing", "in/data", ``, "malformed empty_payload\n"},
		{"NaN as Python writes it does not take the others along", "in/data", `[{"sensor":"NaN","value":NaN},{"sensor":"b","value":-Infinity},{"sensor":"c","value":1}]`,
			"///NaN null bad\n///b null bad\n///c 1 good\n"},
		{"nesting", "in/data", strings.Repeat("[", 4000), "malformed too_deep\n"},
		{"a deep value that no path reaches", "in/data", `{"sensor":"s","value":1,"x":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `}`, "///s 1 good\n"},
		{"a name without end", "in/data", `{"sensor":"` + strings.Repeat("s", 2000) + `","value":1}`, "malformed name_too_long\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decoder(t, telemetry, generator, object, bare, keyed, pairs, listed, who)
			if diff := cmp.Diff(c.want, said(decode(d, c.topic, c.payload))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeNumbers(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{`9007199254740993`, "9007199254740993 good"}, // 2^53+1
		{`18446744073709551615`, "18446744073709551615 good"},
		{`18446744073709551616`, "18446744073709552000 good"},
		{`-9223372036854775808`, "-9223372036854775808 good"},
		{`-9223372036854775809`, "-9223372036854776000 good"},
		{`-12`, "-12 good"}, {`-0`, "0 good"}, {`1.0`, "1 good"}, {`1e3`, "1000 good"}, {`0.1`, "0.1 good"},
		{`1e-400`, "0 good"}, {`1e999`, "null bad"}, {`-1e999`, "null bad"},
		{`"NaN"`, "null bad"}, {`"-Infinity"`, "null bad"}, {`"inf"`, "null bad"},
		{`"0x10"`, "malformed not_a_number"}, {`"1_000"`, "malformed not_a_number"}, {`""`, "malformed not_a_number"},
		{`true`, "malformed not_a_number"}, {`"12 "`, "malformed not_a_number"},
	} {
		d := decoder(t, mqtt.Subscription{Topic: "{sensor}", Value: mqtt.Value{Type: mqtt.Number}})
		got := strings.TrimSuffix(strings.TrimPrefix(said(decode(d, "x", c.raw)), "///x "), "\n")
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.raw, got, c.want)
		}
	}
}

func TestDecodeBoolsAndTexts(t *testing.T) {
	f := func(kind mqtt.Type, raw, want string) {
		t.Helper()
		d := decoder(t, mqtt.Subscription{Topic: "{sensor}", Value: mqtt.Value{Type: kind}})
		got := strings.TrimSuffix(strings.TrimPrefix(said(decode(d, "x", raw)), "///x "), "\n")
		if got != want {
			t.Errorf("%v %s: got %s, want %s", kind, raw, got, want)
		}
	}
	f(mqtt.Bool, `true`, "true good")
	f(mqtt.Bool, `0`, "false good")
	f(mqtt.Bool, `"TRUE"`, "true good")
	f(mqtt.Bool, `2`, "malformed not_a_bool")
	f(mqtt.Text, `"NaN"`, `"NaN" good`)
	f(mqtt.Text, `1`, "malformed not_a_text")
	f(mqtt.AnyType, `false`, "false good")
	f(mqtt.AnyType, `"open"`, `"open" good`)
}

func TestDecodeQuality(t *testing.T) {
	mapped := generator
	mapped.Topic, mapped.QualityMap = "q/#", map[string]reading.Level{"192": reading.Good, "OK": reading.Good, "0": reading.Bad}
	d := decoder(t, generator, mapped)
	f := func(topic, quality string, want reading.Quality) {
		t.Helper()
		p := decode(d, topic, `{"sensor":"s","value":1,"quality":`+quality+`}`)
		if len(p.Readings) != 1 || p.Readings[0].Quality != want {
			t.Errorf("%s: got %v", quality, p)
		}
	}
	f("in/d", `"Good"`, reading.Quality{})
	f("in/d", `"weird"`, reading.Quality{Level: reading.Uncertain})
	f("in/d", `false`, reading.Quality{Level: reading.Bad})
	f("in/d", `null`, reading.Quality{})
	f("q/d", `192`, reading.Quality{Status: 192})
	f("q/d", `0`, reading.Quality{Level: reading.Bad})
	f("q/d", `64`, reading.Quality{Level: reading.Uncertain, Status: 64})
	f("q/d", `"OK"`, reading.Quality{})
}

func TestDecodeProvenance(t *testing.T) {
	seg := &reading.ClockSegment{ID: 7}
	d := decoder(t, generator)
	var out reading.Parcel
	d.Decode(&mqtt.Message{Topic: []byte("in/d"), Payload: []byte(`{"sensor":"s","value":1,"seq":18446744073709551615}`), Retain: true, Dup: true,
		At: reading.Instant{WallNS: 5, BoundNS: 2, Segment: seg}}, &out, nil)
	r := out.Readings[0]
	if !r.Delivery.Has(reading.Initial) || !r.Delivery.Has(reading.Redelivered) || r.IngestNS != 5 || r.Stamp.Clock != seg || r.Stamp.IngestBound != reading.MakeBound(2) {
		t.Errorf("got %+v", r)
	}
	if !r.HasSeq || r.Seq != 1<<64-1 || r.ServerNS != reading.NoTime || r.Source.Fault != reading.TimeNull {
		t.Errorf("got %+v", r)
	}
}

func TestDecodeKeepsNothingOfTheBuffer(t *testing.T) {
	payload := []byte(`{"sensor":"sensor-1","ts":"2026-01-01T00:00:00Z","value":"text","unit":"Cel","seq":1,"id":"id-1"}`)
	topic := []byte("in/topic")
	sub := generator
	sub.IDPath = "id"
	d := decoder(t, sub)
	var out reading.Parcel
	for range 2 { // the second time everything comes from memory
		d.Decode(&mqtt.Message{Topic: topic, Payload: payload}, &out, nil)
	}
	d.Decode(&mqtt.Message{Topic: topic, Payload: payload[:20]}, &out, nil)
	for i := range payload {
		payload[i] = '#'
	}
	for i := range topic {
		topic[i] = '#'
	}
	for _, r := range out.Readings {
		if s := r.Tag.Value().Sensor + r.Source.Raw + r.Value.Text() + r.Unit + r.ID; strings.Contains(s, "#") {
			t.Errorf("a reading points into the buffer: %s", s)
		}
	}
	r := out.Rejects[0]
	if strings.Contains(r.Detail+r.Place, "#") || bytes.ContainsRune(r.Excerpt, '#') {
		t.Errorf("a reject points into the buffer: %+v", r)
	}
}

func TestDecodeBoundsEvidence(t *testing.T) {
	d := decoder(t, generator)
	p := decode(d, "in/d", "["+strings.Repeat(`{"value":1},`, 5000)+`{"sensor":"s","value":1}]`)
	if len(p.Rejects) != 5000 || len(p.Readings) != 1 {
		t.Fatalf("%d rejects, %d readings", len(p.Rejects), len(p.Readings))
	}
	if p.Rejects[0].Detail == "" || p.Rejects[4999].Detail != "" || p.Rejects[4999].Reason != "field_missing" {
		t.Error("only the first rejects of a message are described")
	}
	d.TooLarge(&mqtt.Message{Topic: []byte("in/d"), Payload: make([]byte, 1000)}, 10<<20, 1<<20, &p)
	if r := p.Rejects[5000]; r.Reason != "too_large" || len(r.Excerpt) != 256 || !strings.Contains(r.Detail, "10485760") {
		t.Errorf("got %+v", r)
	}
}

func TestDecodeSpills(t *testing.T) {
	d := decoder(t, generator)
	var out reading.Parcel
	total, spills := 0, 0
	payload := "[" + strings.Repeat(`{"sensor":"s","value":1},`, 4999) + `{"sensor":"s","value":1}]`
	d.Decode(&mqtt.Message{Topic: []byte("in/d"), Payload: []byte(payload)}, &out, func() {
		spills++
		total += len(out.Readings)
		out.Readings = nil
	})
	if total += len(out.Readings); total != 5000 || spills != 4 {
		t.Errorf("%d readings, %d spills", total, spills)
	}
}

func TestDecoderRefusesConfiguration(t *testing.T) {
	f := func(want string, subs ...mqtt.Subscription) {
		t.Helper()
		_, err := mqtt.NewDecoder(mqtt.Config{Subscriptions: subs})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	s := []mqtt.Sensor{{Name: "a"}}
	f("nothing to subscribe to")
	f("empty", mqtt.Subscription{Sensors: s})
	f("# must be the last", mqtt.Subscription{Topic: "a/#/b", Sensors: s})
	f("stands there twice", mqtt.Subscription{Topic: "{asset}/{asset}", Sensors: s})
	f("neither text nor", mqtt.Subscription{Topic: "a/{foo}", Sensors: s})
	f("neither text nor", mqtt.Subscription{Topic: "a/b+", Sensors: s})
	f("with share", mqtt.Subscription{Topic: "$share/g/a", Sensors: s})
	f("nothing names the sensor", mqtt.Subscription{Topic: "a"})
	f("subscribed to twice", mqtt.Subscription{Topic: "a/{asset}", Sensors: s}, mqtt.Subscription{Topic: "a/+", Sensors: s})
	f("range", mqtt.Subscription{Topic: "a", Sensors: []mqtt.Sensor{{Name: "a", Range: &[2]float64{1, 0}}}})
	f("name of its own", mqtt.Subscription{Topic: "a", Sensors: []mqtt.Sensor{{Name: "a"}, {Name: "a"}}})
	f("qos 3", mqtt.Subscription{Topic: "a", QoS: 3, Sensors: s})
}
