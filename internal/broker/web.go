package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

// webBuffer is how much is read from a WebSocket at a time.
const webBuffer = 64 << 10

func dialWeb(ctx context.Context, url string, conf *tls.Config) (net.Conn, error) {
	d := websocket.Dialer{TLSClientConfig: conf, Subprotocols: []string{"mqtt"}, ReadBufferSize: webBuffer}
	ws, resp, err := d.DialContext(ctx, url, nil)
	switch {
	case err != nil && resp != nil:
		return nil, fmt.Errorf("%w: the server answered %s", err, resp.Status)
	case err != nil:
		return nil, err
	}
	return &webConn{Conn: ws}, nil
}

// webConn is a WebSocket as a stream of bytes: MQTT packets may span frames and
// share them (MQTT 5, 6.0).
type webConn struct {
	*websocket.Conn
	frame io.Reader // the rest of the frame being read, nil between frames
}

func (c *webConn) Read(p []byte) (int, error) {
	for {
		if c.frame == nil {
			kind, r, err := c.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errors.New("the server sent a WebSocket frame that is not binary")
			}
			c.frame = r
		}
		n, err := c.frame.Read(p)
		if err == io.EOF {
			c.frame, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (c *webConn) Write(p []byte) (int, error) {
	if err := c.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetDeadline sets both deadlines. To miss one ends a WebSocket for good.
func (c *webConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
