package mqtt_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/gateway/mqtt"
)

// hears takes a PUBLISH of STATE, retained and with QoS 1, acknowledges it with a reason
// and returns its payload.
func (p *peer) hears(reason byte) string {
	p.t.Helper()
	head, body := p.expect(3)
	topic := "\x00\x14spBv1.0/STATE/plant"
	topic = fmt.Sprintf("\x00%c%s", len(topic)-2, topic[2:])
	if head&^8 != qos1|1 || !strings.HasPrefix(string(body), topic) {
		p.t.Fatalf("got %x %q, want STATE, retained and with QoS 1", head, body)
	}
	body = body[len(topic):]
	p.send([]byte{0x40, 4, body[0], body[1], reason, 0})
	return string(body[3:]) // no properties
}

// Sparkplug 3.0, 4.2.3 and 5.13: the will, the birth with its time, the birth again when
// a death comes, and the death before an orderly end.
func TestSparkplugHost(t *testing.T) {
	b := newBroker(t)
	clk := newHandClock()
	r, _, stop := startAt(t, b.url(), clk, func(c *mqtt.Config) {
		c.SparkplugHost = "plant"
		c.Subscriptions = []mqtt.Subscription{{Topic: "spBv1.0/#", QoS: 1, Format: mqtt.Sparkplug}}
	})
	said := func(online bool) string {
		return fmt.Sprintf(`{"online":%t,"timestamp":%d}`, online, clk.wall.Load()/1e6)
	}
	state := func() *peer {
		h := b.greet(connack(0, 0))
		if flags := h.connect[7]; flags != 0x2E { // clean start, will, its QoS 1, retained
			t.Errorf("connect flags %x", flags)
		}
		if c := string(h.connect); !strings.Contains(c, "tidemark-a-state") || !strings.Contains(c, "spBv1.0/STATE/plant") || !strings.Contains(c, said(false)) {
			t.Errorf("CONNECT %q lacks the will %s", c, said(false))
		}
		if body := h.subscribe(); !strings.Contains(string(body), "spBv1.0/STATE/plant") {
			t.Errorf("SUBSCRIBE %q", body)
		}
		return h
	}
	p := b.accept(false)
	eventually(t, "waits for the time", func() bool { return strings.Contains(r.Status().Problem, "when the gateway's clock is trusted") })
	clk.bound.Store(1)
	h := state()
	if got := h.hears(0); got != said(true) {
		t.Errorf("birth %s, want %s", got, said(true))
	}
	birth := said(true)
	clk.advance(time.Minute)
	h.send(packet(qos1, 1, "spBv1.0/STATE/plant", `{"online":true,"timestamp":1}`))
	h.expect(4)
	// The empty one takes what the broker keeps for nodes that come later.
	for i, other := range []string{`{"online":false,"timestamp":1}`, "", "null", `{"timestamp":1}`, "OFFLINE"} {
		h.send(packet(qos1, uint16(2+i), "spBv1.0/STATE/plant", other))
		h.expect(4)
		if got := h.hears(0); got != birth {
			t.Errorf("after %q %s, want %s again", other, got, birth)
		}
	}
	eventually(t, "all is well", func() bool { return r.Status().Problem == "" })

	// Its connection breaks, and the broker does not let it write.
	h.Close()
	h = state()
	h.hears(0x87)
	eventually(t, "named", func() bool { return strings.Contains(r.Status().Problem, "allow the user to write it") })
	h.Close()
	h = state()
	h.hears(0)

	// Nobody reads any more: the nodes are told, and told when somebody does again.
	clk.advance(time.Minute)
	p.Close()
	if got := h.hears(0); got != said(false) {
		t.Errorf("death %s, want %s", got, said(false))
	}
	h.expect(14)
	b.accept(true)
	h = state()
	h.hears(0)
	go stop()
	if got := h.hears(0); got != said(false) {
		t.Errorf("death %s, want %s", got, said(false))
	}
	h.expect(14)
}

// A password file that cannot be read is said, tried again, and holds up no end.
func TestSparkplugHostWithoutLogin(t *testing.T) {
	b := newBroker(t)
	clk := newHandClock()
	clk.bound.Store(1)
	var logins atomic.Int32
	r, _, stop := startAt(t, b.url(), clk, func(c *mqtt.Config) {
		c.SparkplugHost = "plant"
		c.Subscriptions = []mqtt.Subscription{{Topic: "spBv1.0/#", QoS: 1, Format: mqtt.Sparkplug}}
		c.Login = func() (string, []byte, error) {
			if logins.Add(1) > 1 {
				return "", nil, errors.New("no such file")
			}
			return "me", []byte("secret"), nil
		}
	})
	b.accept(false)
	eventually(t, "tried again", func() bool { return logins.Load() > 2 })
	if p := r.Status().Problem; !strings.Contains(p, "login: no such file") {
		t.Errorf("problem %q", p)
	}
	stop()
}
