package mqtt_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

var sparkplugSub = mqtt.Subscription{Topic: "spBv1.0/#", Format: mqtt.Sparkplug}

// sp builds Sparkplug B payloads from the specification's field numbers.
type sp []byte

func (b sp) number(n protowire.Number, v uint64) sp {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func (b sp) bytes(n protowire.Number, v string) sp {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func (b sp) double(n protowire.Number, v float64) sp {
	return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), math.Float64bits(v))
}

func (b sp) float(n protowire.Number, v float32) sp {
	return protowire.AppendFixed32(protowire.AppendTag(b, n, protowire.Fixed32Type), math.Float32bits(v))
}

const spTime = 1767225600000 // 2026-01-01T00:00:00Z

// payload is a message with a sequence number and metrics.
func payload(seq uint64, metrics ...sp) string {
	b := sp{}.number(1, spTime)
	for _, m := range metrics {
		b = b.bytes(2, string(m))
	}
	return string(b.number(3, seq))
}

func birthOf(name string, alias uint64, datatype uint64) sp {
	return sp{}.bytes(1, name).number(2, alias).number(4, datatype)
}

// hear decodes messages in turn, and renders readings, rejects, marks and requests.
func hear(d *mqtt.Decoder, at int64, messages ...[2]string) string {
	var b strings.Builder
	for _, m := range messages {
		var out reading.Parcel
		d.Decode(&mqtt.Message{Topic: []byte(m[0]), Payload: []byte(m[1]), At: reading.Instant{WallNS: arrivalNS, BootNS: at}}, &out, nil)
		for i := range out.Readings {
			b.WriteString(strings.TrimSuffix(said(reading.Parcel{Readings: out.Readings[i : i+1]}), "\n"))
			if out.Readings[i].Delivery.Has(reading.Initial) {
				b.WriteString(" initial")
			}
			if out.Readings[i].Delivery.Has(reading.Historical) {
				b.WriteString(" historical")
			}
			b.WriteString("\n")
		}
		for _, k := range out.Marks {
			b.WriteString(map[reading.MarkKind]string{reading.MarkIdle: "gone ", reading.MarkActive: "alive "}[k.Kind] + k.Device + "\n")
		}
		b.WriteString(said(reading.Parcel{Rejects: out.Rejects}))
		for _, topic := range d.Rebirths() {
			b.WriteString("ask " + topic + "\n")
		}
	}
	return b.String()
}

func TestSparkplugTypes(t *testing.T) {
	le := func(width int, vs ...uint64) string {
		var b []byte
		for _, v := range vs {
			b = append(b, binary.LittleEndian.AppendUint64(nil, v)[:width]...)
		}
		return string(b)
	}
	for _, c := range []struct {
		name     string
		datatype uint64
		value    sp
		want     string
	}{
		{"int −12 as Int8 in 8 bits", 1, sp{}.number(10, 244), "-12"},
		{"int −12 as Int8 in 32 bits", 1, sp{}.number(10, 4294967284), "-12"},
		{"int −12 as Int16", 2, sp{}.number(10, 65524), "-12"},
		{"int −12 as Int32", 3, sp{}.number(10, 4294967284), "-12"},
		{"int −12 as Int32 in 64 bits, as a sloppy encoder writes it", 3, sp{}.number(10, ^uint64(11)), "-12"},
		{"int −12 as Int64", 4, sp{}.number(11, ^uint64(11)), "-12"},
		{"Int64 in the wrong member", 4, sp{}.number(10, 5), "5"},
		{"2^53+1", 4, sp{}.number(11, 1<<53+1), "9007199254740993"},
		{"UInt8", 5, sp{}.number(10, 255), "255"},
		{"UInt16", 6, sp{}.number(10, 65535), "65535"},
		{"UInt32", 7, sp{}.number(11, 4294967295), "4294967295"},
		{"2^64−1", 8, sp{}.number(11, math.MaxUint64), "18446744073709551615"},
		{"Float", 9, sp{}.float(12, 1.5), "1.5"},
		{"Double", 10, sp{}.double(13, -0.1), "-0.1"},
		{"Double NaN", 10, sp{}.double(13, math.NaN()), "null"},
		{"Boolean", 11, sp{}.number(14, 1), "true"},
		{"String", 12, sp{}.bytes(15, "on"), `"on"`},
		{"DateTime", 13, sp{}.number(11, spTime), "1767225600000"},
		{"Text", 14, sp{}.bytes(15, "é"), `"é"`},
		{"UUID", 15, sp{}.bytes(15, "u-1"), `"u-1"`},
		{"null", 10, sp{}.number(7, 1), "null"},
		{"null as older encoders write it", 10, sp{}, "null"},
		{"DataSet", 16, sp{}.bytes(17, "\x08\x01"), "malformed sparkplug_type"},
		{"Bytes", 17, sp{}.bytes(16, "abc"), "malformed sparkplug_type"},
		{"File", 18, sp{}.bytes(16, "abc"), "malformed sparkplug_type"},
		{"Template", 19, sp{}.bytes(18, ""), "malformed sparkplug_type"},
		{"Int8 array", 22, sp{}.bytes(16, le(1, 0xF4, 0x7F)), "-12 127"},
		{"Int16 array", 23, sp{}.bytes(16, le(2, 0xFFF4)), "-12"},
		{"Int32 array", 24, sp{}.bytes(16, le(4, 0xFFFFFFF4)), "-12"},
		{"Int64 array", 25, sp{}.bytes(16, le(8, ^uint64(11))), "-12"},
		{"UInt8 array", 26, sp{}.bytes(16, le(1, 250, 3)), "250 3"},
		{"UInt16 array", 27, sp{}.bytes(16, le(2, 65535)), "65535"},
		{"UInt32 array", 28, sp{}.bytes(16, le(4, 4294967295)), "4294967295"},
		{"UInt64 array", 29, sp{}.bytes(16, le(8, math.MaxUint64)), "18446744073709551615"},
		{"Float array with NaN", 30, sp{}.bytes(16, le(4, uint64(math.Float32bits(2.5)), 0x7FC00000, 0)), "2.5 null 0"},
		{"Double array", 31, sp{}.bytes(16, le(8, math.Float64bits(-2.5))), "-2.5"},
		{"Boolean array", 32, sp{}.bytes(16, "\x0a\x00\x00\x00\xc0\x40"), "true true false false false false false false false true"},
		{"String array", 33, sp{}.bytes(16, "a\x00bc\x00"), `"a" "bc"`},
		{"DateTime array", 34, sp{}.bytes(16, le(8, spTime)), "1767225600000"},
		{"array that is not whole", 24, sp{}.bytes(16, "abc"), "malformed sparkplug_type"},
		{"Boolean array that is not whole", 32, sp{}.bytes(16, "\xff\xff\xff\xff\x01"), "malformed sparkplug_type"},
		{"String array that is not whole", 33, sp{}.bytes(16, "abc"), "malformed sparkplug_type"},
	} {
		d := decoder(t, sparkplugSub)
		var got []string
		birth := append(birthOf("x", 1, c.datatype), c.value...)
		p := decode(d, "spBv1.0/g/NBIRTH/n", payload(0, birth))
		for _, r := range p.Readings {
			got = append(got, string(r.Value.AppendJSON(nil)))
		}
		for _, j := range p.Rejects {
			got = append(got, "malformed "+j.Reason)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: got %s, want %s", c.name, s, c.want)
		}
	}
}

func TestSparkplugLife(t *testing.T) {
	const n = "spBv1.0/g/"
	unit := sp{}.bytes(1, "Quality").bytes(1, "engUnit").bytes(2, string(sp{}.number(1, 3).number(3, 500))).bytes(2, string(sp{}.number(1, 12).bytes(8, "bar")))
	nbirth := [2]string{n + "NBIRTH/n", payload(0, sp{}.bytes(1, "bdSeq").number(4, 8).number(11, 7), sp{}.bytes(1, "Node Control/Rebirth").number(4, 11).number(14, 0),
		append(birthOf("up", 1, 8).number(11, 5), sp{}.bytes(9, string(unit))...))}
	dbirth := [2]string{n + "DBIRTH/n/d", payload(1, birthOf("Hydraulic/Pressure", 2, 10).double(13, 5))}
	ddata := func(seq uint64, v float64) [2]string {
		return [2]string{n + "DDATA/n/d", payload(seq, sp{}.number(2, 2).number(3, spTime+1000).double(13, v))}
	}
	born := "n/g/n//up 5bar uncertain @2026-01-01T00:00:00Z initial\nd/g/n/d//Hydraulic/Pressure 5 good @2026-01-01T00:00:00Z initial\n"
	data := func(v string) string {
		return "d/g/n/d//Hydraulic/Pressure " + v + " good @2026-01-01T00:00:01Z\n"
	}
	const ask = "ask spBv1.0/g/NCMD/n\n"

	t.Run("births, aliases and history", func(t *testing.T) {
		d := decoder(t, sparkplugSub)
		old := [2]string{n + "DDATA/n/d", payload(3, sp{}.number(2, 2).number(3, spTime).number(5, 1).double(13, 4))}
		got := hear(d, 0, nbirth, dbirth, ddata(2, 6), old)
		if diff := cmp.Diff(born+data("6")+"d/g/n/d//Hydraulic/Pressure 4 good @2026-01-01T00:00:00Z historical\n", got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the sequence wraps, and comes twice, without a question", func(t *testing.T) {
		d := decoder(t, sparkplugSub)
		hear(d, 0, nbirth, dbirth)
		for i := range uint64(600) {
			if got := hear(d, 0, ddata((i+2)%256, 6), ddata((i+2)%256, 6)); got != data("6")+data("6") {
				t.Fatal(i, got)
			}
		}
	})
	t.Run("a gap asks for a rebirth, and again, ever more rarely", func(t *testing.T) {
		d := decoder(t, sparkplugSub)
		hear(d, 0, nbirth, dbirth)
		var asked []int
		for s := range 100 {
			if strings.Contains(hear(d, int64(s)*1e9, ddata(uint64(2*s+5)%256, 6)), ask) {
				asked = append(asked, s)
			}
		}
		if diff := cmp.Diff([]int{0, 10, 30, 70}, asked); diff != "" {
			t.Error(diff)
		}
		hear(d, 100e9, nbirth, dbirth)
		if got := hear(d, 100e9, ddata(2, 6)); got != data("6") {
			t.Error(got)
		}
	})
	t.Run("data before a birth", func(t *testing.T) {
		d := decoder(t, sparkplugSub)
		if got := hear(d, 0, ddata(9, 6), ddata(10, 6)); got != "malformed alias_unknown\n"+ask+"malformed alias_unknown\n" {
			t.Error(got)
		}
		named := [2]string{n + "DDATA/n/d", payload(11, sp{}.bytes(1, "x").number(10, 3).number(4, 3))}
		if got := hear(d, 0, named); got != "d/g/n/d//x 3 good @2026-01-01T00:00:00Z\n" {
			t.Error(got)
		}
	})
	t.Run("deaths", func(t *testing.T) {
		d := decoder(t, sparkplugSub)
		hear(d, 0, nbirth, dbirth)
		will := func(seq uint64) [2]string {
			return [2]string{n + "NDEATH/n", string(sp{}.bytes(2, string(sp{}.bytes(1, "bdSeq").number(11, seq))))}
		}
		if got := hear(d, 0, will(6)); got != "" {
			t.Errorf("the will of an earlier session: %s", got)
		}
		if got := hear(d, 0, [2]string{n + "DDEATH/n/d", payload(2)}); got != "gone g/n/d\n" {
			t.Error(got)
		}
		hear(d, 0, [2]string{dbirth[0], payload(3, birthOf("x", 2, 10).double(13, 5))})
		if got := hear(d, 0, will(7)); got != "gone g/n\ngone g/n/d\n" {
			t.Error(got)
		}
		if got := hear(d, 0, ddata(4, 6)); got != "malformed alias_unknown\n"+ask {
			t.Errorf("after a death: %s", got)
		}
	})
	t.Run("over a restart", func(t *testing.T) {
		d := decoder(t, sparkplugSub)
		hear(d, 0, nbirth, dbirth)
		memory := d.Memory()
		if hear(d, 0, ddata(2, 6)); d.Memory() != nil {
			t.Error("data changes no births")
		}
		d, err := mqtt.NewDecoder(mqtt.Config{Input: "in", Subscriptions: []mqtt.Subscription{sparkplugSub}, Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		if got := hear(d, 0, ddata(77, 6), ddata(78, 7)); got != data("6")+ask+data("7") {
			t.Error(got)
		}
	})
	t.Run("what is no data", func(t *testing.T) {
		d := decoder(t, sparkplugSub)
		if got := hear(d, 0, [2]string{"spBv1.0/STATE/host", `{"online":true}`}, [2]string{n + "NCMD/n", "x"}, [2]string{n + "DCMD/n/d", "x"}); got != "" {
			t.Error(got)
		}
		for _, m := range [][2]string{{"spBv1.0/g", "x"}, {n + "NDATA/n/d", payload(0)}, {n + "DDATA/n", payload(0)}, {n + "XDATA/n", payload(0)}, {n + "NDATA/n", "\xff"}} {
			if got := hear(d, 0, m); got != "malformed not_sparkplug\n" {
				t.Errorf("%q: %s", m, got)
			}
		}
	})
}

func TestSparkplugNamesByConfiguration(t *testing.T) {
	sub := mqtt.Subscription{Topic: "spBv1.0/{asset}/+/+/#", Format: mqtt.Sparkplug, Sensors: []mqtt.Sensor{{Name: "temp", Unit: "Cel", Scale: 0.1}}}
	d := decoder(t, sub)
	got := hear(d, 0, [2]string{"spBv1.0/press-07/NBIRTH/n", payload(0, birthOf("temp", 1, 3).number(10, 4294967284), birthOf("other", 2, 3).number(10, 1))})
	if got != "press-07/press-07/n/SN-1/temp -1.2000000000000002Cel good @2026-01-01T00:00:00Z initial\nunmatched sensor_unknown\n" {
		t.Error(got)
	}
}

func TestRebirthRequestIsSparkplug(t *testing.T) {
	d := decoder(t, sparkplugSub)
	request := mqtt.AppendRebirth(nil, spTime)
	if got := hear(d, 0, [2]string{"spBv1.0/g/NBIRTH/n", string(request)}); got != "" {
		t.Errorf("a request is no reading: %s", got)
	}
	want := string(sp{}.number(1, spTime).bytes(2, string(sp{}.bytes(1, "Node Control/Rebirth").number(3, spTime).number(4, 11).number(14, 1))))
	if string(request) != want {
		t.Errorf("%x, want %x", request, want)
	}
}

func FuzzSparkplug(f *testing.F) {
	f.Add([]byte(payload(0, birthOf("x", 1, 3).number(10, 4294967284))), "NBIRTH/n")
	f.Add([]byte(payload(1, sp{}.number(2, 1).double(13, 3))), "DDATA/n/d")
	f.Add([]byte(payload(1, sp{}.bytes(1, "a").number(4, 32).bytes(16, "\x0a\x00\x00\x00\xc0\x40"))), "NDATA/n")
	f.Add([]byte(payload(1, sp{}.bytes(1, "a").bytes(9, string(sp{}.bytes(1, "Quality").bytes(2, string(sp{}.number(3, 192))))))), "NBIRTH/n")
	f.Add([]byte(payload(1)), "NDEATH/n")
	f.Fuzz(func(t *testing.T, b []byte, tail string) {
		topic := "spBv1.0/g/" + tail
		if strings.ContainsAny(topic, "+#\x00") || len(topic) > 60000 {
			return
		}
		born := [2]string{"spBv1.0/g/NBIRTH/n", payload(0, birthOf("x", 1, 3).number(10, 7))}
		fresh, used := decoder(t, sparkplugSub), decoder(t, sparkplugSub)
		hear(fresh, 0, born)
		hear(used, 0, born)
		same(t, fresh, used, topic, b)
		// What is remembered can be read again, and is the same.
		memory := used.Memory()
		d, err := mqtt.NewDecoder(mqtt.Config{Input: "in", Subscriptions: []mqtt.Subscription{sparkplugSub}, Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		if d.Memory() != nil {
			t.Fatal("a start changes nothing")
		}
	})
}
