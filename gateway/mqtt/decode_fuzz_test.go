package mqtt_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

// FuzzDecode: no payload panics, hides, or leaves a pointer into the buffer, and
// what is remembered of earlier messages changes nothing.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"sensor":"s1","ts":1767225600000,"value":21.5,"unit":"C","quality":"good","seq":7}`,
		`[{"sensor":"a","value":1e999},{"sensor":"b","value":NaN,"ts":"2026-01-01T00:00:00+01:00"}]`,
		`{"serial":"SN","samples":[{"ts":1767225600000.25,"seq":4,"v_rms":1.5,"t":"20"},[],null,"x"]}`,
		`{"values":{"a":1,"b":{"v":true}},"at":1e9}`, `"NaN"`, `18446744073709551616`, `-Infinity`, `[[[[[[`, "{\"a\":\xff}", `{"sensor":"\u0000\ud800","value":"\""}`,
	} {
		f.Add([]byte(s))
	}
	bare := mqtt.Subscription{Topic: "bare/{asset}/{sensor}"}
	keyed := mqtt.Subscription{Topic: "keys/{asset}", Each: "values", TimePath: "at", TimeUnit: reading.UnitSeconds}
	used := decoder(f, telemetry, generator, bare, keyed)
	f.Fuzz(func(t *testing.T, payload []byte) {
		fresh := decoder(t, telemetry, generator, bare, keyed)
		for _, topic := range []string{"in/x", "vib/press-07/d/telemetry", "bare/a/b", "keys/a"} {
			want := decode(fresh, topic, string(payload))
			buffer := bytes.Clone(payload)
			var got reading.Parcel
			used.Decode(&mqtt.Message{Topic: []byte(topic), Payload: buffer, At: reading.Instant{WallNS: arrivalNS}}, &got, nil)
			for i := range buffer {
				buffer[i] = 'X'
			}
			if diff := cmp.Diff(said(want), said(got)); diff != "" {
				t.Fatal(diff)
			}
			if len(got.Readings)+len(got.Rejects) == 0 && (len(bytes.TrimSpace(payload)) == 0 || topic == "bare/a/b") {
				t.Fatalf("%q vanished", payload)
			}
			if !json.Valid(payload) && !strings.Contains(string(payload), "N") && !strings.Contains(string(payload), "Infinity") && len(got.Readings) > 0 {
				t.Fatalf("%q is no JSON and gave %s", payload, said(got))
			}
			for _, j := range got.Rejects {
				if len(j.Excerpt) > 256 || j.Reason == "" || j.Place != topic {
					t.Fatalf("got %+v", j)
				}
			}
		}
	})
}
