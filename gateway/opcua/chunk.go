package opcua

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uacp"
	"github.com/gopcua/opcua/uapolicy"
	"github.com/gopcua/opcua/uasc"
)

const (
	channelHead  = frameHead + 4 // with the channel's id
	messageHead  = channelHead + 4
	sequenceHead = 8
	// Sequence numbers begin again after sequenceLast or later, with less than
	// sequenceFirst (Part 6 §6.7.2.4).
	sequenceLast, sequenceFirst = math.MaxUint32 - 1024, 1024
	// tokenLifetime is how long we ask the channel's keys to last.
	tokenLifetime = time.Hour
	// tokensKept are the keys that a server may use: the newest, and those before.
	tokensKept = 2
)

// token is a set of keys that both sides know by a number.
type token struct {
	id   uint32
	seal seal
}

// open agrees on keys with the server, and returns how long they last.
func (c *channel) open(ctx context.Context, kind ua.SecurityTokenRequestType) (time.Duration, error) {
	req := &ua.OpenSecureChannelRequest{
		RequestHeader: c.header(nil, requestTimeout), RequestType: kind, SecurityMode: max(c.by.mode, ua.MessageSecurityModeNone),
		RequestedLifetime: uint32(tokenLifetime.Milliseconds()),
	}
	asym, err := c.by.opening()
	if err != nil {
		return 0, err
	}
	if asym.algo != nil {
		if req.ClientNonce, err = asym.algo.MakeNonce(); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	c.nonce = req.ClientNonce
	c.mu.Unlock()
	body, err := c.ask(ctx, "OPN", req, requestTimeout)
	if err != nil {
		return 0, err
	}
	opened, err := decodeOpening(body) // again: the listener has, before it took what followed
	if err != nil {
		return 0, err
	}
	life := time.Duration(opened.SecurityToken.RevisedLifetime) * time.Millisecond
	return max(min(life, tokenLifetime), time.Second), nil
}

// renewAt is the part of the keys' life after which others are agreed on (Part 4
// §5.5.2).
const renewAt = 0.75

func (c *channel) renew(life time.Duration) {
	for {
		t := time.NewTimer(time.Duration(float64(life) * renewAt))
		select {
		case <-t.C:
		case <-c.closed:
			t.Stop()
			return
		}
		var err error
		if life, err = c.open(context.Background(), ua.SecurityTokenRequestTypeRenew); err != nil {
			c.end(fmt.Errorf("the channel's keys cannot be renewed: %w", err))
			return
		}
	}
}

// opening is how the messages that agree on keys are protected: always whole, unless
// the channel is not at all.
func (s secured) opening() (seal, error) {
	if s.mode <= ua.MessageSecurityModeNone {
		return seal{}, nil
	}
	algo, err := asymmetric(s.policyURI, s.own.Key, s.server)
	return seal{algo: algo, encrypt: true}, err
}

// head is what a chunk begins with, still without its size, and how it is protected.
func (c *channel) head(kind string) ([]byte, seal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head := append([]byte(kind), 0, 0, 0, 0, 0)
	head = binary.LittleEndian.AppendUint32(head, c.id)
	if kind == uasc.MessageTypeOpenSecureChannel {
		h := &uasc.AsymmetricSecurityHeader{SecurityPolicyURI: c.by.policy()}
		if c.by.mode > ua.MessageSecurityModeNone {
			h.SenderCertificate, h.ReceiverCertificateThumbprint = c.by.own.Certificate.Raw, thumbprint(c.by.server)
		}
		b, err := h.Encode()
		if err != nil {
			return nil, seal{}, err
		}
		asym, err := c.by.opening()
		return append(head, b...), asym, err
	}
	if len(c.tokens) == 0 {
		return nil, seal{}, errors.New("the channel is not open")
	}
	newest := c.tokens[len(c.tokens)-1]
	return binary.LittleEndian.AppendUint32(head, newest.id), newest.seal, nil
}

// headOf is a head for one chunk, the last or one before.
func headOf(head []byte, last bool) []byte {
	head = bytes.Clone(head)
	head[3] = uacp.ChunkTypeIntermediate
	if last {
		head[3] = uacp.ChunkTypeFinal
	}
	return head
}

func sequenceHeader(sequence, request uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, sequence), request)
}

// listen takes what comes until the connection ends.
func (c *channel) listen() {
	for {
		b, err := c.wire.frame()
		if err == nil {
			err = c.chunk(b)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// chunk takes one. An error ends the connection.
func (c *channel) chunk(b []byte) error {
	if len(b) < messageHead {
		return errors.New("the server sends a chunk that is cut short")
	}
	kind := string(b[:3])
	var plain []byte
	var err error
	switch kind {
	case uasc.MessageTypeOpenSecureChannel:
		plain, err = c.opened(b)
	case uasc.MessageTypeMessage:
		plain, err = c.message(b)
	case uasc.MessageTypeCloseSecureChannel:
		return errors.New("the server closes the channel")
	default:
		return fmt.Errorf("the server sends a message of the unknown type %q", kind)
	}
	if err == nil && len(plain) < sequenceHead {
		err = errors.New("the server sends a chunk that is cut short")
	}
	if err != nil {
		return err
	}
	sequence, n := binary.LittleEndian.Uint32(plain), binary.LittleEndian.Uint32(plain[4:])
	again := c.heard >= sequenceLast && sequence < sequenceFirst
	if c.by.mode > ua.MessageSecurityModeNone && c.heard != 0 && sequence != c.heard+1 && !again {
		return fmt.Errorf("chunk %d follows on chunk %d: something was taken out or put in on the way", sequence, c.heard)
	}
	c.heard = sequence
	return c.part(kind, b[3], n, plain[sequenceHead:])
}

// message returns what a chunk protects by the keys of its token.
func (c *channel) message(b []byte) ([]byte, error) {
	n := binary.LittleEndian.Uint32(b[channelHead:])
	c.mu.Lock()
	var by *seal
	for i := range c.tokens {
		if c.tokens[i].id == n {
			by = &c.tokens[i].seal
		}
	}
	c.mu.Unlock()
	if by == nil {
		return nil, fmt.Errorf("the server uses the keys %d, on which nobody agreed", n)
	}
	return by.open(b, messageHead)
}

// opened returns what a chunk protects by the certificates. It has to be by those that
// were asked for.
func (c *channel) opened(b []byte) ([]byte, error) {
	s := scan{b: b[channelHead:]}
	policy, certificate := s.take(s.length()), s.take(s.length())
	s.bytes() // thumbprint of our certificate, without whose key nothing is read
	if s.err != nil {
		return nil, fmt.Errorf("the server's opening of the channel cannot be read: %w", s.err)
	}
	if string(policy) != c.by.policy() || c.by.mode > ua.MessageSecurityModeNone && !bytes.Equal(leaf(certificate), leaf(c.by.server)) {
		return nil, errors.New("the server opens the channel with another security policy or certificate than it was asked to")
	}
	asym, err := c.by.opening()
	if err != nil {
		return nil, err
	}
	return asym.open(b, len(b)-len(s.b))
}

// part takes a part of an answer, and hands the answer over with its last.
func (c *channel) part(kind string, chunk byte, n uint32, part []byte) error {
	c.mu.Lock()
	q, nonce := c.asked[n], c.nonce
	c.mu.Unlock()
	if q == nil {
		return nil // nobody waits for it any more
	}
	q.begun = append(q.begun, part...)
	answer := reply{body: q.begun}
	switch {
	case len(q.begun) > messageMost:
		answer = reply{err: fmt.Errorf("the answer has more than %d bytes", messageMost)}
	case chunk == uacp.ChunkTypeIntermediate:
		return nil
	case chunk == uacp.ChunkTypeAbort:
		answer = reply{err: refusal(part)}
	case kind == uasc.MessageTypeOpenSecureChannel:
		if err := c.agree(q.begun, nonce); err != nil {
			return err
		}
	}
	q.answer <- answer
	c.forget(n)
	return nil
}

// forget takes no second answer to a request.
func (c *channel) forget(n uint32) {
	c.mu.Lock()
	delete(c.asked, n)
	c.mu.Unlock()
}

// agree takes the server's keys over, before anything that it protects by them.
func (c *channel) agree(body, nonce []byte) error {
	opened, err := decodeOpening(body)
	if err != nil {
		return err
	}
	t := token{id: opened.SecurityToken.TokenID}
	if c.by.mode > ua.MessageSecurityModeNone {
		if len(opened.ServerNonce) < len(nonce) {
			return errors.New("the server makes keys of less chance than the security policy demands")
		}
		algo, err := uapolicy.Symmetric(c.by.policyURI, nonce, opened.ServerNonce)
		if err != nil {
			return fmt.Errorf("cannot agree on keys with the server: %w", err)
		}
		t.seal = seal{algo: algo, encrypt: c.by.mode == ua.MessageSecurityModeSignAndEncrypt}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = opened.SecurityToken.ChannelID
	c.tokens = append(c.tokens[max(len(c.tokens)-tokensKept+1, 0):], t)
	return nil
}

func decodeOpening(body []byte) (*ua.OpenSecureChannelResponse, error) {
	resp, err := decode(body)
	if err != nil {
		return nil, err
	}
	if status := resp.Header().ServiceResult; severity(status) == bad {
		return nil, status
	}
	opened, ok := resp.(*ua.OpenSecureChannelResponse)
	if !ok {
		return nil, wrongAnswer(&ua.OpenSecureChannelRequest{}, resp)
	}
	return opened, nil
}
