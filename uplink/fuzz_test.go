package uplink_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tidemark/uplink"
)

// FuzzEncode: whatever the outbox holds, a record is refused or becomes one JSON
// object with a head, on a topic that a broker takes.
func FuzzEncode(f *testing.F) {
	for _, r := range records() {
		f.Add(r.Kind, r.Data)
	}
	f.Add(uplink.KindEvent, []byte(" {\"KIND\":\"x\",\"clock\":{\"state\":\"?\"}}\n"))
	f.Add(uplink.KindEvent, []byte(`{"kind":"x","kind":3}`))
	f.Add(uplink.KindDefinition, []byte(`{"feature":"+","version":-1}`))
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		var m uplink.Message
		if err := enc.Encode(&m, uplink.Record{Kind: kind, Data: data}); err != nil {
			return
		}
		var got struct {
			Type, Gateway string
			UpdateID      string `json:"update_id"`
		}
		if err := json.Unmarshal(m.Payload, &got); err != nil {
			t.Fatalf("%v in %q", err, m.Payload)
		}
		if props := m.Properties(0, false); len(got.UpdateID) != 32 || props[4].Value != got.UpdateID {
			t.Fatalf("update_id %q in %q, %q in the properties", got.UpdateID, m.Payload, props[4].Value)
		}
		if !strings.HasPrefix(m.Topic, "tidemark/v1/line-3/") || strings.ContainsAny(m.Topic, "+#\x00") {
			t.Fatalf("topic %q", m.Topic)
		}
	})
}
