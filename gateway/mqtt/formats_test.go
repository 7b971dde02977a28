package mqtt_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

var (
	plainSub = mqtt.Subscription{Topic: "plain/{asset}/{sensor}", Format: mqtt.Plain, Value: mqtt.Value{Map: map[string]string{"ON": "1", "OFF": "0"}}}
	csvSub   = mqtt.Subscription{Topic: "csv/{asset}", Format: mqtt.CSV, Columns: []string{"time", "n", "flow", "state"}, TimePath: "time", IDPath: "n",
		Sensors: []mqtt.Sensor{{Name: "flow", Unit: "L/min", Scale: 0.1}, {Name: "state", Type: mqtt.Text, Map: map[string]string{"0": "stopped", "1": "running"}}}}
	headedSub   = mqtt.Subscription{Topic: "headed/{asset}", Format: mqtt.CSV, Separator: ';', TimePath: "t", TimeUnit: reading.UnitSeconds}
	influxSub   = mqtt.Subscription{Topic: "influx", Format: mqtt.Influx, Asset: mqtt.Origin{Path: "host"}, Device: mqtt.Origin{Path: "@measurement"}}
	influxValue = mqtt.Subscription{Topic: "influx/value", Format: mqtt.Influx, TimeUnit: reading.UnitSeconds, Sensor: mqtt.Origin{Path: "sensor"}, Value: mqtt.Value{Unit: mqtt.Origin{Path: "unit"}}}
	senmlSub    = mqtt.Subscription{Topic: "senml", Format: mqtt.SenML}
	senmlParts  = mqtt.Subscription{Topic: "senml/parts", Format: mqtt.SenML, Device: mqtt.Origin{Path: "bn"}, Sensor: mqtt.Origin{Path: "n"}}
	waveSub     = mqtt.Subscription{Topic: "wave/{asset}/{sensor}", TimePath: "t0", TimeUnit: reading.UnitMillis, IDPath: "id", Value: mqtt.Value{Path: "y", Unit: mqtt.Origin{Text: "g"}},
		Waveform: &mqtt.Waveform{Rate: mqtt.Origin{Path: "fs"}}}
	stepSub = mqtt.Subscription{Topic: "step/{asset}", Each: "blocks", TimePath: "t0", TimeUnit: reading.UnitMillis, IDPath: "id", Sensors: []mqtt.Sensor{{Name: "x"}, {Name: "y"}},
		Waveform: &mqtt.Waveform{StepPath: "dt", StepUnit: reading.UnitMicros}}
	formatSubs = []mqtt.Subscription{plainSub, csvSub, headedSub, influxSub, influxValue, senmlSub, senmlParts, waveSub, stepSub}
)

func TestFormats(t *testing.T) {
	for _, c := range []struct{ name, topic, payload, want string }{
		{"plain number", "plain/p1/temp", " 21.5\r\n", "p1///temp 21.5 good\n"},
		{"plain integer", "plain/p1/temp", "-12", "p1///temp -12 good\n"},
		{"plain exponent", "plain/p1/temp", "+1.5e3", "p1///temp 1500 good\n"},
		{"plain text that a map gives a number", "plain/p1/valve", "ON", "p1///valve 1 good\n"},
		{"plain quoted text", "plain/p1/valve", `"OFF"`, "p1///valve 0 good\n"},
		{"plain text", "plain/p1/valve", "AUTO", "p1///valve \"AUTO\" good\n"},
		{"plain boolean", "plain/p1/valve", "true", "p1///valve true good\n"},
		{"plain NaN", "plain/p1/temp", "nan", "p1///temp null bad\n"},
		{"plain with a trailing zero byte, as C writes it", "plain/p1/temp", "7\x00", "p1///temp 7 good\n"},
		{"plain blanks", "plain/p1/temp", "  ", "p1///temp null bad\n"},

		{"CSV line", "csv/p1", "2026-01-01T00:00:00+01:00,7,123,1", "p1///flow 12.3L/min good @2025-12-31T23:00:00Z id=7\np1///state \"running\" good @2025-12-31T23:00:00Z id=7\n"},
		{"CSV lines have an index", "csv/p1", "2026-01-01 00:00:00,7,10,0\r\n2026-01-01T00:00:01Z,8,20,9\r\n", "p1///flow 1L/min good @2026-01-01T00:00:00Z id=7#0\np1///state \"stopped\" good @2026-01-01T00:00:00Z id=7#0\n" +
			"p1///flow 2L/min good @2026-01-01T00:00:01Z id=8#1\nmalformed not_a_text\n"},
		{"CSV with a column too many", "csv/p1", "2026-01-01T00:00:00Z,7,1,2,3", "malformed columns_differ\n"},
		{"CSV with a bad quote does not take the next line along", "csv/p1", "2026-01-01T00:00:00Z,7,\"1\"x,1\n2026-01-01T00:00:01Z,8,20,0", "p1///flow 2L/min good @2026-01-01T00:00:01Z id=8#0\np1///state \"stopped\" good @2026-01-01T00:00:01Z id=8#0\nmalformed not_csv\n"},
		{"CSV with an empty field", "csv/p1", "2026-01-01T00:00:00Z,,5,0", "p1///flow 0.5L/min good @2026-01-01T00:00:00Z\np1///state \"stopped\" good @2026-01-01T00:00:00Z\n"},
		{"CSV with a header, every column a sensor", "headed/p1", "t;rpm;\"oil; temp\"\n1767225600;1500;81,5\n", "p1///rpm 1500 good @2026-01-01T00:00:00Z\np1///oil; temp \"81,5\" good @2026-01-01T00:00:00Z\n"},
		{"CSV with a header alone", "headed/p1", "t;rpm", ""},

		{"line protocol, every field a sensor", "influx", `vib,host=p1,line=3 rms=1.5,n=-12i,total=18446744073709551615u,on=t,mode="a \"b\", c" 1767225600000000001`,
			"p1/vib//rms 1.5 good @2026-01-01T00:00:00.000000001Z\np1/vib//n -12 good @2026-01-01T00:00:00.000000001Z\np1/vib//total 18446744073709551615 good @2026-01-01T00:00:00.000000001Z\n" +
				"p1/vib//on true good @2026-01-01T00:00:00.000000001Z\np1/vib//mode \"a \\\"b\\\", c\" good @2026-01-01T00:00:00.000000001Z\n"},
		{"line protocol without a time, with comments and blank lines", "influx", "# comment\n\nvib,host=p1 x=1\nvib,host=p2 x=2\n", "p1/vib//x 1 good\np2/vib//x 2 good\n"},
		{"line protocol's escapes", "influx", `my\ vib,host=p\,1 oil\ temp=80`, "p,1/my vib//oil temp 80 good\n"},
		{"a line break in a text", "influx", "m,host=a s=\"x\ny\",v=1\nm,host=b v=2", "a/m//s \"x\\ny\" good\na/m//v 1 good\nb/m//v 2 good\n"},
		{"one bad line does not stop the others", "influx", "m,host=a v=1x\nm,host=a\nm,host=b v=2 now\nv=3\nm v=4\nm,host=c v=5", "c/m//v 5 good\n" + strings.Repeat("malformed not_line_protocol\n", 4) + "malformed field_missing\n"},
		{"a fraction that says it is whole", "influx", "m,host=a v=1.5i", "malformed not_line_protocol\n"},
		{"line protocol whose tag names the sensor", "influx/value", "m,sensor=oil,unit=Cel value=80 1767225600", "///oil 80Cel good @2026-01-01T00:00:00Z\n"},

		{"SenML of RFC 8428, 5.1.2", "senml", `[{"bn":"urn:dev:ow:10e2073a01080063:","n":"voltage","u":"V","v":120.1},{"n":"current","u":"A","v":1.2}]`,
			"///urn:dev:ow:10e2073a01080063:voltage 120.1V good\n///urn:dev:ow:10e2073a01080063:current 1.2A good\n"},
		{"SenML of RFC 8428, 5.1.2, with base time", "senml/parts", `[{"bn":"d1:","bt":1.276020076001e+09,"bu":"A","bver":5,"n":"voltage","u":"V","v":120.1},{"n":"current","t":-5,"v":1.2},{"n":"current","t":-4,"v":1.3}]`,
			"/d1://voltage 120.1V good @2010-06-08T18:01:16.001Z\n/d1://current 1.2A good @2010-06-08T18:01:11.001Z\n/d1://current 1.3A good @2010-06-08T18:01:12.001Z\n"},
		{"SenML relative to now", "senml", `[{"n":"a","t":-2.5,"v":1},{"n":"b","v":2},{"n":"c","t":0,"v":3}]`, "///a 1 good @2025-12-31T23:59:58Z\n///b 2 good\n///c 3 good\n"},
		{"SenML times beyond int64", "senml", `[{"n":"a","bt":-9e9,"t":-9e9,"v":1},{"n":"b","bt":9e9,"t":9e9,"v":2}]`, "///a 1 good @range:-9e9\n///b 2 good @range:9e9\n"},
		{"SenML of every kind", "senml", `[{"bn":"d","bt":1767225600},{"n":"v","v":-12},{"n":"vs","vs":"on"},{"n":"vb","vb":true},{"n":"vd","vd":"aGk"},{"n":"e","s":100,"u":"kWh"},{"n":"both","v":1,"s":2}]`,
			"///dv -12 good @2026-01-01T00:00:00Z\n///dvs \"on\" good @2026-01-01T00:00:00Z\n///dvb true good @2026-01-01T00:00:00Z\n///dvd \"aGk\" good @2026-01-01T00:00:00Z\n" +
				"///de.sum 100kWh good @2026-01-01T00:00:00Z\n///dboth 1 good @2026-01-01T00:00:00Z\n///dboth.sum 2 good @2026-01-01T00:00:00Z\n"},
		{"SenML base value and base sum", "senml", `[{"bn":"d","bv":9007199254740992,"bs":0.5},{"n":"x","v":1},{"n":"y","s":1}]`, "///dx 9007199254740993 good\n///dy.sum 1.5 good\n"},
		{"SenML that must be understood", "senml", `[{"n":"a","v":1},{"n":"b","v":2,"zap_":1},{"n":"c","v":3}]`, "///a 1 good\nmalformed senml_field\n"},
		{"SenML of a later version", "senml", `[{"bver":11,"n":"a","v":1}]`, "malformed senml_version\n"},
		{"SenML without a name or a value", "senml", `[{"v":1},{"n":"a"},7,{"n":"b","v":2}]`, "///b 2 good\nmalformed field_missing\nmalformed field_missing\nmalformed not_senml\n"},
		{"SenML that is an object", "senml", `{"n":"a","v":1}`, "malformed not_senml\n"},

		{"waveform by rate", "wave/p1/accel", `{"t0":1767225600000,"fs":25600,"id":"w9","y":[1,-2.5,null]}`, "p1///accel 1g good @2026-01-01T00:00:00Z id=w9#0\np1///accel -2.5g good @2026-01-01T00:00:00.000039062Z id=w9#1\n" +
			"p1///accel nullg bad @2026-01-01T00:00:00.000078125Z id=w9#2\n"},
		{"NaN in a waveform", "wave/p1/accel", `{"t0":1767225600000,"fs":"1","y":[NaN,3]}`, "p1///accel nullg bad @2026-01-01T00:00:00Z\np1///accel 3g good @2026-01-01T00:00:01Z\n"},
		{"waveform without a rate", "wave/p1/accel", `{"t0":1767225600000,"y":[1]}`, "malformed no_rate\n"},
		{"waveform at rate 0", "wave/p1/accel", `{"t0":1767225600000,"fs":0,"y":[1]}`, "malformed no_rate\n"},
		{"waveform with a text in it", "wave/p1/accel", `{"t0":1767225600000,"fs":1,"y":[1,[2],{"a":3}]}`, "p1///accel 1g good @2026-01-01T00:00:00Z\nmalformed not_a_value\nmalformed not_a_value\n"},
		{"waveforms of two channels in blocks", "step/p1", `{"id":"m","dt":0.5,"blocks":[{"t0":1767225600000,"x":[1,2],"y":[3]},{"t0":1767225600001,"x":[4]}]}`,
			"p1///x 1 good @2026-01-01T00:00:00Z id=m#0#0\np1///x 2 good @2026-01-01T00:00:00.0000005Z id=m#0#1\np1///y 3 good @2026-01-01T00:00:00Z id=m#0#0\np1///x 4 good @2026-01-01T00:00:00.001Z id=m#1#0\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, said(decode(decoder(t, formatSubs...), c.topic, c.payload))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewDecoderRefusesWhatAFormatHasNot(t *testing.T) {
	for _, c := range []struct {
		want string
		sub  mqtt.Subscription
	}{
		{"name its sensor", mqtt.Subscription{Topic: "a", Format: mqtt.Plain}},
		{"has no fields", mqtt.Subscription{Topic: "a/{sensor}", Format: mqtt.Plain, TimePath: "t"}},
		{"give time.unit alone", mqtt.Subscription{Topic: "a", Format: mqtt.Influx, TimePath: "t"}},
		{"each: csv has no arrays", mqtt.Subscription{Topic: "a", Format: mqtt.CSV, Each: "x"}},
		{"which column is the value", mqtt.Subscription{Topic: "a/{sensor}", Format: mqtt.CSV}},
		{"waveforms are JSON", mqtt.Subscription{Topic: "a", Format: mqtt.CSV, TimePath: "t", Waveform: &mqtt.Waveform{Rate: mqtt.Origin{Text: "1"}}}},
		{"senml has its own time", mqtt.Subscription{Topic: "a", Format: mqtt.SenML, TimePath: "t"}},
		{"sparkplug has its own time", mqtt.Subscription{Topic: "a", Format: mqtt.Sparkplug, IDPath: "t"}},
		{"a sparkplug device is", mqtt.Subscription{Topic: "a/{device}", Format: mqtt.Sparkplug}},
		{"give rate", mqtt.Subscription{Topic: "a/{sensor}", TimePath: "t", Waveform: &mqtt.Waveform{}}},
		{"is it s, ms, us or ns", mqtt.Subscription{Topic: "a/{sensor}", TimePath: "t", Waveform: &mqtt.Waveform{StepPath: "dt"}}},
		{"does not say where it is", mqtt.Subscription{Topic: "a/{sensor}", Waveform: &mqtt.Waveform{Rate: mqtt.Origin{Text: "1"}}}},
		{"no number of samples", mqtt.Subscription{Topic: "a/{sensor}", TimePath: "t", Waveform: &mqtt.Waveform{Rate: mqtt.Origin{Text: "fast"}}}},
	} {
		if _, err := mqtt.NewDecoder(mqtt.Config{Input: "in", Subscriptions: []mqtt.Subscription{c.sub}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.sub, err, c.want)
		}
	}
}

// What does not change within a day's epochs is bounded; what is silent for long
// makes room.
func TestSeriesAreBounded(t *testing.T) {
	d, err := mqtt.NewDecoder(mqtt.Config{Input: "in", MaxSeries: 3, Subscriptions: []mqtt.Subscription{plainSub}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(days int64, sensors ...string) string {
		var out reading.Parcel
		for _, s := range sensors {
			d.Decode(&mqtt.Message{Topic: []byte("plain/a/" + s), Payload: []byte("1"), At: reading.Instant{WallNS: arrivalNS, BootNS: days * 24 * 3600e9}}, &out, nil)
		}
		var b strings.Builder
		for _, r := range out.Readings {
			b.WriteString(r.Tag.Value().Sensor + " ")
		}
		for _, j := range out.Rejects {
			b.WriteString(j.Kind.String() + ":" + j.Reason + " ")
		}
		return b.String()
	}
	for _, c := range []struct {
		days    int64
		sensors []string
		want    string
	}{
		{1, []string{"a", "b", "c", "d", "a"}, "a b c a unmatched:too_many_series "},
		{2, []string{"a", "d"}, "a unmatched:too_many_series "},
		{3, []string{"d", "a", "e", "b"}, "d a e unmatched:too_many_series "},
	} {
		if got := at(c.days, c.sensors...); got != c.want {
			t.Errorf("day %d: got %q, want %q", c.days, got, c.want)
		}
	}
}

// The scanner takes what is JSON and nothing else, whichever way it is asked; the
// standard library is the second method.
func TestScannerIsJSON(t *testing.T) {
	part := rapid.SampledFrom([]string{"{", "}", "[", "]", ",", ":", `"a"`, `"ts"`, `"\u00e9\n"`, `"\x"`, "1", "-0.5e+3", "01", "1.", ".5", "true", "nul", "null", " ", "\t", "\x01", `"`})
	whole := rapid.Custom(func(t *rapid.T) string {
		v := any(map[string]any{"sensor": "s", "value": rapid.Float64().Draw(t, "f"), "x": []any{nil, "é\"\\", true, map[string]any{"": rapid.Int64().Draw(t, "i")}}})
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	})
	d := decoder(t, generator)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(whole, rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOf(part).Draw(t, "parts"), "") })).Draw(t, "s")
		if s == "" {
			return
		}
		got := said(decode(d, "in/x", s))
		if json.Valid([]byte(s)) == strings.Contains(got, "not_json") {
			t.Fatalf("%q: valid %v, and: %s", s, json.Valid([]byte(s)), got)
		}
	})
}

// A payload that breaks off gives nothing, in one pass or in two.
func TestTruncatedPayloadGivesNothing(t *testing.T) {
	d := decoder(t, generator)
	for _, n := range []int{3, 3000} {
		whole := "[" + strings.TrimSuffix(strings.Repeat(`{"sensor":"a","value":1},`, n), ",") + "]"
		if p := decode(d, "in/x", whole); len(p.Readings) != n || len(p.Rejects) != 0 {
			t.Fatalf("%d readings, %d rejects of %d", len(p.Readings), len(p.Rejects), n)
		}
		for _, cut := range []int{1, 2, 10, len(whole) / 2} {
			if p := decode(d, "in/x", whole[:len(whole)-cut]); len(p.Readings) != 0 || len(p.Rejects) != 1 || p.Rejects[0].Reason != "not_json" {
				t.Fatalf("%d of %d bytes: %d readings, %d rejects", len(whole)-cut, len(whole), len(p.Readings), len(p.Rejects))
			}
		}
	}
}

// Numbers are rounded as the standard library rounds them.
func TestNumbersAgreeWithTheStandardLibrary(t *testing.T) {
	d := decoder(t, plainSub)
	rapid.Check(t, func(t *rapid.T) {
		s := fmt.Sprintf("%d.%0*de%d", rapid.Int64Range(-1e6, 1e6).Draw(t, "whole"), rapid.IntRange(1, 12).Draw(t, "digits"), rapid.Int64Range(0, 9e11).Draw(t, "fraction"), rapid.IntRange(-40, 40).Draw(t, "exponent"))
		want, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(d, "plain/a/b", s).Readings[0].Value; got != reading.FloatValue(want) {
			t.Fatalf("%s: got %v, want %v", s, got.Float(), want)
		}
	})
}

func FuzzFormats(f *testing.F) {
	for _, s := range []string{"21.5", "2026-01-01T00:00:00Z,7,123,1\n", "t;rpm\n1;2", `vib,host=p1 rms=1.5,n=-12i,m="a\"b" 1767225600000000001`,
		`[{"bn":"d","bt":1.7e9,"n":"v","v":1,"s":2},{"n":"x","vb":true,"t":-1}]`, `{"t0":1767225600000,"fs":25600,"id":"w9","y":[1,-2.5,null]}`,
		`{"id":"m","dt":0.5,"blocks":[{"t0":1,"x":[1,2],"y":[3]}]}`} {
		f.Add([]byte(s))
	}
	with := func(t testing.TB) *mqtt.Decoder {
		d, err := mqtt.NewDecoder(mqtt.Config{Input: "in", Subscriptions: formatSubs, Presence: []mqtt.Presence{{Topic: "status/{device}"}, {Topic: "state/{device}", Path: "online", Gone: []string{"false"}}}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	used := with(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		fresh := with(t)
		for _, topic := range []string{"status/d", "state/d", "plain/a/b", "csv/a", "headed/a", "influx", "influx/value", "senml", "senml/parts", "wave/a/b", "step/a"} {
			same(t, fresh, used, topic, payload)
		}
	})
}

// same checks what holds of every decoder: nothing panics, nothing that is kept
// points into the buffer, and what is remembered changes nothing.
func same(t *testing.T, fresh, used *mqtt.Decoder, topic string, payload []byte) {
	t.Helper()
	want := said(decode(fresh, topic, string(payload)))
	buffer := bytes.Clone(payload)
	var got reading.Parcel
	used.Decode(&mqtt.Message{Topic: []byte(topic), Payload: buffer, At: reading.Instant{WallNS: arrivalNS}}, &got, nil)
	for i := range buffer {
		buffer[i] = 'X'
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Fatalf("%s: %s", topic, diff)
	}
	for _, j := range got.Rejects {
		if len(j.Excerpt) > 256 || j.Reason == "" || j.Place != topic {
			t.Fatalf("got %+v", j)
		}
	}
}
