package mqtt_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

// connack is a CONNACK with properties.
func connack(flags, code byte, properties ...string) []byte {
	own := strings.Join(properties, "")
	body := append(binary.AppendUvarint([]byte{flags, code}, uint64(len(own))), own...)
	return append(binary.AppendUvarint([]byte{0x20}, uint64(len(body))), body...)
}

// text is a property that is a text (MQTT 5, 2.2.2.2).
func text(id byte, s string) string {
	return string(append(binary.BigEndian.AppendUint16([]byte{id}, uint16(len(s))), s...))
}

const (
	reasonString     = 0x1F
	serverReference  = 0x1C
	assignedClientID = 0x12
)

// What a broker grants less of than was asked for, and how it refuses, is named with
// what can be done.
func TestBrokerThatGrantsLess(t *testing.T) {
	const expiry, keepAlive = "\x11", "\x13"
	for name, c := range map[string]struct {
		connack []byte
		suback  []byte // reason codes; nil: the connection is refused
		state   mqtt.State
		problem string
	}{
		"a session that ends with the connection": {connack(0, 0, expiry+"\x00\x00\x00\x00"), []byte{1, 1}, mqtt.Connected, "keeps the session for 0s without a connection, not for 24h0m0s"},
		"a session of an hour":                    {connack(0, 0, expiry+"\x00\x00\x0e\x10"), []byte{1, 1}, mqtt.Connected, "lower session_expiry to what it allows"},
		"a session as long as asked":              {connack(0, 0, expiry+"\x00\x01\x51\x80", keepAlive+"\x00\x00"), []byte{1, 1}, mqtt.Connected, ""},
		"a session of another name":               {connack(0, 0, text(assignedClientID, "auto-7")), []byte{1, 1}, mqtt.Connected, "gave the session the name auto-7 instead of tidemark-a"},
		"no limits at all":                        {connack(0, 0, "\x21\xff\xff", "\x27\xff\xff\xff\xff", "\x22\xff\xff"), []byte{1, 1}, mqtt.Connected, ""},
		"another broker":                          {connack(0, 0x9D, text(serverReference, "b.example:1883")), nil, mqtt.Refused, "server moved (0x9D): it names b.example:1883; set url"},
		"words of its own":                        {connack(0, 0x97, text(reasonString, "100 clients are enough")), nil, mqtt.Refused, "quota exceeded (0x97): 100 clients are enough"},
		"a SUBACK that is too short":              {connack(0, 0), []byte{1}, mqtt.Connected, "leaves out whether the subscription to b/+ stands"},
		"no answer on the second filter":          {connack(0, 0), []byte{1, 0xA2}, mqtt.Connected, "the subscription to b/+: wildcard subscriptions not supported (0xA2); write the topics out"},
		"no shared subscriptions":                 {connack(0, 0), []byte{0x9E, 1}, mqtt.Connected, "the subscription to in/+: shared subscriptions not supported (0x9E); take share away"},
		"a lower QoS":                             {connack(0, 0), []byte{1, 0}, mqtt.Connected, "grants only QoS 0 for b/+: messages can be lost"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t)
			r, s, _ := start(t, b.url(), func(c *mqtt.Config) {
				c.Subscriptions = append(c.Subscriptions, mqtt.Subscription{Topic: "b/{sensor}", QoS: 1})
			})
			p := b.greet(c.connack)
			if c.suback != nil {
				_, body := p.expect(8)
				p.send(append([]byte{0x90, byte(3 + len(c.suback)), body[0], body[1], 0}, c.suback...))
				p.publish(qos1, 1, "1") // whatever it grants is read
				_, token := s.collect(t, 1)
				r.Committed(token)
				p.acks(1)
			}
			eventually(t, fmt.Sprintf("%v: %s", c.state, c.problem), func() bool {
				st := r.Status()
				return st.State == c.state && strings.Contains(st.Problem, c.problem) && (c.problem != "" || st.Problem == "")
			})
		})
	}
}

// A broker that breaks the protocol loses the connection, is named, and gets another
// one; what it had not acknowledged is not lost.
func TestBrokerThatBreaksTheProtocol(t *testing.T) {
	disconnect := func(code byte, words string) []byte {
		own := text(reasonString, words)
		return append([]byte{0xE0, byte(2 + len(own)), code, byte(len(own))}, own...)
	}
	for name, c := range map[string]struct {
		sends   []byte
		problem string
	}{
		"a topic alias that was not offered": {[]byte{qos1, 8, 0, 0, 0, 9, 3, 0x23, 0xff, 0xff}, "no topic alias was offered"},
		"QoS 3":                              {packet(0x36, 9, "in/d", "1"), "PUBLISH that is malformed"},
		"packet id 0":                        {packet(qos1, 0, "in/d", "1"), "PUBLISH that is malformed"},
		"a packet of 5 length bytes":         {[]byte{qos1, 0xff, 0xff, 0xff, 0xff, 0x7f}, "this is no MQTT broker"},
		"a SUBACK of 256 MB":                 {[]byte{0x90, 0xff, 0xff, 0xff, 0x7f}, "this is no MQTT broker"},
		"a parting word":                     {disconnect(0x8B, "back at noon"), "ended the connection: server shutting down (0x8B): back at noon"},
		"a parting without a code":           {[]byte{0xE0, 0}, "ended the connection: normal disconnection (0x00)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t)
			r, s, _ := start(t, b.url(), nil)
			p := b.accept(false)
			p.publish(qos1, 1, "1")
			_, token := s.collect(t, 1)
			p.send(c.sends)
			eventually(t, c.problem, func() bool { return strings.Contains(r.Status().Problem, c.problem) })
			p = b.accept(true)
			r.Committed(token)
			p.publish(qos1|dup, 1, "1")
			p.acks(1)
			s.empty(t)
			eventually(t, "well again", func() bool { st := r.Status(); return st.State == mqtt.Connected && st.Problem == "" })
		})
	}
}

// What a publisher can do to others on the same broker is bounded: it is refused by
// name, in a record of some hundred bytes.
func TestAbsurdPublisher(t *testing.T) {
	plain := mqtt.Subscription{Topic: "p/#", Format: mqtt.Plain, Sensor: mqtt.Origin{Text: "s"}}
	value := mqtt.Subscription{Topic: "v/{sensor}", TimePath: "t", TimeUnit: reading.UnitMillis, Value: mqtt.Value{Path: "v"}}
	d := decoder(t, plain, value)
	for name, c := range map[string]struct{ topic, payload, want string }{
		"a topic of 65,535 bytes":       {"p/" + strings.Repeat("x", 65533), "1", "malformed name_too_long\n"},
		"a topic as long as may be":     {"p/" + strings.Repeat("x", 1022), "1", "///s 1 good\n"},
		"a topic of levels alone":       {"p" + strings.Repeat("/", 65534), "1", "malformed name_too_long\n"},
		"a topic that is no UTF-8":      {"v/\xff\xfe", `{"v":1}`, "///ÿþ 1 good\n"},
		"a payload that is no UTF-8":    {"v/a", "{\"v\":\"\xff\xfe\"}", "///a \"\uFFFD\uFFFD\" good\n"},
		"an exponent without end":       {"v/a", `{"v":1e` + strings.Repeat("9", 1<<20) + `}`, "///a null bad\n"},
		"a tiny exponent":               {"v/a", `{"v":1e-` + strings.Repeat("9", 1<<20) + `}`, "///a 0 good\n"},
		"a million digits":              {"v/a", `{"v":` + strings.Repeat("7", 1<<20) + `}`, "///a null bad\n"},
		"a time of a million digits":    {"v/a", `{"v":1,"t":` + strings.Repeat("7", 1<<20) + `}`, "///a 1 good @range:" + strings.Repeat("7", 64) + "\n"},
		"a time with an exponent":       {"v/a", `{"v":1,"t":1e999999999}`, "///a 1 good @range:1e999999999\n"},
		"a key that is there twice":     {"v/a", `{"v":1,"v":2}`, "///a 1 good\n"},
		"a million keys":                {"v/a", `{` + strings.Repeat(`"k":1,`, 1<<17) + `"v":1}`, "///a 1 good\n"},
		"objects a hundred levels deep": {"v/a", strings.Repeat(`{"v":`, 100) + "1" + strings.Repeat("}", 100), "malformed not_a_value\n"},
	} {
		out := decode(d, c.topic, c.payload)
		if got := said(out); got != c.want {
			t.Errorf("%s: got %.200q, want %.200q", name, got, c.want)
		}
		for _, r := range out.Rejects {
			if len(r.Place)+len(r.Detail)+len(r.Excerpt) > 1200 {
				t.Errorf("%s: a record of %d, %d and %d bytes", name, len(r.Place), len(r.Detail), len(r.Excerpt))
			}
		}
	}
}

// A message with more properties than may stand before a payload is refused like one
// that is too large, and those behind it are read.
func TestPropertiesWithoutEnd(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), func(c *mqtt.Config) { c.MaxPayload = 1000 })
	p := b.accept(false)
	user := strings.Repeat(text(0x26, "key")+"\x00\x05value", 100_000)
	body := append([]byte("\x00\x04in/d\x00\x01"), binary.AppendUvarint(nil, uint64(len(user)))...)
	body = append(append(body, user...), '7')
	p.send(append(binary.AppendUvarint([]byte{qos1}, uint64(len(body))), body...))
	user = user[:7000*len(text(0x26, "key")+"\x00\x05value")/1000]
	body = append([]byte("\x00\x04in/d\x00\x02"), binary.AppendUvarint(nil, uint64(len(user)))...)
	body = append(append(body, user...), '8')
	p.send(append(binary.AppendUvarint([]byte{qos1}, uint64(len(body))), body...))
	first := s.take(t)
	if len(first.Rejects) != 1 || first.Rejects[0].Reason != "too_large" || !strings.Contains(first.Rejects[0].Detail, "a message of 12") {
		t.Errorf("got %+v", first.Rejects)
	}
	second := first
	if len(second.Readings) == 0 {
		second = s.take(t)
	}
	if v, _ := second.Readings[0].Value.Int(); v != 8 {
		t.Errorf("got %+v", second)
	}
	r.Committed(second.Token)
	p.acks(2)
}
