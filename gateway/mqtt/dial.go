package mqtt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/gorilla/websocket"
)

// dialTimeout bounds an attempt up to the broker's answer.
const dialTimeout = 10 * time.Second

// dial connects to the broker at u: TCP, TLS or WebSocket by the scheme.
func dial(ctx context.Context, u *url.URL, t TLS) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var cfg *tls.Config
	if u.Scheme == "mqtts" || u.Scheme == "wss" {
		var err error
		if cfg, err = t.load(u.Hostname()); err != nil {
			return nil, err
		}
	}
	switch u.Scheme {
	case "mqtts":
		return (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", u.Host)
	case "ws", "wss":
		d := websocket.Dialer{TLSClientConfig: cfg, Subprotocols: []string{"mqtt"}, ReadBufferSize: readBuffer}
		ws, _, err := d.DialContext(ctx, u.String(), nil)
		if err != nil {
			return nil, fmt.Errorf("websocket: %w", err)
		}
		return &webConn{Conn: ws}, nil
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", u.Host)
}

// load reads the files of t.
func (t TLS) load(host string) (*tls.Config, error) {
	cfg := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca: no certificate in %s", t.CA)
		}
	}
	if t.Cert == "" {
		return cfg, nil
	}
	cert, err := os.ReadFile(t.Cert)
	if err != nil {
		return nil, fmt.Errorf("tls.cert: %w", err)
	}
	key, err := t.Key()
	if err != nil {
		return nil, fmt.Errorf("tls.key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls.cert and tls.key: %w", err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg, nil
}

// webConn is a WebSocket as a stream of bytes (MQTT 5 §6): packets may span
// frames and share them.
type webConn struct {
	*websocket.Conn
	frame io.Reader // the rest of the current frame
}

func (c *webConn) Read(p []byte) (int, error) {
	for {
		if c.frame == nil {
			kind, frame, err := c.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, fmt.Errorf("websocket: text where MQTT sends binary frames")
			}
			c.frame = frame
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
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}
