package opcua

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/gopcua/opcua/ua"

	"tidemark/internal/pki"
	"tidemark/reading"
)

const (
	connectTimeout = 10 * time.Second
	requestTimeout = 15 * time.Second
	// publishTimeout is how long a PublishRequest may wait at the server. Silence is
	// for the watch to notice, which knows how long each subscription may be silent.
	publishTimeout = time.Hour
	// leniency is how much longer than the server we wait for it to give up.
	leniency      = 250 * time.Millisecond
	hangUpTimeout = time.Second
	// lastWords is how long after the end of a connection its reason may come.
	lastWords = 100 * time.Millisecond
)

// channel is one TCP connection with a secure channel on it (OPC UA Part 6 §6.7). It is
// made by dial and must be closed; its other methods may be used from several
// goroutines.
//
// One goroutine takes what comes and one renews the keys. An answer is decoded by whoever
// asked.
type channel struct {
	by   secured
	wire wire

	writing  sync.Mutex // the order of sequence numbers is that of the wire
	sequence uint32     // of the last chunk sent; under writing

	mu      sync.Mutex
	id      uint32 // of the channel, as the server numbers it
	tokens  []token
	request uint32 // number of the last one
	asked   map[uint32]*question
	nonce   []byte // of ours, in the opening that is under way
	why     error  // what ended it

	heard uint32 // sequence number of the last chunk that came; 0: none. The listener's

	closing sync.Once
	closed  chan struct{} // closed when the channel is no longer of use
	work    sync.WaitGroup
}

// question is a request that waits for its answer.
type question struct {
	answer chan reply // of one
	begun  []byte     // what came of it so far; the listener's
}

// reply is what came for a request: the encoded answer, or why there is none.
type reply struct {
	body []byte
	err  error
}

// secured is how a channel is protected. Without mode it is not at all.
type secured struct {
	policyURI string
	mode      ua.MessageSecurityMode
	server    []byte // the server's certificate, checked by us
	own       *pki.Identity
	now       func() reading.Instant
}

func (s secured) policy() string { return cmp.Or(s.policyURI, ua.SecurityPolicyURINone) }

// dial connects to address, host and port, and opens a secure channel there for
// the endpoint called url.
func dial(ctx context.Context, address, url string, by secured) (*channel, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &channel{
		by: by, wire: wire{conn: conn, in: bufio.NewReaderSize(conn, chunkMost)},
		asked: map[uint32]*question{}, closed: make(chan struct{}),
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := c.wire.greet(url); err != nil {
		conn.Close()
		return nil, inContext(ctx, err)
	}
	c.work.Go(c.listen)
	life, err := c.open(ctx, ua.SecurityTokenRequestTypeIssue)
	if err != nil {
		c.abort(err)
		return nil, inContext(ctx, c.cause())
	}
	c.work.Go(func() { c.renew(life) })
	return c, nil
}

// inContext prefers the context's end to what it brought about.
func inContext(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("no answer within %v", connectTimeout)
	}
	return err
}

// end makes the channel useless at once; whoever waits for an answer gets an
// error.
func (c *channel) end(err error) {
	c.closing.Do(func() {
		c.mu.Lock()
		c.why = err
		c.mu.Unlock()
		close(c.closed)
		c.wire.conn.Close()
	})
}

// abort ends the channel and waits for its goroutines.
func (c *channel) abort(err error) {
	c.end(err)
	c.work.Wait()
}

// close says goodbye and ends the channel.
func (c *channel) close() {
	_ = c.write("CLO", c.number(), &ua.CloseSecureChannelRequest{RequestHeader: c.header(nil, hangUpTimeout)}, hangUpTimeout)
	c.abort(net.ErrClosed)
}

// cause returns what ended the channel.
func (c *channel) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil || errors.Is(c.why, io.EOF) || errors.Is(c.why, io.ErrUnexpectedEOF) {
		return errors.New("the server closed the connection")
	}
	return c.why
}

// send asks with the session's token, nil for none, and waits for the answer.
func (c *channel) send(ctx context.Context, token *ua.NodeID, req ua.Request, timeout time.Duration) (ua.Response, error) {
	req.SetHeader(c.header(token, timeout))
	body, err := c.ask(ctx, "MSG", req, timeout)
	if err != nil {
		return nil, err
	}
	resp, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", service(req), err)
	}
	if status := resp.Header().ServiceResult; severity(status) == bad {
		return nil, fmt.Errorf("%s: %w", service(req), status)
	}
	return resp, nil
}

func (c *channel) header(token *ua.NodeID, timeout time.Duration) *ua.RequestHeader {
	if token == nil {
		token = ua.NewTwoByteNodeID(0)
	}
	return &ua.RequestHeader{
		AuthenticationToken: token, Timestamp: time.Unix(0, c.by.now().WallNS).UTC(), TimeoutHint: uint32(timeout.Milliseconds()),
		AdditionalHeader: ua.NewExtensionObject(nil),
	}
}

// ask sends a request and waits for the encoded answer.
func (c *channel) ask(ctx context.Context, kind string, req ua.Request, timeout time.Duration) ([]byte, error) {
	q, n := &question{answer: make(chan reply, 1)}, c.number()
	req.Header().RequestHandle = n
	c.mu.Lock()
	c.asked[n] = q
	c.mu.Unlock()
	defer c.forget(n)
	if err := c.write(kind, n, req, requestTimeout); err != nil {
		return nil, err
	}
	late := time.NewTimer(timeout + leniency)
	defer late.Stop()
	select {
	case a := <-q.answer:
		if a.err != nil {
			return nil, fmt.Errorf("%s: %w", service(req), a.err)
		}
		return a.body, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, fmt.Errorf("%s: %w", service(req), ua.StatusBadTimeout)
	case <-c.closed:
		return nil, &lost{c.cause()}
	}
}

// number returns that of the next request.
func (c *channel) number() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request = max(c.request+1, 1)
	return c.request
}

// write sends a request, in as many chunks as the server wants. A connection that has
// not taken it after timeout, or what goes before it, is ended.
func (c *channel) write(kind string, n uint32, req ua.Request, timeout time.Duration) error {
	body, err := encode(req)
	if err != nil {
		return fmt.Errorf("%s: %w", service(req), err)
	}
	late := time.AfterFunc(timeout, func() { c.end(errors.New("the server takes nothing more")) })
	defer late.Stop()
	c.writing.Lock()
	defer c.writing.Unlock()
	head, seal, err := c.head(kind)
	if err != nil {
		return err
	}
	room := seal.room(c.wire.chunk, len(head))
	if len(body) > c.wire.whole || (len(body)-1)/room >= c.wire.chunks {
		return fmt.Errorf("%s: %w", service(req), ua.StatusBadRequestTooLarge)
	}
	for first := true; first || len(body) > 0; first = false {
		part := body[:min(room, len(body))]
		body = body[len(part):]
		chunk, err := seal.close(headOf(head, len(body) == 0), c.numbered(n, part))
		if err != nil {
			return err
		}
		if _, err := c.wire.conn.Write(chunk); err != nil {
			select { // the server's own words, if it said any, say more
			case <-c.closed:
			case <-time.After(lastWords):
			}
			c.end(err)
			return &lost{c.cause()}
		}
	}
	return nil
}

// numbered puts a sequence header before a part of a request.
func (c *channel) numbered(n uint32, part []byte) []byte {
	if c.sequence++; c.sequence > sequenceLast {
		c.sequence = 1
	}
	return append(sequenceHeader(c.sequence, n), part...)
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
