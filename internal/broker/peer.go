package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"
)

// ports are those of the schemes that can be dialled.
var ports = map[string]string{"mqtt": "1883", "mqtts": "8883", "ws": "80", "wss": "443"}

// Peer is a broker as seen from here.
type Peer struct {
	url    url.URL // with a port
	tls    func() (*tls.Config, error)
	wallNS func() int64

	certificateEnd atomic.Int64 // Unix nanoseconds; 0: none was shown
}

// At returns the broker at u, whose scheme is mqtt, mqtts, ws or wss; without a
// port it is 1883, 8883, 80 or 443. tlsConf is asked at every connection with
// mqtts or wss; nil trusts the host's authorities and shows no certificate. wallNS
// gives the time by which certificates are judged, in Unix nanoseconds. An error
// names the key and the remedy.
func At(u *url.URL, tlsConf func() (*tls.Config, error), wallNS func() int64) (*Peer, error) {
	if u == nil {
		return nil, errors.New("url: there is none; write one such as mqtts://broker.example:8883")
	}
	p := &Peer{url: *u, tls: tlsConf, wallNS: wallNS}
	port, ok := ports[u.Scheme]
	switch {
	case !ok:
		return nil, fmt.Errorf("url: scheme %q is none of mqtt, mqtts, ws and wss", u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("url: %q names no host", u.Redacted())
	case u.User != nil:
		return nil, errors.New("url: user and password belong under login, not into the URL")
	case u.Port() == "":
		p.url.Host = net.JoinHostPort(u.Hostname(), port)
	}
	return p, nil
}

// Addr returns the broker's host and port.
func (p *Peer) Addr() string { return p.url.Host }

// URL returns the broker's URL with a port.
func (p *Peer) URL() *url.URL { u := p.url; return &u }

// CertificateEnd returns when the broker's certificate or the one that is shown to it
// ends, whichever is first, as the last connection had them; false without any.
func (p *Peer) CertificateEnd() (unixNS int64, ok bool) {
	unixNS = p.certificateEnd.Load()
	return unixNS, unixNS != 0
}

// Dial connects. Its errors are causes; Unreachable makes a sentence of them.
func (p *Peer) Dial(ctx context.Context) (net.Conn, error) {
	conf, err := p.conf()
	if err != nil {
		return nil, err
	}
	switch p.url.Scheme {
	case "mqtt":
		return (&net.Dialer{}).DialContext(ctx, "tcp", p.url.Host)
	case "mqtts":
		return (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", p.url.Host)
	}
	return dialWeb(ctx, p.url.String(), conf)
}

// conf returns what the connection is secured with, nil for a scheme without TLS.
func (p *Peer) conf() (*tls.Config, error) {
	if p.url.Scheme == "mqtt" || p.url.Scheme == "ws" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.tls != nil {
		own, err := p.tls()
		if err != nil {
			return nil, err
		}
		conf = own.Clone()
	}
	conf.Time = func() time.Time { return time.Unix(0, p.wallNS()) }
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		end := s.PeerCertificates[0].NotAfter // a client's peer always has one
		for _, own := range conf.Certificates {
			if own.Leaf != nil && own.Leaf.NotAfter.Before(end) {
				end = own.Leaf.NotAfter
			}
		}
		p.certificateEnd.Store(end.UnixNano())
		return nil
	}
	return conf, nil
}
