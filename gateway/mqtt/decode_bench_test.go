package mqtt_test

import (
	"fmt"
	"strings"
	"testing"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

func benchmarkDecode(b *testing.B, sub mqtt.Subscription, topic string, payloads []string) {
	d := decoder(b, sub)
	out := reading.Parcel{Readings: make([]reading.Reading, 0, 4096)}
	messages := make([]mqtt.Message, len(payloads))
	for i, p := range payloads {
		messages[i] = mqtt.Message{Topic: []byte(topic), Payload: []byte(p), At: reading.Instant{WallNS: arrivalNS}}
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		out.Readings = out.Readings[:0]
		d.Decode(&messages[n%len(messages)], &out, nil)
		n++
	}
	if len(out.Rejects) > 0 {
		b.Fatal(out.Rejects[0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*len(out.Readings)), "ns/reading")
}

func BenchmarkDecodeOneReading(b *testing.B) {
	var payloads []string
	for i := range 1000 {
		payloads = append(payloads, fmt.Sprintf(`{"sensor":"s%05d","ts":17672256%05d,"value":%d.25,"unit":"C","quality":"good","seq":%d}`, i, i, 20+i%80, i))
	}
	benchmarkDecode(b, generator, "in/data", payloads)
}

func BenchmarkDecodeTelemetry(b *testing.B) {
	benchmarkDecode(b, telemetry, "vib/press-07/d1/telemetry", []string{`{"serial":"SN-9","samples":[` +
		strings.TrimSuffix(strings.Repeat(`{"ts":1767225600000,"seq":4,"v_rms":1.5,"t":20},`, 50), ",") + `]}`})
}

func BenchmarkDecodeArrayOf100(b *testing.B) {
	benchmarkDecode(b, generator, "in/data", []string{"[" + strings.TrimSuffix(strings.Repeat(
		`{"sensor":"s00001","ts":1767225600000,"value":21.25,"unit":"C","quality":"good","seq":12345},`, 100), ",") + "]"})
}
