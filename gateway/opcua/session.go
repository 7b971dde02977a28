package opcua

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/gopcua/opcua/ua"
)

// sessionTimeout is how long we ask the server to keep a session that it hears
// nothing of. A subscription outlives its session, so this need only bridge a
// short outage; a longer one would leave a crashed gateway's sessions in the way
// of its own next start (BadTooManySessions).
const sessionTimeout = 2 * time.Minute

// access is how a server is reached: found by discovery and good until an attempt
// with it fails.
type access struct {
	endpoint *ua.EndpointDescription
	url      string // of the endpoint, at the configured host
	secured  secured
	policy   *ua.UserTokenPolicy
	login    credentials

	application string // URI of ours
	alarms      []string
}

// ticket is what a session is taken up with again on another channel.
type ticket struct {
	token *ua.NodeID // secret
	nonce []byte     // the server's last
}

// session is an activated session on a channel. Its call may be used from several
// goroutines.
type session struct {
	*access
	ch      *channel
	ticket  *ticket
	timeout time.Duration // after which the server gives a silent session up
}

// enter opens a channel and activates a session on it: the old one if there is a
// ticket and the server still knows it, else a new one, which the second result
// tells.
func enter(ctx context.Context, u *url.URL, a *access, old *session, name string) (s *session, resumed bool, err error) {
	ch, err := dial(ctx, address(u), a.url, a.secured)
	if err != nil {
		return nil, false, err
	}
	if old != nil {
		s = &session{access: a, ch: ch, ticket: old.ticket, timeout: old.timeout}
		if err = s.activate(ctx); err == nil {
			return s, true, nil
		}
		if !isStatus(err) { // nothing was decided: the session may be good yet
			ch.abort(err)
			return nil, false, err
		}
	}
	s = &session{access: a, ch: ch}
	if err = s.create(ctx, name); err == nil {
		err = s.activate(ctx)
	}
	if err != nil {
		ch.close()
		return nil, false, err
	}
	return s, false, nil
}

// isStatus reports whether err is the server's own answer.
func isStatus(err error) bool {
	var status ua.StatusCode
	var gone *lost
	return errors.As(err, &status) && !errors.As(err, &gone) && status != ua.StatusBadTimeout
}

// create makes a session (OPC UA Part 4 §5.6.2). The library's own CreateSession
// goes on without a session when the server's signature is wrong.
func (s *session) create(ctx context.Context, name string) error {
	nonce := make([]byte, 32)
	rand.Read(nonce)
	req := &ua.CreateSessionRequest{
		ClientDescription: &ua.ApplicationDescription{
			ProductURI: productURI, ApplicationURI: s.application, ApplicationName: ua.NewLocalizedText(name), ApplicationType: ua.ApplicationTypeClient,
		},
		EndpointURL: s.url, SessionName: name, ClientNonce: nonce,
		RequestedSessionTimeout: float64(sessionTimeout.Milliseconds()),
	}
	if s.secured.mode > ua.MessageSecurityModeNone {
		// It must be the one in the certificate (Part 4 §5.6.2).
		req.ClientDescription.ApplicationURI = s.secured.own.URI()
		req.ClientCertificate = s.secured.own.Certificate.Raw
	}
	resp, err := ask[*ua.CreateSessionResponse](ctx, s, req)
	if err != nil {
		return err
	}
	if s.secured.mode > ua.MessageSecurityModeNone {
		if !bytes.Equal(leaf(resp.ServerCertificate), leaf(s.secured.server)) {
			return errors.New("the server's session shows another certificate than its channel")
		}
		if resp.ServerSignature == nil {
			return errors.New("the server does not prove that its certificate is its own: no signature")
		}
		if err := s.secured.proven(resp.ServerCertificate, nonce, resp.ServerSignature.Signature); err != nil {
			return fmt.Errorf("the server does not prove that its certificate is its own: %w", err)
		}
	}
	s.ticket = &ticket{token: resp.AuthenticationToken, nonce: resp.ServerNonce}
	s.timeout = millis(resp.RevisedSessionTimeout)
	return nil
}

// activate binds the session to its channel and logs in (Part 4 §5.6.3).
func (s *session) activate(ctx context.Context) error {
	signature, err := sign(s.secured.policy(), s.secured.own, s.secured.server, s.ticket.nonce)
	if err != nil {
		return err
	}
	// The password is encrypted for the certificate of the endpoint, which was
	// checked, and not for what CreateSession answered.
	token, tokenSignature, err := s.login.token(s.secured, s.policy, s.endpoint.ServerCertificate, s.ticket.nonce)
	if err != nil {
		return err
	}
	resp, err := ask[*ua.ActivateSessionResponse](ctx, s, &ua.ActivateSessionRequest{
		ClientSignature:   signature,
		UserIdentityToken: ua.NewExtensionObject(token), UserTokenSignature: tokenSignature,
	})
	if err != nil {
		return err
	}
	s.ticket = &ticket{token: s.ticket.token, nonce: resp.ServerNonce}
	return nil
}

// call implements caller.
func (s *session) call(ctx context.Context, req ua.Request) (ua.Response, error) {
	return s.send(ctx, req, requestTimeout)
}

func (s *session) send(ctx context.Context, req ua.Request, timeout time.Duration) (ua.Response, error) {
	var token *ua.NodeID
	if s.ticket != nil {
		token = s.ticket.token
	}
	return s.ch.send(ctx, token, req, timeout)
}

// leave ends the session but not its subscriptions: the next start of the gateway
// takes them over.
func (s *session) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hangUpTimeout)
	defer cancel()
	_, _ = s.call(ctx, &ua.CloseSessionRequest{DeleteSubscriptions: false}) // a courtesy
	s.ch.close()
}

// productURI names the program in the server's diagnostics.
const productURI = "urn:tidemark"

// millis converts the milliseconds of the protocol.
func millis(ms float64) time.Duration {
	const longest = float64(1<<62) / float64(time.Millisecond)
	return time.Duration(min(max(ms, 0), longest) * float64(time.Millisecond))
}
