package mqtt

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"tidemark/internal/broker"
)

// MQTT 5 §2.1.2: the packet types that pass by here.
const (
	packetConnack    = 2
	packetPublish    = 3
	packetPuback     = 4
	packetPubrec     = 5
	packetDisconnect = 14
)

// publish is a PUBLISH packet. Its slices are valid until the next read.
type publish struct {
	topic, payload []byte
	id             uint16 // 0 with QoS 0
	qos            byte
	dup, retain    bool
	// size, if not 0, is the payload's size of a packet too large to be kept;
	// payload is its beginning then.
	size int
}

// listener is told what a wire carries.
type listener interface {
	// waiting is called before a read that may block: what came so far should go on.
	waiting()
	// arrived is called after each read.
	arrived()
	connected(sessionPresent bool)
	// refused is called with a broker's own words in a CONNACK that refuses.
	refused(words string)
	publish(*publish)
	disconnected(code broker.Code, words string)
	// broke is called when the connection fails, not when it is closed from here.
	broke(error)
}

// wire is a connection to the broker from which PUBLISH packets are taken out
// before the MQTT client sees them. The client keeps what is rare and intricate
// (connecting, subscribing, pings, QoS 2 releases); what comes 30,000 times a
// second is read here, straight from the buffer, and acknowledged in batches.
// DESIGN.md has the figures.
//
// Read is for one goroutine. Writers lock the wire around each packet.
type wire struct {
	net.Conn
	sync.Mutex
	in         *bufio.Reader
	to         listener
	maxPayload int
	pass       []byte // the rest of a packet that is not ours
	scratch    []byte
	closed     chan struct{}
	closeOnce  sync.Once
}

const (
	readBuffer = 64 << 10
	// maxHead is what may stand before a payload: topic, packet id and properties.
	maxHead = 96 << 10
	// writeTimeout is for what a broker that reads takes at once.
	writeTimeout = 30 * time.Second
	// maxForeign bounds the packets that are not ours, far above what a broker
	// sends.
	maxForeign = 1 << 20
)

func newWire(c net.Conn, to listener, maxPayload int) *wire {
	w := &wire{Conn: c, to: to, maxPayload: maxPayload, closed: make(chan struct{})}
	w.in = bufio.NewReaderSize(source{w}, readBuffer)
	return w
}

// source is what the wire's buffer is filled from.
type source struct{ w *wire }

func (s source) Read(p []byte) (int, error) {
	s.w.to.waiting()
	n, err := s.w.Conn.Read(p)
	s.w.to.arrived()
	return n, err
}

// Close closes the connection; Read returns.
func (w *wire) Close() error {
	w.closeOnce.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

func (w *wire) isClosed() bool {
	select {
	case <-w.closed:
		return true
	default:
		return false
	}
}

// Write sends a packet, or a part of one; the lock is held. A broker that does not
// read would hold it for ever, and our pings, which find that out, with it.
func (w *wire) Write(p []byte) (int, error) {
	late := time.AfterFunc(writeTimeout, func() {
		w.failed(errUnread)
		w.Close()
	})
	defer late.Stop()
	n, err := w.Conn.Write(p)
	return n, w.failed(err)
}

// failed tells of an error that is not of our own making.
func (w *wire) failed(err error) error {
	if err != nil && !w.isClosed() {
		w.to.broke(err)
	}
	return err
}

// Read gives the packets that are not ours.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.pass) == 0 {
		if err := w.next(); err != nil {
			return 0, w.failed(err)
		}
	}
	n := copy(p, w.pass)
	w.pass = w.pass[n:]
	return n, nil
}

func (w *wire) next() error {
	head, hlen, n, err := w.header()
	if err != nil {
		return err
	}
	if head>>4 == packetPublish {
		return w.publish(head, hlen, n)
	}
	if n > maxForeign {
		return fmt.Errorf("packet of type %d and %d bytes: this is no MQTT broker", head>>4, n)
	}
	packet := make([]byte, hlen+n)
	if _, err := io.ReadFull(w.in, packet); err != nil {
		return err
	}
	switch {
	case head>>4 == packetDisconnect && n == 0: // a code of 0 may be left out
		w.to.disconnected(broker.Normal, "")
	case head>>4 == packetConnack || head>>4 == packetDisconnect:
		w.told(packet)
	}
	w.pass = packet
	return nil
}

// told passes on what begins and ends a connection. A packet that cannot be read is
// the client's to complain about.
func (w *wire) told(packet []byte) {
	p, err := packets.ReadPacket(bytes.NewReader(packet))
	if err != nil {
		return
	}
	switch c := p.Content.(type) {
	case *packets.Connack:
		if broker.Code(c.ReasonCode).Failed() {
			w.to.refused(broker.Words(c.Properties.ReasonString, c.Properties.ServerReference))
		} else {
			w.to.connected(c.SessionPresent)
		}
	case *packets.Disconnect:
		w.to.disconnected(broker.Code(c.ReasonCode), broker.Words(c.Properties.ReasonString, c.Properties.ServerReference))
	}
}

// header looks at the next packet's fixed header: its first byte, its own length
// and that of what follows.
func (w *wire) header() (head byte, hlen, n int, err error) {
	for i := 2; ; i++ {
		b, err := w.in.Peek(i)
		if err != nil {
			if len(b) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, 0, 0, err
		}
		n |= int(b[i-1]&0x7f) << (7 * (i - 2))
		if b[i-1] < 0x80 {
			return b[0], i, n, nil
		}
		if i == 5 {
			return 0, 0, 0, errors.New("packet length of more than 4 bytes: this is no MQTT broker")
		}
	}
}

func (w *wire) publish(head byte, hlen, n int) error {
	switch {
	case hlen+n <= w.in.Size():
		packet, err := w.in.Peek(hlen + n)
		if err != nil {
			return err
		}
		if err := w.hand(head, packet[hlen:], 0); err != nil {
			return err
		}
		_, err = w.in.Discard(hlen + n)
		return err
	case n <= w.maxPayload+maxHead:
		w.in.Discard(hlen) // peeked at already
		if cap(w.scratch) < n {
			w.scratch = make([]byte, n)
		}
		body := w.scratch[:n]
		if _, err := io.ReadFull(w.in, body); err != nil {
			return err
		}
		err := w.hand(head, body, 0)
		if cap(w.scratch) > 1<<20 {
			w.scratch = nil
		}
		return err
	}
	w.in.Discard(hlen)
	body := make([]byte, min(n, maxHead+maxExcerpt))
	if _, err := io.ReadFull(w.in, body); err != nil {
		return err
	}
	// All of it, before it can be acknowledged.
	if _, err := w.in.Discard(n - len(body)); err != nil {
		return err
	}
	return w.hand(head, body, n-len(body))
}

// hand hands a PUBLISH on, whose last unread bytes are not there.
func (w *wire) hand(head byte, body []byte, unread int) error {
	p, size, err := parsePublish(head, body, unread)
	if err != nil {
		return err
	}
	if size > w.maxPayload || unread > 0 {
		p.size = max(size, unread) // a small payload may stand behind very many properties
		p.payload = p.payload[:min(len(p.payload), maxExcerpt)]
	}
	w.to.publish(&p)
	return nil
}

// parsePublish reads a PUBLISH without its fixed header (MQTT 5 §3.3), whose last
// unread bytes are not there, and returns the size of its payload too. No
// property matters here, and no topic alias was offered.
func parsePublish(head byte, b []byte, unread int) (p publish, size int, err error) {
	p.qos, p.dup, p.retain = head>>1&3, head&8 != 0, head&1 != 0
	if p.qos == 3 || len(b) < 2 {
		return p, 0, errPublish
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	switch {
	case n == 2:
		return p, 0, errAlias
	case len(b) < n:
		return p, 0, errPublish
	}
	p.topic, b = b[2:n], b[n:]
	if p.qos > 0 {
		if len(b) < 2 || b[0]|b[1] == 0 {
			return p, 0, errPublish
		}
		p.id, b = binary.BigEndian.Uint16(b), b[2:]
	}
	properties, used := binary.Uvarint(b[:min(len(b), 4)])
	size = len(b) - used + unread - int(properties)
	if used <= 0 || size < 0 {
		return p, 0, errPublish
	}
	p.payload = b[min(used+int(properties), len(b)):]
	return p, size, nil
}

var (
	errPublish = errors.New("the broker sent a PUBLISH that is malformed; if it does again after a restart, it is at fault")
	errAlias   = errors.New("the broker sent a PUBLISH without a topic, and no topic alias was offered to it; it is at fault")
	errUnread  = errors.New("the broker reads nothing any more")
)
