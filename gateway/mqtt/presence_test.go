package mqtt_test

import (
	"strings"
	"testing"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

func TestPresence(t *testing.T) {
	d, err := mqtt.NewDecoder(mqtt.Config{Input: "in", Subscriptions: []mqtt.Subscription{telemetry}, Presence: []mqtt.Presence{
		{Topic: "vib/+/{device}/status"}, {Topic: "vib/+/{device}/telemetry/state", Path: "online", Gone: []string{"false", "0"}}, {Topic: "beat", Device: "plc"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	says := func(second int64, topic, payload string, retain bool) string {
		var out reading.Parcel
		d.Decode(&mqtt.Message{Topic: []byte(topic), Payload: []byte(payload), Retain: retain, At: reading.Instant{WallNS: arrivalNS, BootNS: second * 1e9}}, &out, nil)
		if len(out.Readings)+len(out.Rejects) > 0 {
			t.Errorf("%s %s: presence is no reading", topic, payload)
		}
		s := ""
		for _, m := range out.Marks {
			if m.Input != "in" || m.TimeMS != reading.NoTime || m.Asset != "" {
				t.Errorf("%+v", m)
			}
			s += map[reading.MarkKind]string{reading.MarkIdle: "gone ", reading.MarkActive: "alive "}[m.Kind] + m.Device
		}
		return s
	}
	for i, c := range []struct {
		second         int64
		topic, payload string
		retain         bool
		want           string
	}{
		{10, "vib/a/d1/status", "online", false, "alive d1"},
		{11, "vib/a/d1/status", "online", false, ""}, // a beat each second is not worth a mark each second
		{11, "vib/a/d2/status", "online", false, "alive d2"},
		{12, "vib/a/d1/status", "offline", false, "gone d1"},
		{12, "vib/a/d1/status", "online", false, "alive d1"}, // at once
		{17, "vib/a/d1/status", ` "online" `, false, "alive d1"},
		{18, "vib/a/d1/status", ` "offline" `, false, "gone d1"},
		{30, "vib/a/d1/status", "offline", true, "gone d1"},
		{40, "vib/a/d1/status", "online", true, ""}, // it was there once
		{50, "vib/a/d1/status", "", false, ""},      // a retained will is deleted
		{60, "vib/a/d1/telemetry/state", `{"online":true}`, false, "alive d1"},
		{61, "vib/a/d1/telemetry/state", `{"online":false}`, false, "gone d1"},
		{62, "vib/a/d1/telemetry/state", `{"online":0}`, false, "gone d1"},
		{70, "beat", "17", false, "alive plc"},
	} {
		if got := says(c.second, c.topic, c.payload, c.retain); got != c.want {
			t.Errorf("%d, %s %q: got %q, want %q", i, c.topic, c.payload, got, c.want)
		}
	}
}

func TestPresenceNeedsADevice(t *testing.T) {
	for want, p := range map[string]mqtt.Presence{
		"whose presence": {Topic: "status/+"}, "subscribed to already": {Topic: "vib/{asset}/{device}/telemetry"}, "0, 1 or 2": {Topic: "{device}", QoS: 3}, "empty": {Device: "d"},
	} {
		if _, err := mqtt.NewDecoder(mqtt.Config{Input: "in", Subscriptions: []mqtt.Subscription{telemetry}, Presence: []mqtt.Presence{p}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
