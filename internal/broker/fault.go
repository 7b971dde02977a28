package broker

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

// Unreachable says that no connection came about because of err. If the gateway's
// clock is to blame the error is a *ClockError.
func (p *Peer) Unreachable(err error) error {
	var cert x509.CertificateInvalidError
	if now := p.wallNS(); errors.As(err, &cert) && cert.Reason == x509.Expired && now < cert.Cert.NotBefore.UnixNano() {
		return &ClockError{NowNS: now, ValidFrom: cert.Cert.NotBefore}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the connection to %s cannot be made: no answer in time; is that a broker that speaks MQTT 5?", p.Addr())
	}
	hint := ""
	if network := new(net.OpError); errors.As(err, &network) && network.Op == "dial" {
		hint = "; is the broker there?"
	}
	return fmt.Errorf("the connection to %s cannot be made: %w%s", p.Addr(), bare(err), hint)
}

// Broke says that a connection that stood ended because of err.
func (p *Peer) Broke(err error) error {
	return fmt.Errorf("the connection to %s broke: %w", p.Addr(), bare(err))
}

// bare takes the addresses off a network error: the sentence has the one that
// matters.
func bare(err error) error {
	if network, ok := err.(*net.OpError); ok {
		return network.Err
	}
	return err
}

// ClockError says that the broker's certificate is not valid yet, which says more
// about the gateway's clock than about the broker. A machine without a battery
// clock starts in 1970.
type ClockError struct {
	NowNS     int64 // by the gateway's clock, Unix nanoseconds
	ValidFrom time.Time
}

// Error implements error.
func (e *ClockError) Error() string {
	return fmt.Sprintf("the gateway's clock says %s, before the broker's certificate begins (%s): the connection waits for the time",
		time.Unix(0, e.NowNS).UTC().Format(time.RFC3339), e.ValidFrom.UTC().Format(time.RFC3339))
}

// Answer is a reason code with which a broker refuses a connection or ends one.
type Answer struct {
	Code Code
	did  string // what the broker did, a sentence
	said string // its own words
}

// Refused says that the broker answered CONNECT with c; said are its own words, if
// any.
func (p *Peer) Refused(c Code, said string) *Answer {
	return &Answer{c, "the broker at " + p.Addr() + " refuses the connection", said}
}

// Ended says that the broker sent DISCONNECT with c; said are its own words, if
// any.
func (p *Peer) Ended(c Code, said string) *Answer {
	return &Answer{c, "the broker at " + p.Addr() + " ended the connection", said}
}

// Words are a broker's own words in an answer, from its Reason String and the
// Server Reference (MQTT 5, 4.11) by which it names another broker.
func Words(reason, reference string) string {
	switch {
	case reference == "":
		return reason
	case reason == "":
		return "it names " + reference
	}
	return reason + ", and it names " + reference
}

// Error implements error.
func (a *Answer) Error() string {
	s := a.did + ": " + a.Code.String()
	if a.said != "" {
		s += ": " + a.said
	}
	if r := a.Code.remedy(); r != "" {
		s += "; " + r
	}
	return s
}

// HungUp reports whether err says that the other end closed the connection without
// a word, as some brokers and proxies do when they cannot take a packet.
func HungUp(err error) bool {
	var ws *websocket.CloseError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.As(err, &ws)
}
