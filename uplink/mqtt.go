package uplink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"github.com/eclipse/paho.golang/paho/log"
	"github.com/eclipse/paho.golang/paho/session"
)

// broker makes connections to one broker with paho.
type broker struct {
	cfg      *Config
	noRetain bool // the broker refused a retained will
}

func newBroker(cfg *Config) (*broker, error) {
	switch {
	case cfg.URL == nil:
		return nil, errors.New("it has no address; write one such as mqtts://broker.example:8883")
	case defaultPorts[cfg.URL.Scheme] == "":
		return nil, fmt.Errorf("%s: scheme %q is none of mqtt, mqtts, ws, wss", cfg.URL.Redacted(), cfg.URL.Scheme)
	case cfg.ClientID == "":
		return nil, errors.New("it has no client id, and a broker's limits and rights hang on it")
	case cfg.Clock == nil:
		return nil, errors.New("it has no clock")
	}
	return &broker{cfg: cfg}, nil
}

// connect is the connector of a broker.
func (b *broker) connect(ctx context.Context, will *Message, answered func(uint16, byte)) (conn, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.ConnectTimeout)
	defer cancel()
	cp, err := b.connectPacket(will)
	if err != nil {
		return nil, err
	}
	tlsConf, err := b.tls()
	if err != nil {
		return nil, err
	}
	sock, err := dial(ctx, b.cfg.URL, tlsConf)
	if err != nil {
		return nil, err
	}
	c := &mqttConn{sock: &corkedConn{Conn: sock}, down: make(chan struct{})}
	c.client = paho.NewClient(paho.ClientConfig{
		ClientID: b.cfg.ClientID, Conn: c.sock, Session: &storeSession{answered}, PacketTimeout: b.cfg.ConnectTimeout,
		OnClientError:      c.fail,
		OnServerDisconnect: func(d *paho.Disconnect) { c.fail(disconnectError(d)) },
	})
	ack, err := c.client.Connect(ctx, cp)
	if err != nil {
		sock.Close()
		return nil, b.connectError(ack, err)
	}
	return c, c.accept(ack)
}

func (b *broker) connectPacket(will *Message) (*paho.Connect, error) {
	format := byte(1)
	cp := &paho.Connect{
		ClientID: b.cfg.ClientID, CleanStart: true, KeepAlive: uint16(min(max(1, b.cfg.KeepAlive/time.Second), 65535)),
		WillMessage:    &paho.WillMessage{Topic: will.Topic, Payload: will.Payload, QoS: 1, Retain: !b.noRetain},
		WillProperties: &paho.WillProperties{PayloadFormat: &format, ContentType: contentType},
	}
	if b.cfg.Login == nil {
		return cp, nil
	}
	user, password, err := b.cfg.Login()
	if err != nil {
		return nil, err
	}
	cp.UsernameFlag, cp.Username = user != "", user
	cp.PasswordFlag, cp.Password = len(password) > 0, password
	return cp, nil
}

// tls returns what the connection is secured with, nil for a scheme without TLS.
// Certificates are judged by the same clock as everything else.
func (b *broker) tls() (*tls.Config, error) {
	if !encrypted(b.cfg.URL.Scheme) {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if b.cfg.TLS != nil {
		own, err := b.cfg.TLS()
		if err != nil {
			return nil, err
		}
		conf = own.Clone()
	}
	conf.Time = func() time.Time {
		ns, _ := b.cfg.Clock()
		return time.Unix(0, ns)
	}
	return conf, nil
}

// connectError explains a CONNACK that refuses.
func (b *broker) connectError(ack *paho.Connack, err error) error {
	if ack == nil || ack.ReasonCode < codeUnspecified {
		return err
	}
	b.noRetain = b.noRetain || ack.ReasonCode == codeRetain
	e := &brokerError{doing: "the broker refuses the connection", code: ack.ReasonCode}
	if p := ack.Properties; p != nil {
		if e.text = p.ReasonString; p.ServerReference != "" {
			e.text = "it names " + p.ServerReference
		}
	}
	return e
}

func disconnectError(d *paho.Disconnect) error {
	e := &brokerError{doing: "the broker ended the connection", code: d.ReasonCode}
	if d.Properties != nil {
		e.text = d.Properties.ReasonString
	}
	return e
}

// maxAliases bounds what is remembered of topics.
const maxAliases = 1024

// mqttConn is a conn over paho.
type mqttConn struct {
	client *paho.Client
	sock   *corkedConn
	lim    limits
	retain bool // the broker keeps retained messages

	props     packets.Properties // of the packet being sent
	aliases   map[string]uint16
	aliasesTo uint16 // highest alias that the broker allows

	once  sync.Once
	down  chan struct{}
	cause error // before down is closed
}

// accept takes the broker's limits from its CONNACK.
func (c *mqttConn) accept(ack *paho.Connack) error {
	c.lim.receiveMax, c.retain = maxWindow, true
	format := byte(1)
	c.props = packets.Properties{PayloadFormat: &format, ContentType: contentType}
	p := ack.Properties
	if p == nil {
		return nil
	}
	if p.ReceiveMaximum != nil {
		c.lim.receiveMax = int(*p.ReceiveMaximum)
	}
	if p.MaximumPacketSize != nil {
		c.lim.maxPacket = *p.MaximumPacketSize
	}
	if p.TopicAliasMaximum != nil {
		c.aliasesTo = min(*p.TopicAliasMaximum, maxAliases)
		c.aliases = make(map[string]uint16)
	}
	c.retain = p.RetainAvailable
	if p.MaximumQoS != nil && *p.MaximumQoS < 1 {
		c.abort()
		return errors.New("the broker takes QoS 0 only, which loses records without a word")
	}
	return nil
}

func (c *mqttConn) limits() limits        { return c.lim }
func (c *mqttConn) done() <-chan struct{} { return c.down }
func (c *mqttConn) err() error            { return c.cause }

func (c *mqttConn) fail(err error) {
	c.once.Do(func() {
		c.cause = fmt.Errorf("connection lost: %w", err)
		close(c.down)
	})
}

// send writes the packet itself: paho's Publish would copy it several times on its
// way to a session that keeps nothing. paho's pings go on regardless.
func (c *mqttConn) send(id uint16, m *Message, props [8]Property) error {
	p := packets.Publish{QoS: 1, PacketID: id, Retain: m.Retain && c.retain, Payload: m.Payload, Properties: &c.props}
	c.props.User = c.props.User[:0]
	for _, u := range props {
		c.props.User = append(c.props.User, packets.User{Key: u.Name, Value: u.Value})
	}
	p.Topic, c.props.TopicAlias = c.alias(m.Topic)
	c.sock.cork()
	_, err := p.WriteTo(c.sock)
	return err
}

// alias returns what stands for a topic: nothing and its alias, once the broker
// knows it. The first topics get one; with more topics than aliases, changing
// them would save nothing.
func (c *mqttConn) alias(topic string) (string, *uint16) {
	if a, ok := c.aliases[topic]; ok {
		return "", &a
	}
	if n := len(c.aliases); n < int(c.aliasesTo) {
		a := uint16(n + 1)
		c.aliases[topic] = a
		return topic, &a
	}
	return topic, nil
}

func (c *mqttConn) flush() error { return c.sock.uncork() }

// partingTimeout bounds the writing of a DISCONNECT.
const partingTimeout = time.Second

func (c *mqttConn) disconnect(code byte) {
	t := time.AfterFunc(partingTimeout, func() { c.sock.Close() })
	defer t.Stop()
	if c.flush() == nil {
		c.client.Disconnect(&paho.Disconnect{ReasonCode: code})
	}
}

func (c *mqttConn) abort() {
	c.sock.Close()
	<-c.client.Done()
}

// storeSession is a paho session without a memory: the outbox is the session.
// Every connection starts clean, packet identifiers come from the window, and
// what is not answered is read from the outbox again.
type storeSession struct {
	answered func(id uint16, code byte)
}

func (s *storeSession) PacketReceived(p *packets.ControlPacket, _ chan<- *packets.Publish) error {
	if a, ok := p.Content.(*packets.Puback); ok {
		s.answered(a.PacketID, a.ReasonCode)
	}
	return nil
}

// AddToSession would be asked by paho's own Publish and Subscribe, which nobody
// calls.
func (*storeSession) AddToSession(context.Context, session.Packet, chan<- packets.ControlPacket) error {
	return errors.ErrUnsupported
}

func (*storeSession) ConAckReceived(io.Writer, *packets.Connect, *packets.Connack) error { return nil }
func (*storeSession) ConnectionLost(*packets.Disconnect) error                           { return nil }
func (*storeSession) Ack(*packets.Publish) error                                         { return nil }
func (*storeSession) Close() error                                                       { return nil }
func (*storeSession) SetErrorLogger(log.Logger)                                          {}
func (*storeSession) SetDebugLogger(log.Logger)                                          {}

// corkedConn gathers packets into few writes. paho locks it around each packet,
// from the sender's goroutine and from the one that sends pings.
type corkedConn struct {
	net.Conn
	mu     sync.Mutex
	buf    []byte
	corked bool
	err    error // of an earlier write
}

// corkBytes is how much is gathered at most.
const corkBytes = 32 << 10

func (c *corkedConn) Lock() { c.mu.Lock() }

// Unlock ends a packet.
func (c *corkedConn) Unlock() {
	if !c.corked || len(c.buf) >= corkBytes {
		c.write()
	}
	c.mu.Unlock()
}

// Write takes a part of a packet; the lock is held.
func (c *corkedConn) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	c.buf = append(c.buf, p...)
	return len(p), nil
}

func (c *corkedConn) write() {
	if len(c.buf) > 0 && c.err == nil {
		_, c.err = c.Conn.Write(c.buf)
	}
	c.buf = c.buf[:0]
}

// cork makes packets wait for uncork or for enough of them.
func (c *corkedConn) cork() {
	c.mu.Lock()
	c.corked = true
	c.mu.Unlock()
}

// uncork sends what waits.
func (c *corkedConn) uncork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = false
	c.write()
	return c.err
}
