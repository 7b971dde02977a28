package opcua

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"

	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uacp"
)

const (
	// chunkMost is how many bytes of a chunk we take, and send.
	chunkMost = 65535
	// chunkLeast is what each side must take (OPC UA Part 6 §7.1.2.3).
	chunkLeast = 8192
	// messageMost is how many bytes of an answer we take: what a server of any size
	// says in one go, and what a gateway of any size has room for.
	messageMost = 4 << 20
	frameHead   = 8
)

// wire frames what goes over a connection (OPC UA Part 6 §7.1). One goroutine at a
// time may read, and one write.
type wire struct {
	conn   net.Conn
	in     *bufio.Reader
	chunk  int // bytes of a chunk that the server takes
	whole  int // bytes of a request that it takes
	chunks int // of a request that it takes
}

// frame reads the next frame, with its head. What the server says to end the connection
// is an error that wraps its status code.
func (w *wire) frame() ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(head[4:])
	if size < frameHead || size > chunkMost {
		return nil, fmt.Errorf("this is not OPC UA, or a chunk of %d bytes, more than was agreed: %q", size, head[:4])
	}
	b := make([]byte, size)
	copy(b, head[:])
	if _, err := io.ReadFull(w.in, b[frameHead:]); err != nil {
		return nil, err
	}
	if string(b[:3]) == uacp.MessageTypeError {
		return nil, refusal(b[frameHead:])
	}
	return b, nil
}

// refusal is what the server says when it breaks off an answer or ends the connection: a
// status code, and a reason (Part 6 §7.1.2.5).
func refusal(b []byte) error {
	s := scan{b: b}
	code := s.int32()
	if s.bytes(); s.err != nil {
		return errors.New("the server gives up and does not say why")
	}
	return ua.StatusCode(code)
}

// greet agrees with the server on how large things may be.
func (w *wire) greet(url string) error {
	hello, err := ua.Encode(&uacp.Hello{ReceiveBufSize: chunkMost, SendBufSize: chunkMost, MaxMessageSize: messageMost, EndpointURL: url})
	if err != nil {
		return err
	}
	head := binary.LittleEndian.AppendUint32([]byte(uacp.MessageTypeHello+"F"), uint32(frameHead+len(hello)))
	if _, err := w.conn.Write(append(head, hello...)); err != nil {
		return err
	}
	b, err := w.frame()
	if err != nil {
		return err
	}
	ack := new(uacp.Acknowledge)
	if _, err := ack.Decode(b[frameHead:]); err != nil || string(b[:3]) != uacp.MessageTypeAcknowledge {
		return fmt.Errorf("the server answers the greeting with %q", b[:4])
	}
	if ack.ReceiveBufSize < chunkLeast {
		return fmt.Errorf("the server takes chunks of %d bytes only, and must take %d", ack.ReceiveBufSize, chunkLeast)
	}
	w.chunk = int(min(ack.ReceiveBufSize, chunkMost))
	w.whole, w.chunks = limited(ack.MaxMessageSize), limited(ack.MaxChunkCount)
	return nil
}

// limited is a limit of which 0 says that there is none.
func limited(n uint32) int {
	if n == 0 {
		return math.MaxInt32
	}
	return int(min(n, math.MaxInt32))
}
