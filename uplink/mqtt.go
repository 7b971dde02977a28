package uplink

import (
	"context"
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

	"tidemark/internal/broker"
)

// client makes connections to one broker with paho.
type client struct {
	cfg      *Config
	peer     *broker.Peer
	noRetain bool // the broker refused a retained will
}

func newClient(cfg *Config) (*client, error) {
	switch {
	case cfg.ClientID == "":
		return nil, errors.New("client_id: there is none, and a broker's limits and rights hang on it")
	case cfg.Clock == nil:
		return nil, errors.New("it has no clock")
	}
	peer, err := broker.At(cfg.URL, cfg.TLS, func() int64 { ns, _ := cfg.Clock(); return ns })
	return &client{cfg: cfg, peer: peer}, err
}

// connect is the connector of a client. Its errors are sentences.
func (b *client) connect(ctx context.Context, will *Message, answered func(uint16, broker.Code)) (conn, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.ConnectTimeout)
	defer cancel()
	cp, err := b.connectPacket(will)
	if err != nil {
		return nil, b.peer.Unreachable(err)
	}
	sock, err := b.peer.Dial(ctx)
	if err != nil {
		return nil, b.peer.Unreachable(err)
	}
	c := &mqttConn{peer: b.peer, sock: &corkedConn{Conn: sock}, down: make(chan struct{})}
	c.client = paho.NewClient(paho.ClientConfig{
		ClientID: b.cfg.ClientID, Conn: c.sock, Session: &storeSession{answered}, PacketTimeout: b.cfg.ConnectTimeout,
		OnClientError:      func(err error) { c.fail(c.peer.Broke(err)) },
		OnServerDisconnect: func(d *paho.Disconnect) { c.fail(c.peer.Ended(broker.Code(d.ReasonCode), ownWords(d))) },
	})
	ack, err := c.client.Connect(ctx, cp)
	if err != nil {
		sock.Close()
		return nil, b.connectError(ack, err)
	}
	return c, c.accept(ack)
}

func (b *client) connectPacket(will *Message) (*paho.Connect, error) {
	format := byte(1)
	cp := &paho.Connect{
		ClientID: b.cfg.ClientID, CleanStart: true, KeepAlive: uint16(min(max(1, b.cfg.KeepAlive/time.Second), 65535)),
	}
	if will != nil {
		cp.WillMessage = &paho.WillMessage{Topic: will.Topic, Payload: will.Payload, QoS: 1, Retain: !b.noRetain}
		cp.WillProperties = &paho.WillProperties{PayloadFormat: &format, ContentType: contentType}
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

// connectError explains why there is no CONNACK, or what one that refuses says.
func (b *client) connectError(ack *paho.Connack, err error) error {
	if ack == nil || !broker.Code(ack.ReasonCode).Failed() {
		return b.peer.Unreachable(err)
	}
	code, said := broker.Code(ack.ReasonCode), ""
	b.noRetain = b.noRetain || code == broker.RetainNotSupported
	if p := ack.Properties; p != nil {
		said = broker.Words(p.ReasonString, p.ServerReference)
	}
	return b.peer.Refused(code, said)
}

// ownWords are the broker's own about why it ends the connection.
func ownWords(d *paho.Disconnect) string {
	if d.Properties == nil {
		return ""
	}
	return broker.Words(d.Properties.ReasonString, d.Properties.ServerReference)
}

// leastPacket is what most records fit into. A broker that takes less would have them
// set aside one by one, all of them.
const leastPacket = 1024

// maxAliases bounds what is remembered of topics.
const maxAliases = 1024

// mqttConn is a conn over paho.
type mqttConn struct {
	client *paho.Client
	peer   *broker.Peer
	sock   *corkedConn
	lim    limits
	retain bool // the broker keeps retained messages

	aliases   map[string]uint16
	aliasesTo uint16 // highest alias that the broker allows

	once  sync.Once
	down  chan struct{}
	cause error // before down is closed
}

// accept takes the broker's limits from its CONNACK.
func (c *mqttConn) accept(ack *paho.Connack) error {
	c.lim.receiveMax, c.retain = maxWindow, true
	p := ack.Properties
	if p == nil {
		return nil
	}
	if p.ReceiveMaximum != nil {
		c.lim.receiveMax = int(*p.ReceiveMaximum)
	}
	if c.lim.receiveMax == 0 {
		c.disconnect(broker.Protocol)
		c.abort()
		return fmt.Errorf("the broker at %s says that it takes no record at a time (Receive Maximum 0), which MQTT 5 forbids; raise its limit of messages in flight", c.peer.Addr())
	}
	if p.MaximumPacketSize != nil {
		c.lim.maxPacket = *p.MaximumPacketSize
		if c.lim.maxPacket < leastPacket {
			c.disconnect(broker.Normal)
			c.abort()
			return fmt.Errorf("the broker at %s takes packets of at most %d bytes, so that hardly any record would arrive; raise its maximum packet size (mosquitto: max_packet_size) to 16384 or more", c.peer.Addr(), c.lim.maxPacket)
		}
	}
	if p.TopicAliasMaximum != nil {
		c.aliasesTo = min(*p.TopicAliasMaximum, maxAliases)
		c.aliases = make(map[string]uint16)
	}
	c.retain = p.RetainAvailable
	if p.MaximumQoS != nil && *p.MaximumQoS < 1 {
		c.abort()
		return fmt.Errorf("the broker at %s takes QoS 0 only, which loses records without a word; let it grant QoS 1", c.peer.Addr())
	}
	return nil
}

func (c *mqttConn) limits() limits        { return c.lim }
func (c *mqttConn) done() <-chan struct{} { return c.down }
func (c *mqttConn) err() error            { return c.cause }

func (c *mqttConn) fail(err error) {
	c.once.Do(func() {
		c.cause = err
		close(c.down)
	})
}

// send writes the packet itself: paho's Publish would copy it several times on its
// way to a session that keeps nothing. paho's pings go on regardless.
func (c *mqttConn) send(id uint16, m *Message, props *[8]Property) error {
	topic, alias := c.alias(m.Topic)
	c.sock.Lock()
	c.sock.corked = true
	c.sock.buf = appendPublish(c.sock.buf, id, m, props, topic, alias, m.Retain && c.retain)
	err := c.sock.err
	c.sock.Unlock()
	if err != nil {
		return c.peer.Broke(err)
	}
	return nil
}

// alias returns what stands for a topic: nothing and its alias, once the broker
// knows it. The first topics get one; with more topics than aliases, changing
// them would save nothing.
func (c *mqttConn) alias(topic string) (string, uint16) {
	if a, ok := c.aliases[topic]; ok {
		return "", a
	}
	if n := len(c.aliases); n < int(c.aliasesTo) {
		a := uint16(n + 1)
		c.aliases[topic] = a
		return topic, a
	}
	return topic, 0
}

func (c *mqttConn) flush() error {
	if err := c.sock.uncork(); err != nil {
		return c.peer.Broke(err)
	}
	return nil
}

// partingTimeout bounds the writing of a DISCONNECT.
const partingTimeout = time.Second

func (c *mqttConn) disconnect(code broker.Code) {
	t := time.AfterFunc(partingTimeout, func() { c.sock.Close() })
	defer t.Stop()
	if c.flush() == nil {
		c.client.Disconnect(&paho.Disconnect{ReasonCode: byte(code)})
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
	answered func(id uint16, code broker.Code)
}

func (s *storeSession) PacketReceived(p *packets.ControlPacket, _ chan<- *packets.Publish) error {
	if a, ok := p.Content.(*packets.Puback); ok {
		s.answered(a.PacketID, broker.Code(a.ReasonCode))
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

// uncork sends what waits.
func (c *corkedConn) uncork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = false
	c.write()
	return c.err
}
