package uplink

import (
	"bytes"
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What is written is what an independent reader of MQTT 5 makes of it, and as long
// as was said before.
func TestPublishPacket(t *testing.T) {
	text := rapid.StringN(0, 40, -1)
	rapid.Check(t, func(t *rapid.T) {
		m := Message{Topic: rapid.StringN(1, 60, -1).Draw(t, "topic"), Payload: []byte(strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 90, 127, 128, 16000, 16384, 1 << 21}).Draw(t, "size")))}
		var props [8]Property
		var want []packets.User
		for i := range props {
			props[i] = Property{text.Draw(t, "name"), text.Draw(t, "value")}
			want = append(want, packets.User{Key: props[i].Name, Value: props[i].Value})
		}
		id := rapid.Uint16Min(1).Draw(t, "id")
		alias := rapid.SampledFrom([]uint16{0, 1, 300}).Draw(t, "alias")
		retain := rapid.Bool().Draw(t, "retain")
		b := appendPublish([]byte("before"), id, &m, &props, m.Topic, alias, retain)[len("before"):]
		if n := packetSize(&m, &props); alias != 0 && n != len(b) {
			t.Fatalf("the packet has %d bytes, not %d", len(b), n)
		}
		r := bytes.NewReader(b)
		p, err := packets.ReadPacket(r)
		if err != nil || r.Len() > 0 {
			t.Fatalf("%v, %d bytes are left over", err, r.Len())
		}
		got := p.Content.(*packets.Publish)
		if got.Topic != m.Topic || got.PacketID != id || got.QoS != 1 || got.Retain != retain || got.Duplicate || !bytes.Equal(got.Payload, m.Payload) {
			t.Fatalf("read as %s", got)
		}
		if has := got.Properties.TopicAlias; (has != nil) != (alias != 0) || has != nil && *has != alias {
			t.Fatalf("alias %v, want %d", has, alias)
		}
		if got.Properties.ContentType != contentType || *got.Properties.PayloadFormat != 1 {
			t.Fatalf("properties %+v", got.Properties)
		}
		if d := cmp.Diff(want, got.Properties.User); d != "" {
			t.Fatal(d)
		}
	})
}
