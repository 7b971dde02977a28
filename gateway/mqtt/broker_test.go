package mqtt_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for what must come, on a busy machine too.
const patience = 20 * time.Second

// broker is a scripted MQTT 5 broker: a test says packet by packet what it does.
type broker struct {
	t  *testing.T
	ln net.Listener
}

// newBroker also lets the test run beside others: most of them wait.
func newBroker(t *testing.T) *broker {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return &broker{t, ln}
}

func (b *broker) url() string { return "mqtt://" + b.ln.Addr().String() }

// peer is one connection, as the broker sees it.
type peer struct {
	net.Conn
	t       *testing.T
	in      *bufio.Reader
	connect []byte // body of the CONNECT
}

// accept takes a connection and its subscription.
func (b *broker) accept(sessionPresent bool) *peer {
	b.t.Helper()
	p := b.greet([]byte{0x20, 3, map[bool]byte{true: 1}[sessionPresent], 0, 0})
	p.subscribe()
	return p
}

// greet takes a connection and answers its CONNECT.
func (b *broker) greet(connack []byte) *peer {
	b.t.Helper()
	b.ln.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	c, err := b.ln.Accept()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	p := &peer{Conn: c, t: b.t, in: bufio.NewReader(c)}
	if _, p.connect = p.expect(1); len(p.connect) == 0 {
		b.t.Fatal("no CONNECT")
	}
	p.send(connack)
	return p
}

// subscribe grants what is asked for and returns the SUBSCRIBE's body.
func (p *peer) subscribe() []byte {
	p.t.Helper()
	_, body := p.expect(8)
	p.send([]byte{0x90, 4, body[0], body[1], 0, 1})
	return body
}

func (p *peer) send(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// next reads a packet, and answers pings; ok is false if none comes within wait.
func (p *peer) next(wait time.Duration) (head byte, body []byte, ok bool) {
	p.t.Helper()
	for {
		p.SetReadDeadline(time.Now().Add(wait))
		head, err := p.in.ReadByte()
		if err != nil {
			return 0, nil, false
		}
		n, err := binary.ReadUvarint(p.in)
		if err != nil {
			p.t.Fatal(err)
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(p.in, body); err != nil {
			p.t.Fatal(err)
		}
		if head>>4 != 12 {
			return head, body, true
		}
		p.send([]byte{0xD0, 0})
	}
}

// expect reads a packet of a type.
func (p *peer) expect(kind byte) (head byte, body []byte) {
	p.t.Helper()
	head, body, ok := p.next(patience)
	if !ok || head>>4 != kind {
		p.t.Fatalf("got packet %x, want type %d", head, kind)
	}
	return head, body
}

// acks reads n acknowledgements and returns their packet ids.
func (p *peer) acks(n int) (ids []uint16) {
	p.t.Helper()
	for range n {
		_, body := p.expect(4)
		ids = append(ids, binary.BigEndian.Uint16(body))
	}
	return ids
}

// silent fails the test if a packet comes.
func (p *peer) silent() {
	p.t.Helper()
	if head, body, ok := p.next(30 * time.Millisecond); ok {
		p.t.Fatalf("got packet %x %x, want silence", head, body)
	}
}

const (
	qos1 = 0x32
	qos2 = 0x34
	dup  = 0x08
)

func packet(head byte, id uint16, topic, payload string) []byte {
	var body []byte
	body = binary.BigEndian.AppendUint16(body, uint16(len(topic)))
	body = append(body, topic...)
	if head&6 != 0 {
		body = binary.BigEndian.AppendUint16(body, id)
	}
	body = append(body, 0)
	body = append(body, payload...)
	return append(binary.AppendUvarint([]byte{head}, uint64(len(body))), body...)
}

func (p *peer) publish(head byte, id uint16, payload string) {
	p.t.Helper()
	p.send(packet(head, id, "in/d", payload))
}

// bootClock is a clock that nobody vouches for.
type bootClock struct{ start time.Time }

func (c bootClock) Now() reading.Instant {
	return reading.Instant{WallNS: time.Now().UnixNano(), BootNS: int64(time.Since(c.start)), BoundNS: -1}
}

// handClock is one that goes only when the test says so.
type handClock struct {
	wall, boot atomic.Int64
	bound      atomic.Int64 // 1 more than the error; 0: nobody vouches for it
	asked      atomic.Int64 // how often
}

func newHandClock() *handClock {
	c := &handClock{}
	c.wall.Store(time.Now().UnixNano())
	return c
}

func (c *handClock) Now() reading.Instant {
	c.asked.Add(1)
	return reading.Instant{WallNS: c.wall.Load(), BootNS: c.boot.Load(), BoundNS: c.bound.Load() - 1}
}

func (c *handClock) advance(d time.Duration) {
	c.wall.Add(int64(d))
	c.boot.Add(int64(d))
}

// store is a sink whose commits the test makes.
type store struct {
	parcels chan reading.Parcel
}

func (s *store) Deliver(ctx context.Context, p reading.Parcel) error {
	select {
	case s.parcels <- p:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take waits for the next parcel.
func (s *store) take(t *testing.T) reading.Parcel {
	t.Helper()
	select {
	case p := <-s.parcels:
		return p
	case <-time.After(patience):
		t.Fatal("no parcel")
		return reading.Parcel{}
	}
}

// collect takes parcels until n readings and rejects are there, and returns the
// readings' values and the last token.
func (s *store) collect(t *testing.T, n int) (values []int64, token uint64) {
	t.Helper()
	for n > 0 {
		p := s.take(t)
		for _, r := range p.Readings {
			v, _ := r.Value.Int()
			values = append(values, v)
		}
		n -= len(p.Readings) + len(p.Rejects)
		token = p.Token
	}
	return values, token
}

func (s *store) empty(t *testing.T) {
	t.Helper()
	select {
	case p := <-s.parcels:
		t.Fatalf("got a parcel: %+v", p)
	case <-time.After(30 * time.Millisecond):
	}
}

var plainValue = mqtt.Subscription{Topic: "in/{sensor}", QoS: 1}

// start runs a reader until the test ends.
func start(t *testing.T, url string, change func(*mqtt.Config)) (*mqtt.Reader, *store, func()) {
	t.Helper()
	return startAt(t, url, bootClock{time.Now()}, change)
}

// startAt is start with a clock.
func startAt(t *testing.T, addr string, clk mqtt.Clock, change func(*mqtt.Config)) (*mqtt.Reader, *store, func()) {
	t.Helper()
	u, err := url.Parse(addr)
	if err != nil {
		t.Fatal(err)
	}
	cfg := mqtt.Config{Input: "a", URL: u, ClientID: "tidemark-a", CatchUpMax: 10 * time.Minute, Subscriptions: []mqtt.Subscription{plainValue}}
	if change != nil {
		change(&cfg)
	}
	log := zerolog.Nop()
	if testing.Verbose() {
		log = zerolog.New(os.Stderr)
	}
	s := &store{parcels: make(chan reading.Parcel, 100)}
	r, err := mqtt.New(cfg, s, clk, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("Run does not return")
		}
	})
	t.Cleanup(stop)
	return r, s, stop
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}
