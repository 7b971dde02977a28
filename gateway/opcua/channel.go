package opcua

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uacp"
	"github.com/gopcua/opcua/uasc"

	"tidemark/internal/pki"
)

const (
	connectTimeout = 10 * time.Second
	requestTimeout = 15 * time.Second
	// publishTimeout is how long a PublishRequest may wait at the server. Silence is
	// for the watch to notice, which knows how long each subscription may be silent.
	publishTimeout = time.Hour
	// tokenLifetime is how long we ask the channel's keys to last.
	tokenLifetime = time.Hour
	hangUpTimeout = time.Second
	// lastWords is how long after the end of a connection its reason may come.
	lastWords = 100 * time.Millisecond
)

// channel is one TCP connection with a secure channel on it. It is made by dial
// and must be closed; its other methods may be used from several goroutines.
type channel struct {
	sc   *uasc.SecureChannel
	conn *uacp.Conn

	closing sync.Once
	closed  chan struct{} // closed when the channel is no longer of use
	watched chan struct{} // closed when watch has ended
	mu      sync.Mutex
	why     error // what ended it; under mu
}

// secured is how a channel is protected. The zero value is not at all.
type secured struct {
	policyURI string
	mode      ua.MessageSecurityMode
	server    []byte // the server's certificate, checked by us
	own       *pki.Identity
	user      *pki.Identity // that logs in, if it does with a certificate
}

// dial connects to address, host and port, and opens a secure channel there for
// the endpoint called url.
func dial(ctx context.Context, address, url string, by secured) (*channel, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	tcp, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn, err := uacp.NewConn(tcp.(*net.TCPConn), nil)
	if err != nil {
		tcp.Close()
		return nil, err
	}
	// Neither Handshake nor Open hears of a context that ends while it reads.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.Handshake(ctx, url); err != nil {
		conn.Close()
		return nil, inContext(ctx, err)
	}
	cfg := by.config()
	errs := make(chan error, 1)
	sc, err := uasc.NewSecureChannel(url, conn, cfg, errs)
	if err != nil {
		conn.Close()
		return nil, err
	}
	c := &channel{sc: sc, conn: conn, closed: make(chan struct{}), watched: make(chan struct{})}
	go c.watch(errs)
	if err := sc.Open(ctx); err != nil {
		select { // the server's own words, if it said any, say more
		case <-c.watched:
		case <-time.After(lastWords):
		}
		c.abort(err)
		return nil, inContext(ctx, c.cause())
	}
	// The library takes policy and certificate from the answer (uasc.readChunk).
	if cfg.SecurityPolicyURI != by.policy() || !bytes.Equal(cfg.RemoteCertificate, by.server) {
		err := errors.New("the server opened the channel with another security policy or certificate than it was asked to")
		c.abort(err)
		return nil, err
	}
	return c, nil
}

func (s secured) policy() string {
	if s.policyURI == "" {
		return ua.SecurityPolicyURINone
	}
	return s.policyURI
}

func (s secured) config() *uasc.Config {
	c := &uasc.Config{
		SecurityPolicyURI: s.policy(), SecurityMode: max(s.mode, ua.MessageSecurityModeNone),
		Lifetime: uint32(tokenLifetime.Milliseconds()), RequestTimeout: requestTimeout,
	}
	if s.own != nil {
		c.LocalKey = s.own.Key // encrypts passwords even where the channel is open
	}
	if s.user != nil {
		c.UserKey = s.user.Key
	}
	if s.mode > ua.MessageSecurityModeNone {
		c.Certificate, c.RemoteCertificate, c.Thumbprint = s.own.Certificate.Raw, s.server, thumbprint(s.server)
	}
	return c
}

// inContext prefers the context's end to what it brought about.
func inContext(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("no answer within %v", connectTimeout)
	}
	return err
}

// watch ends the channel at the first error of the connection itself. The library
// would go on reading a dead socket without a pause (gopcua issue 910).
func (c *channel) watch(errs <-chan error) {
	defer close(c.watched)
	for {
		select {
		case err := <-errs:
			if fatal(err) {
				c.end(err)
				return
			}
		case <-c.closed:
			return
		}
	}
}

// fatal tells errors of the connection from those of one message, which whoever
// waits for it is told of as well. The library gives both to one channel, and
// knows only the texts of the former.
func fatal(err error) bool {
	var remote *uacp.Error
	switch {
	case err == io.EOF, errors.As(err, &remote),
		errors.Is(err, ua.StatusBadSecurityChecksFailed):
		return true
	}
	return strings.Contains(err.Error(), "sechan: ")
}

// end makes the channel useless at once; whoever waits for an answer gets an
// error.
func (c *channel) end(err error) {
	c.closing.Do(func() {
		c.mu.Lock()
		c.why = err
		c.mu.Unlock()
		close(c.closed)
		c.conn.Close()
		_ = c.sc.Close() // ends its goroutines; what it says of the connection is known
	})
}

// abort ends the channel and waits for its goroutine.
func (c *channel) abort(err error) {
	c.end(err)
	<-c.watched
}

// close says goodbye and ends the channel.
func (c *channel) close() {
	c.closing.Do(func() {
		close(c.closed)
		late := time.AfterFunc(hangUpTimeout, func() { c.conn.Close() })
		_ = c.sc.Close()
		late.Stop()
		c.conn.Close()
	})
	<-c.watched
}

// cause returns what ended the channel.
func (c *channel) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil || c.why == io.EOF {
		return errors.New("the server closed the connection")
	}
	return c.why
}

// send asks with the session's token, nil for none, and waits for the answer.
func (c *channel) send(ctx context.Context, token *ua.NodeID, req ua.Request, timeout time.Duration) (ua.Response, error) {
	var resp ua.Response
	err := c.sc.SendRequestWithTimeout(ctx, req, token, timeout, func(r ua.Response) error {
		resp = r
		return nil
	})
	select {
	case <-c.closed:
		if err != nil {
			return nil, &lost{c.cause()}
		}
	default:
	}
	var status ua.StatusCode
	var network *net.OpError
	switch {
	case err == nil:
		return resp, nil
	case errors.As(err, &status) && severity(status) < bad && resp != nil:
		return resp, nil // the library takes whatever is not plain Good for an error
	case errors.As(err, &status):
		return nil, fmt.Errorf("%s: %w", service(req), status)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil, err
	case errors.Is(err, io.EOF), errors.As(err, &network):
		c.end(err)
		return nil, &lost{c.cause()}
	}
	return nil, fmt.Errorf("%s: %w", service(req), err)
}

// lost is the end of the connection under a request.
type lost struct{ cause error }

func (l *lost) Error() string { return "the connection is lost: " + l.cause.Error() }
func (l *lost) Unwrap() error { return l.cause }

// service names what a request asks for, as the specification does.
func service(req ua.Request) string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", req), "*ua."), "Request")
}

func wrongAnswer(req ua.Request, resp ua.Response) error {
	return fmt.Errorf("the server answers %s with a %T", service(req), resp)
}

// The severities of a status code (OPC UA Part 4 §7.39); the reserved one is bad.
const (
	good uint32 = iota
	uncertain
	bad
)

func severity(s ua.StatusCode) uint32 { return min(uint32(s)>>30, bad) }
