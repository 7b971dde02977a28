package uplink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
)

// defaultPorts are the ports of the schemes that can be dialled.
var defaultPorts = map[string]string{"mqtt": "1883", "mqtts": "8883", "ws": "80", "wss": "443"}

// encrypted reports whether a scheme uses TLS.
func encrypted(scheme string) bool { return scheme == "mqtts" || scheme == "wss" }

// dial opens a connection to u. tlsConf is used with mqtts and wss.
func dial(ctx context.Context, u *url.URL, tlsConf *tls.Config) (net.Conn, error) {
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), defaultPorts[u.Scheme])
	}
	switch u.Scheme {
	case "mqtt":
		return (&net.Dialer{}).DialContext(ctx, "tcp", host)
	case "mqtts":
		return (&tls.Dialer{Config: tlsConf}).DialContext(ctx, "tcp", host)
	}
	d := websocket.Dialer{TLSClientConfig: tlsConf, Subprotocols: []string{"mqtt"}}
	ws, resp, err := d.DialContext(ctx, u.String(), nil)
	switch {
	case err != nil && resp != nil:
		return nil, fmt.Errorf("%w: the server answered %s", err, resp.Status)
	case err != nil:
		return nil, err
	}
	return &wsConn{Conn: ws}, nil
}

// TLSFromPEM returns a TLS configuration from PEM data. No ca trusts the system's
// authorities; no cert shows none.
func TLSFromPEM(ca, cert, key []byte) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("the CA file holds no certificate in PEM form")
		}
	}
	if len(cert) > 0 || len(key) > 0 {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cannot use the client certificate with its key: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// wsConn is a WebSocket as a stream of bytes; MQTT packets and frames need not
// fall together (MQTT 5, 6.0).
type wsConn struct {
	*websocket.Conn
	frame io.Reader // the rest of the frame being read, nil between frames
}

func (c *wsConn) Read(p []byte) (int, error) {
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
			c.frame = nil
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (c *wsConn) Write(p []byte) (int, error) {
	if err := c.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *wsConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
