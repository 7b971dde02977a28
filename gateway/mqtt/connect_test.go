package mqtt_test

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tidemark/gateway/mqtt"
)

func TestConnectPacketAndSubscription(t *testing.T) {
	b := newBroker(t)
	start(t, b.url(), func(c *mqtt.Config) {
		c.ReceiveMaximum = 513
		c.Login = func() (string, []byte, error) { return "me", []byte("secret"), nil }
		c.StaleFilters = []string{"in/+", "old/#"}
		c.Subscriptions = []mqtt.Subscription{plainValue, {Topic: "s/{asset}/#", Share: "g", QoS: 2, Sensor: mqtt.Origin{Text: "x"}}}
	})
	p := b.greet([]byte{0x20, 3, 1, 0, 0})
	if flags := p.connect[7]; flags != 0xC0 {
		t.Errorf("flags %x: want user and password, and no clean start", flags)
	}
	for _, part := range []string{"tidemark-a", "me", "secret", "\x21\x02\x01", "\x11\x00\x01\x51\x80"} {
		if !strings.Contains(string(p.connect), part) {
			t.Errorf("CONNECT lacks %q", part)
		}
	}
	// The filters that go only after those that come: nothing falls between them.
	_, body := p.expect(8)
	if !strings.HasSuffix(string(body), "\x00\x04in/+\x11\x00\x0e$share/g/s/+/#\x12") {
		t.Errorf("SUBSCRIBE %q", body)
	}
	p.send([]byte{0x90, 5, body[0], body[1], 0, 1, 2})
	if _, body = p.expect(10); !strings.HasSuffix(string(body), "\x00\x05old/#") {
		t.Errorf("UNSUBSCRIBE %q", body)
	}
}

// A session has no filter that another covers: mosquitto would send a message once
// for each.
func TestFewestFilters(t *testing.T) {
	sensor := mqtt.Origin{Text: "x"}
	sub := func(topic, share string, qos byte) mqtt.Subscription {
		return mqtt.Subscription{Topic: topic, Share: share, QoS: qos, Sensor: sensor}
	}
	at := func(text string) *url.URL { u, _ := url.Parse(text); return u }
	for _, c := range []struct {
		subs     []mqtt.Subscription
		presence []mqtt.Presence
		want     []string
	}{
		{[]mqtt.Subscription{sub("p/boiler/{device}", "", 1), sub("p/{asset}/{device}", "", 1)}, nil, []string{"p/+/+"}},
		{[]mqtt.Subscription{sub("p/#", "", 1), sub("p/a", "", 2)}, nil, []string{"p/#", "p/a"}}, // or it would come with QoS 1
		{[]mqtt.Subscription{sub("p/#", "g", 1), sub("p/a", "", 1), sub("p/b", "g", 1)}, nil, []string{"$share/g/p/#", "p/a"}},
		{[]mqtt.Subscription{sub("#", "", 1), sub("+/#", "", 1), sub("$SYS/x", "", 1)}, nil, []string{"#", "$SYS/x"}},
		{[]mqtt.Subscription{sub("p/{asset}/x", "", 1), sub("p/a/{device}", "", 1)}, nil, []string{"p/+/x", "p/a/+"}},
		{[]mqtt.Subscription{sub("p/#", "", 1)}, []mqtt.Presence{{Topic: "p/{device}/state", QoS: 1}, {Topic: "q/{device}"}}, []string{"p/#", "q/+"}},
	} {
		r, err := mqtt.New(mqtt.Config{Input: "a", URL: at("mqtt://h"), ClientID: "c", Subscriptions: c.subs, Presence: c.presence}, nil, nil, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Filters(); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

func TestBrokerAwayAtStart(t *testing.T) {
	b := newBroker(t)
	addr := b.ln.Addr().String()
	b.ln.Close()
	r, _, _ := start(t, b.url(), nil)
	eventually(t, "waiting", func() bool {
		st := r.Status()
		return st.State == mqtt.Waiting && strings.Contains(st.Problem, "is the broker there?")
	})
	var err error
	if b.ln, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	defer b.ln.Close()
	b.accept(false)
	eventually(t, "connected", func() bool { st := r.Status(); return st.State == mqtt.Connected && st.Problem == "" })
}

func TestRefusedConnection(t *testing.T) {
	b := newBroker(t)
	r, _, _ := start(t, b.url(), nil)
	b.greet([]byte{0x20, 3, 0, 0x86, 0})
	eventually(t, "refused", func() bool {
		st := r.Status()
		return st.State == mqtt.Refused && strings.Contains(st.Problem, "set login")
	})
	b.accept(false)
	eventually(t, "connected", func() bool { return r.Status().State == mqtt.Connected })
}

func TestRefusedSubscription(t *testing.T) {
	b := newBroker(t)
	r, _, _ := start(t, b.url(), nil)
	p := b.greet([]byte{0x20, 3, 0, 0, 0})
	_, body := p.expect(8)
	p.send([]byte{0x90, 4, body[0], body[1], 0, 0x87})
	eventually(t, "said", func() bool {
		return strings.Contains(r.Status().Problem, "refuses the subscription to in/+: not authorized (0x87); allow the user to read it")
	})
}

func TestTwoGatewaysWithOneName(t *testing.T) {
	b := newBroker(t)
	r, _, _ := start(t, b.url(), nil)
	for range 3 {
		p := b.accept(true)
		p.send([]byte{0xE0, 1, 0x8E})
		p.Close()
	}
	eventually(t, "contended", func() bool {
		st := r.Status()
		return st.State == mqtt.Contended && strings.Contains(st.Problem, "two gateways are named tidemark-a")
	})
}

func TestNewRefusesConfiguration(t *testing.T) {
	at := func(text string) *url.URL { u, _ := url.Parse(text); return u }
	good := mqtt.Config{Input: "a", URL: at("mqtt://h"), ClientID: "c", Subscriptions: []mqtt.Subscription{plainValue}}
	f := func(want string, change func(*mqtt.Config)) {
		t.Helper()
		c := good
		change(&c)
		_, err := mqtt.New(c, nil, nil, zerolog.Nop())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "input a: mqtt: ") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("scheme", func(c *mqtt.Config) { c.URL = at("http://h") })
	f("url", func(c *mqtt.Config) { c.URL = nil })
	f("client_id", func(c *mqtt.Config) { c.ClientID = "" })
	f("subscribe", func(c *mqtt.Config) { c.Subscriptions = nil })
	f("keep_alive", func(c *mqtt.Config) { c.KeepAlive = time.Millisecond })
	f("session_expiry", func(c *mqtt.Config) { c.SessionExpiry = time.Millisecond })
	f("max_payload", func(c *mqtt.Config) { c.MaxPayload = 1 << 30 })
	f("topic", func(c *mqtt.Config) { c.Subscriptions = []mqtt.Subscription{{Topic: "a/#/b"}} })
}
