package uplink_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// broker is an embedded MQTT broker that keeps what was published to it, also
// over restarts.
type broker struct {
	t      testing.TB
	addr   string
	change func(*mqtt.Capabilities)
	// refuse, if set, answers a PUBLISH with an error before it is taken.
	refuse func(topic string, payload []byte) error
	login  func(user, password string) bool // nil lets everybody in

	mu     sync.Mutex
	server *mqtt.Server
	anchor net.Conn
	got    []published
}

type published struct {
	topic, replayed string
	retain          bool
	n               int // the number of a numbered event, -1 of all else
	payload         []byte
}

func startBroker(t testing.TB, change func(*mqtt.Capabilities)) *broker {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{t: t, addr: ln.Addr().String(), change: change}
	ln.Close()
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	opts := &mqtt.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Capabilities: mqtt.NewDefaultServerCapabilities()}
	if b.change != nil {
		b.change(opts.Capabilities)
	}
	s := mqtt.New(opts)
	if err := s.AddHook(&watcher{broker: b}, nil); err != nil {
		b.t.Fatal(err)
	}
	for try := 0; ; try++ {
		err := s.AddListener(listeners.NewTCP(listeners.Config{ID: "t", Address: b.addr}))
		if err == nil {
			break
		}
		if try == 100 {
			b.t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := s.Serve(); err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	b.server, b.anchor = s, b.moor()
	b.mu.Unlock()
}

// moor connects a client that stays: mochi counts its clients in a way that the
// race detector takes offence at if the first one comes while the server closes.
func (b *broker) moor() net.Conn {
	if b.login != nil {
		return nil
	}
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := c.Write([]byte("\x10\x12\x00\x04MQTT\x04\x02\x00\x00\x00\x06anchor")); err != nil {
		b.t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 4)); err != nil { // CONNACK
		b.t.Fatal(err)
	}
	return c
}

func (b *broker) stop() {
	b.mu.Lock()
	s, anchor := b.server, b.anchor
	b.server, b.anchor = nil, nil
	b.mu.Unlock()
	if s != nil {
		s.Close()
	}
	if anchor != nil {
		anchor.Close()
	}
}

func (b *broker) url() *url.URL { return &url.URL{Scheme: "mqtt", Host: b.addr} }

// records returns what has arrived, the status excepted.
func (b *broker) records() []published {
	return b.filter(func(p published) bool { return p.n >= 0 })
}

// states returns what has arrived on the status topic.
func (b *broker) states() (states []string) {
	for _, p := range b.filter(func(p published) bool { return p.topic == enc.StatusTopic() }) {
		var s struct{ State, Reason string }
		if err := json.Unmarshal(p.payload, &s); err != nil {
			b.t.Error(err)
		}
		states = append(states, s.State+" "+s.Reason)
	}
	return states
}

func (b *broker) filter(keep func(published) bool) (ps []published) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.got {
		if keep(p) {
			ps = append(ps, p)
		}
	}
	return ps
}

// watcher sees each PUBLISH in the order of arrival.
type watcher struct {
	mqtt.HookBase
	broker *broker
}

func (*watcher) ID() string { return "watcher" }

func (*watcher) Provides(b byte) bool {
	return bytes.IndexByte([]byte{mqtt.OnConnectAuthenticate, mqtt.OnACLCheck, mqtt.OnPublish, mqtt.OnWillSent}, b) >= 0
}

func (w *watcher) OnConnectAuthenticate(_ *mqtt.Client, pk packets.Packet) bool {
	return w.broker.login == nil || w.broker.login(string(pk.Connect.Username), string(pk.Connect.Password))
}

func (*watcher) OnACLCheck(*mqtt.Client, string, bool) bool { return true }

func (w *watcher) OnPublish(_ *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	b := w.broker
	if b.refuse != nil {
		if err := b.refuse(pk.TopicName, pk.Payload); err != nil {
			return pk, err
		}
	}
	p := published{topic: pk.TopicName, retain: pk.FixedHeader.Retain, payload: append([]byte(nil), pk.Payload...), n: -1}
	for _, u := range pk.Properties.User {
		if u.Key == "replayed" {
			p.replayed = u.Val
		}
	}
	var numbered struct{ N *int }
	if json.Unmarshal(pk.Payload, &numbered) == nil && numbered.N != nil {
		p.n = *numbered.N
	}
	b.mu.Lock()
	b.got = append(b.got, p)
	b.mu.Unlock()
	return pk, nil
}

func (w *watcher) OnWillSent(_ *mqtt.Client, pk packets.Packet) {
	w.broker.mu.Lock()
	w.broker.got = append(w.broker.got, published{topic: pk.TopicName, retain: pk.FixedHeader.Retain, payload: pk.Payload, n: -1})
	w.broker.mu.Unlock()
}

// proxy is a TCP proxy with faults.
type proxy struct {
	ln     net.Listener
	target string
	wg     sync.WaitGroup

	mu    sync.Mutex
	cond  *sync.Cond // the hole was closed
	conns []net.Conn
	hole  bool
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	return proxyOn(t, target, func(ln net.Listener) net.Listener { return ln })
}

// proxyOn starts a proxy whose listener is wrapped.
func proxyOn(t *testing.T, target string, wrap func(net.Listener) net.Listener) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{ln: wrap(ln), target: target}
	p.cond = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		ln.Close()
		p.setHole(false)
		p.drop()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() *url.URL { return &url.URL{Scheme: "mqtt", Host: p.ln.Addr().String()} }

func (p *proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", p.target)
		if err != nil {
			c.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, c, up)
		p.mu.Unlock()
		p.wg.Go(func() { p.pipe(c, up) })
		p.wg.Go(func() { p.pipe(up, c) })
	}
}

func (p *proxy) pipe(dst, src net.Conn) {
	defer dst.Close()
	defer src.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		p.mu.Lock()
		for p.hole {
			p.cond.Wait()
		}
		p.mu.Unlock()
		if _, werr := dst.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// setHole makes the proxy swallow everything, in both directions, and hold the
// connections.
func (p *proxy) setHole(on bool) {
	p.mu.Lock()
	p.hole = on
	p.mu.Unlock()
	p.cond.Broadcast()
}

// drop resets all connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		c.Close()
	}
	p.conns = nil
}
