package uplink_test

import (
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"tidemark/reading"
	"tidemark/uplink"
)

// scripted is a broker with a CONNACK of its own. It takes every PUBLISH.
type scripted struct {
	ln net.Listener
	wg sync.WaitGroup

	connack func(*packets.Connect, *packets.Connack)

	mu  sync.Mutex
	got []*packets.Publish
}

func startScripted(t *testing.T, connack func(*packets.Connect, *packets.Connack)) *scripted {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{ln: ln, connack: connack}
	s.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { ln.Close(); s.wg.Wait() })
	return s
}

func (s *scripted) url() *url.URL { return &url.URL{Scheme: "mqtt", Host: s.ln.Addr().String()} }

func (s *scripted) serve(c net.Conn) {
	defer c.Close()
	for {
		p, err := packets.ReadPacket(c)
		if err != nil {
			return
		}
		switch v := p.Content.(type) {
		case *packets.Connect:
			ack := packets.NewControlPacket(packets.CONNACK)
			s.connack(v, ack.Content.(*packets.Connack))
			ack.WriteTo(c)
		case *packets.Publish:
			s.mu.Lock()
			s.got = append(s.got, v)
			s.mu.Unlock()
			ack := packets.NewControlPacket(packets.PUBACK)
			ack.Content.(*packets.Puback).PacketID = v.PacketID
			ack.WriteTo(c)
		case *packets.Pingreq:
			packets.NewControlPacket(packets.PINGRESP).WriteTo(c)
		}
	}
}

// size is the length of a whole packet.
func size(p *packets.Publish) int {
	var b strings.Builder
	p.WriteTo(&b)
	return b.Len()
}

func (s *scripted) published() []*packets.Publish {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*packets.Publish(nil), s.got...)
}

func ptr[T any](v T) *T { return &v }

// A record larger than what the broker said it takes is never sent. The limit is
// met to the byte.
func TestMaximumPacketSize(t *testing.T) {
	record := func(n int) uplink.Record {
		return uplink.Record{Kind: uplink.KindEvent, Data: uplink.NewEvent(uplink.EventLoss, 0, 0).Str("detail", strings.Repeat("x", n)).Record()}
	}
	// The size of a packet with alias, which the first of a topic has.
	open := startScripted(t, func(_ *packets.Connect, a *packets.Connack) { a.Properties.TopicAliasMaximum = ptr(uint16(9)) })
	src := newOutbox()
	src.add(record(1000))
	cfg := quick()
	cfg.URL = open.url()
	_, stop := run(t, cfg, src, nil)
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	limit := uint32(size(open.published()[1]))

	s := startScripted(t, func(_ *packets.Connect, a *packets.Connack) {
		a.Properties.MaximumPacketSize, a.Properties.TopicAliasMaximum = &limit, ptr(uint16(9))
	})
	src = newOutbox()
	src.add(record(1000), record(1001), record(999))
	cfg.URL = s.url()
	var aside func() []uplink.SetAside
	cfg.SetAside, aside = collect(t, src)
	u, stop := run(t, cfg, src, nil)
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	if st := u.Status(); st.MaxPacket != limit || st.Connects != 1 {
		t.Errorf("status: %+v", st)
	}
	stop()
	if got := aside(); len(got) != 1 || got[0].Record.Seq != 2 || got[0].Topic != "tidemark/v1/line-3/event/loss" ||
		!strings.Contains(got[0].Reason, "the broker allows") {
		t.Errorf("set aside: %d, of record %d: %s", len(got), got[0].Record.Seq, got[0].Reason)
	}
}

// Topics are sent once where the broker offers aliases, and in full where it has
// no more of them.
func TestTopicAliases(t *testing.T) {
	s := startScripted(t, func(_ *packets.Connect, a *packets.Connack) { a.Properties.TopicAliasMaximum = ptr(uint16(2)) })
	src := newOutbox()
	for _, kind := range []string{"a", "b", "a", "b"} { // the status topic has alias 1
		src.add(uplink.Record{Kind: uplink.KindEvent, Data: uplink.NewEvent(kind, 0, reading.ClockUnknown).Record()})
	}
	cfg := quick()
	cfg.URL = s.url()
	_, stop := run(t, cfg, src, nil)
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	type use struct {
		Topic string
		Alias uint16
	}
	var got []use
	for _, p := range s.published() {
		u := use{Topic: strings.TrimPrefix(p.Topic, "tidemark/v1/line-3/")}
		if p.Properties.TopicAlias != nil {
			u.Alias = *p.Properties.TopicAlias
		}
		got = append(got, u)
	}
	want := []use{{"status", 1}, {"event/a", 2}, {"event/b", 0}, {"", 2}, {"event/b", 0}, {"", 1}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("topics (-want +got):\n%s", d)
	}
}

// What every record is sent with.
func TestPublishProperties(t *testing.T) {
	s := startScripted(t, func(*packets.Connect, *packets.Connack) {})
	src := newOutbox()
	src.add(stored["definition"])
	cfg := quick()
	cfg.URL = s.url()
	_, stop := run(t, cfg, src, nil)
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	p := s.published()[1]
	if p.QoS != 1 || !p.Retain || p.Duplicate || p.Topic != "tidemark/v1/line-3/definition/bearing-temp-5m/1" ||
		p.Properties.ContentType != "application/json" || *p.Properties.PayloadFormat != 1 {
		t.Errorf("published %s", p)
	}
	got := map[string]string{}
	for _, u := range p.Properties.User {
		got[u.Key] = u.Value
	}
	want := map[string]string{
		"type": "definition", "schema": "1", "generation": "1767225600123456", "revision": "0", "replayed": "true",
		"clock_state": "synchronized", "published_at": "2026-01-01T12:00:00Z", "update_id": got["update_id"],
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("user properties (-want +got):\n%s", d)
	}
}

// What a CONNACK may say.
func TestConnack(t *testing.T) {
	refuse := func(code byte, text string) func(*packets.Connect, *packets.Connack) {
		return func(_ *packets.Connect, a *packets.Connack) { a.ReasonCode, a.Properties.ReasonString = code, text }
	}
	for name, c := range map[string]struct {
		connack func(*packets.Connect, *packets.Connack)
		state   uplink.State
		reason  string
	}{
		"bad password": {refuse(0x86, ""), uplink.StateNotAuthorised, "bad user name or password (0x86)"},
		"banned":       {refuse(0x8A, "go away"), uplink.StateNotAuthorised, "go away"},
		"busy":         {refuse(0x89, ""), uplink.StateWaiting, "server busy"},
		"quota":        {refuse(0x97, ""), uplink.StateQuota, "quota exceeded"},
		"unknown code": {refuse(0xF1, ""), uplink.StateWaiting, "reason 0xF1"},
		"server moved": {func(_ *packets.Connect, a *packets.Connack) {
			a.ReasonCode, a.Properties.ServerReference = 0x9D, "b.example"
		}, uplink.StateWaiting, "b.example"},
		"QoS 0 only":          {func(_ *packets.Connect, a *packets.Connack) { a.Properties.MaximumQOS = ptr(byte(0)) }, uplink.StateWaiting, "QoS 0 only"},
		"packets of 64 bytes": {func(_ *packets.Connect, a *packets.Connack) { a.Properties.MaximumPacketSize = ptr(uint32(64)) }, uplink.StateWaiting, "at most 64 bytes"},
		"Receive Maximum 0":   {func(_ *packets.Connect, a *packets.Connack) { a.Properties.ReceiveMaximum = ptr(uint16(0)) }, uplink.StateWaiting, "Receive Maximum 0"},
		"retain refused": {func(c *packets.Connect, a *packets.Connack) {
			if c.WillRetain {
				a.ReasonCode = 0x9A
			}
			a.Properties.RetainAvailable = ptr(byte(0))
		}, uplink.StateOnline, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := startScripted(t, c.connack)
			src := newOutbox()
			src.add(stored["definition"])
			cfg := quick()
			cfg.URL = s.url()
			u, stop := run(t, cfg, src, nil)
			eventually(t, c.state.String(), func() bool { return u.Status().State == c.state })
			if st := u.Status(); !strings.Contains(st.Reason, c.reason) {
				t.Errorf("status: %+v", st)
			}
			if c.state == uplink.StateOnline {
				eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
			}
			stop()
			for _, p := range s.published() {
				if p.Retain {
					t.Errorf("%s is retained", p.Topic)
				}
			}
		})
	}
}
