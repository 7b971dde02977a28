package mqtt

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/internal/broker"
)

// heard notes what a wire brings.
type heard struct {
	publishes []publish
	broken    error
}

func (h *heard) waiting() {}

func (h *heard) arrived() {}

func (h *heard) connected(bool) {}

func (h *heard) refused(string)                   {}
func (h *heard) disconnected(broker.Code, string) {}

func (h *heard) broke(err error) { h.broken = err }

func (h *heard) publish(p *publish) {
	q := *p
	q.topic, q.payload = bytes.Clone(p.topic), bytes.Clone(p.payload)
	h.publishes = append(h.publishes, q)
}

// trickle is a connection that brings a few bytes at a time.
type trickle struct {
	net.Conn
	from io.Reader
	step int
}

func (c *trickle) Read(p []byte) (int, error) { return c.from.Read(p[:min(len(p), c.step)]) }

func (c *trickle) Close() error { return nil }

func TestWirePassesTheRestOn(t *testing.T) {
	stream := "\x20\x03\x00\x00\x00" + "\x32\x0a\x00\x03a/b\x00\x07\x00\x31\x32" + "\xd0\x00" + "\x30\x06\x00\x01x\x00\x33\x34"
	for _, step := range []int{1, 2, 3, 1000} {
		var h heard
		w := newWire(&trickle{from: strings.NewReader(stream), step: step}, &h, 100)
		rest, err := io.ReadAll(w)
		if err != nil || string(rest) != "\x20\x03\x00\x00\x00\xd0\x00" {
			t.Errorf("passed on %x, %v", rest, err)
		}
		if len(h.publishes) != 2 || string(h.publishes[0].topic) != "a/b" || h.publishes[0].id != 7 ||
			string(h.publishes[0].payload) != "12" || string(h.publishes[1].payload) != "34" {
			t.Errorf("took %+v", h.publishes)
		}
	}
}

func TestWireTakesLargePackets(t *testing.T) {
	for _, n := range []int{readBuffer - 20, readBuffer, readBuffer + 1, 200_000, 200_001, 400_000} {
		payload := strings.Repeat("x", n)
		body := "\x00\x01t\x00\x09\x00" + payload
		var h heard
		w := newWire(&trickle{from: strings.NewReader(string(frame(0x32, body)) + "\xd0\x00"), step: 1 << 20}, &h, 200_000)
		if rest, err := io.ReadAll(w); err != nil || string(rest) != "\xd0\x00" || len(h.publishes) != 1 {
			t.Fatalf("%d: passed on %x, %v, took %d", n, rest, err, len(h.publishes))
		}
		p := h.publishes[0]
		if n <= 200_000 && (p.size != 0 || string(p.payload) != payload) || n > 200_000 && (p.size != n || len(p.payload) != maxExcerpt) || p.id != 9 {
			t.Errorf("%d: size %d, %d bytes", n, p.size, len(p.payload))
		}
	}
}

func frame(head byte, body string) []byte {
	b := []byte{head}
	for n := len(body); ; {
		c := byte(n & 0x7f)
		if n >>= 7; n > 0 {
			c |= 0x80
		}
		if b = append(b, c); n == 0 {
			return append(b, body...)
		}
	}
}

func TestWireRefusesNonsense(t *testing.T) {
	for _, stream := range []string{"\x32\xff\xff\xff\xff\x01", "\x36\x05\x00\x01t\x00\x01", "\x32\x02\x00\x09", "\x32\x03\x00\x01t", "\x32\x05\x00\x01t\x00\x00",
		"\x32\x06\x00\x01t\x00\x01\x05", "\x32\x05\x00\x00\x00\x01\x00", "\x90\xff\xff\xff\x7f", "HTTP/1.1 400 Bad Request\r\n\r\n"} {
		w := newWire(&trickle{from: strings.NewReader(stream), step: 100}, &heard{}, 100)
		if _, err := io.ReadAll(w); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%q: %v", stream, err)
		}
	}
}

func FuzzWire(f *testing.F) {
	f.Add([]byte("\x20\x03\x00\x00\x00\x32\x0a\x00\x03a/b\x00\x07\x00\x31\x32\xd0\x00\xe0\x01\x8e"))
	f.Add([]byte("\x30\x06\x00\x01x\x00\x33\x34"))
	f.Add([]byte("\x32\x06\x00\x01t\x00\x01\x05"))
	f.Add(frame(0x32, "\x00\x01t\x00\x09\x00"+strings.Repeat("x", 300)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var first, second heard
		a, aerr := io.ReadAll(newWire(&trickle{from: bytes.NewReader(stream), step: 1}, &first, 100))
		b, berr := io.ReadAll(newWire(&trickle{from: bytes.NewReader(stream), step: 1 << 20}, &second, 100))
		if !bytes.Equal(a, b) || len(first.publishes) != len(second.publishes) || (aerr == nil) != (berr == nil) {
			t.Fatalf("how a stream is cut matters: %x %v, %x %v", a, aerr, b, berr)
		}
		for _, p := range first.publishes {
			if len(p.payload) > maxExcerpt || p.size == 0 && len(p.payload) > 100 {
				t.Fatalf("kept %d bytes", len(p.payload))
			}
		}
	})
}

// deaf is a connection whose other end reads nothing.
type deaf struct {
	net.Conn
	gone chan struct{}
}

func (d *deaf) Write([]byte) (int, error) { <-d.gone; return 0, net.ErrClosed }
func (d *deaf) Close() error              { close(d.gone); return nil }

// A broker that reads nothing would hold the acknowledgements, and the pings behind
// them, for ever.
func TestWireGivesUpOnADeafBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		w := newWire(&deaf{gone: make(chan struct{})}, h, 1000)
		before := time.Now()
		if _, err := w.Write([]byte{0xC0, 0}); err == nil || h.broken != errUnread {
			t.Errorf("the write ends with %v, said: %v", err, h.broken)
		}
		if took := time.Since(before); took != writeTimeout {
			t.Errorf("after %v", took)
		}
	})
}
