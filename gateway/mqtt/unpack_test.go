package mqtt_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

func gzipped(payload string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(payload))
	w.Close()
	return b.String()
}

func deflated(payload string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(payload))
	w.Close()
	return b.String()
}

var (
	zippedJSON = mqtt.Subscription{Topic: "z/{sensor}", Gzip: true, Value: mqtt.Value{Path: "v"}}
	zippedCSV  = mqtt.Subscription{Topic: "c/{asset}", Gzip: true, Format: mqtt.CSV, Columns: []string{"flow"}}
	unzipped   = mqtt.Subscription{Topic: "u/{sensor}", Value: mqtt.Value{Path: "v"}}
)

func TestGzip(t *testing.T) {
	d := decoder(t, zippedJSON, zippedCSV, unzipped)
	whole := gzipped(`{"v":1}`)
	for _, c := range []struct{ name, topic, payload, want string }{
		{"a payload", "z/a", whole, "///a 1 good\n"},
		{"one that is not packed", "z/a", `{"v":2}`, "///a 2 good\n"},
		{"two members are one payload", "z/a", gzipped(`{"v"`) + gzipped(`:3}`), "///a 3 good\n"},
		{"CSV", "c/p", gzipped("1.5\n2.5\n"), "p///flow 1.5 good\np///flow 2.5 good\n"},
		{"what is in it is no JSON", "z/a", gzipped("{"), "malformed not_json\n"},
		{"nothing is in it", "z/a", gzipped(""), "malformed not_json\n"},
		{"cut", "z/a", whole[:len(whole)-9], "malformed not_unpacked\n"},
		{"damaged", "z/a", whole[:len(whole)-5] + "\x00" + whole[len(whole)-4:], "malformed not_unpacked\n"},
		{"as large as may be", "z/a", gzipped(`{"v":4}` + strings.Repeat(" ", 1<<20-7)), "///a 4 good\n"},
		{"larger", "z/a", gzipped(`{"v":4}` + strings.Repeat(" ", 1<<20-6)), "malformed too_large\n"},
		{"a bomb", "z/a", gzipped(strings.Repeat("\x00", 300<<20)), "malformed too_large\n"},
		{"and what comes after it", "z/a", whole, "///a 1 good\n"},
		{"not configured", "u/a", whole, "malformed compressed\n"},
	} {
		out := decode(d, c.topic, c.payload)
		if got := said(out); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	_, err := mqtt.NewDecoder(mqtt.Config{Subscriptions: []mqtt.Subscription{{Topic: "spBv1.0/#", Format: mqtt.Sparkplug, Gzip: true}}})
	if err == nil || !strings.Contains(err.Error(), "take gzip away") {
		t.Errorf("gzip beside sparkplug: %v", err)
	}
}

// packed is a payload in the body of another, as Eclipse Tahu has it.
func packed(body, algorithm string) string {
	b := sp{}.number(1, spTime).bytes(4, "SPBV1.0_COMPRESSED").bytes(5, body)
	if algorithm != "" {
		b = b.bytes(2, string(sp{}.bytes(1, "algorithm").number(4, 12).bytes(15, algorithm)))
	}
	return string(b)
}

func TestSparkplugCompressed(t *testing.T) {
	birth := payload(0, birthOf("temp", 1, 3).number(10, 7))
	plain := hear(decoder(t, sparkplugSub), 0, [2]string{"spBv1.0/g/NBIRTH/n", birth})
	for name, c := range map[string]struct{ payload, want string }{
		"gzip":            {packed(gzipped(birth), "GZIP"), plain},
		"deflate":         {packed(deflated(birth), "DEFLATE"), plain},
		"nothing is said": {packed(deflated(birth), ""), plain},
		"the other one":   {packed(deflated(birth), "GZIP"), "malformed not_unpacked\n"},
		"twice":           {packed(gzipped(packed(gzipped(birth), "GZIP")), "GZIP"), "malformed not_sparkplug\n"},
		"a bomb":          {packed(deflated(strings.Repeat("\x00", 2<<20)), "DEFLATE"), "malformed too_large\n"},
		"no body":         {packed("", "GZIP"), "malformed not_unpacked\n"},
	} {
		if got := hear(decoder(t, sparkplugSub), 0, [2]string{"spBv1.0/g/NBIRTH/n", c.payload}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Packed or not, a payload gives the same, and whatever is no gzip is refused.
func FuzzGzip(f *testing.F) {
	for _, s := range []string{`{"v":1}`, gzipped(`{"v":1}`), gzipped(`{"v":1}`)[:12], packed(gzipped(payload(0)), "GZIP"), "\x1f\x8b\x08", gzipped(strings.Repeat("0", 1<<16))} {
		f.Add([]byte(s))
	}
	used := decoder(f, zippedJSON, zippedCSV, sparkplugSub)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, topic := range []string{"z/a", "c/p", "spBv1.0/g/NBIRTH/n"} {
			fresh := decoder(t, zippedJSON, zippedCSV, sparkplugSub)
			once := decode(fresh, topic, string(b))
			if len(once.Readings)+len(once.Rejects) == 0 && topic == "z/a" {
				t.Fatalf("%q vanished", b)
			}
			if topic != "z/a" || len(b) == 0 || bytes.HasPrefix(b, []byte("\x1f\x8b\x08")) {
				used.Decode(&mqtt.Message{Topic: []byte(topic), Payload: b, At: reading.Instant{WallNS: arrivalNS}}, &reading.Parcel{}, nil)
				continue
			}
			if diff := cmp.Diff(said(once), said(decode(used, topic, gzipped(string(b))))); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
