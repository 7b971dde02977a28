// Package uaserver is what every OPC UA server has: connections, here without security,
// discovery and sessions (OPC 10000-4 §5.5 to §5.7). What it serves in a session is for
// whoever has one: the demonstration's controller, and the peer of tests.
//
// It is made of gopcua's codec and secure channel. That library's own server carries the
// specification's whole address space, 3.6 MB of every binary.
package uaserver

import (
	"context"
	"sync"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uacp"
	"github.com/gopcua/opcua/uasc"
)

// Config is what a server says and does.
type Config struct {
	Name string
	Now  func() time.Time
	// Admit decides whether a request is served at all; nil: each is.
	Admit func(req ua.Request) ua.StatusCode
	// Serve answers a request of a session. Without an answer it comes later, by Respond.
	Serve func(s *Session, r Request, req ua.Request) (ua.Response, ua.StatusCode)
}

// Server listens on a loopback port. Its functions are called with the lock held.
type Server struct {
	cfg      Config
	listener *uacp.Listener
	ctx      context.Context // ends with Run, and with it what is being sent

	sync.Mutex // guards what follows
	// Sessions are by token; whoever takes one out ends it.
	Sessions map[string]*Session
	Last     uint32 // number of the last channel, session or whatever else is numbered
	conns    map[*uacp.Conn]bool
}

// Session is one that a client has made.
type Session struct {
	Token   string
	Waiting []Request // publish requests that have no answer yet
	channel *uasc.SecureChannel
}

// Request is one that waits for its answer.
type Request struct{ number, handle uint32 }

// Listen binds a port. Clients are served once Run is called.
func Listen(cfg Config) (*Server, error) {
	l, err := uacp.Listen(context.Background(), "opc.tcp://127.0.0.1:0", nil)
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, listener: l, ctx: context.Background(), Sessions: map[string]*Session{}, conns: map[*uacp.Conn]bool{}}, nil
}

// URL is the server's endpoint.
func (s *Server) URL() string { return "opc.tcp://" + s.listener.Addr().String() }

// Close frees the port of a server that never ran.
func (s *Server) Close() { s.listener.Close() }

// Run serves clients until ctx ends.
func (s *Server) Run(ctx context.Context) {
	s.ctx = ctx
	var clients sync.WaitGroup
	defer clients.Wait()
	defer context.AfterFunc(ctx, func() {
		s.listener.Close()
		s.Cut()
	})()
	for ctx.Err() == nil {
		conn, err := s.listener.Accept(ctx)
		if err != nil {
			continue
		}
		s.Lock()
		s.conns[conn] = true
		n := s.Number()
		s.Unlock()
		clients.Go(func() { s.client(conn, n) })
	}
}

// Number returns a number that nothing else has. The lock is held.
func (s *Server) Number() uint32 {
	s.Last++
	return s.Last
}

// Cut breaks every connection without a word; sessions stay.
func (s *Server) Cut() {
	s.Lock()
	defer s.Unlock()
	for c := range s.conns {
		_ = c.SetLinger(0) // it is broken one way or another
		c.Close()
	}
	clear(s.conns)
}

func (s *Server) client(conn *uacp.Conn, n uint32) {
	defer conn.Close()
	cfg := &uasc.Config{SecurityPolicyURI: ua.SecurityPolicyURINone, SecurityMode: ua.MessageSecurityModeNone, Lifetime: uint32(time.Hour.Milliseconds())}
	sc, err := uasc.NewServerSecureChannel("", conn, cfg, make(chan error, 1), n, 1, n)
	if err != nil {
		return
	}
	for {
		msg := sc.Receive(s.ctx)
		if msg.Err != nil {
			break
		}
		if req := msg.Request(); req != nil {
			s.Lock()
			s.take(sc, Request{msg.RequestID, req.Header().RequestHandle}, req)
			s.Unlock()
		}
	}
	s.Lock()
	delete(s.conns, conn)
	s.Unlock()
}

// take answers one request, now or later.
func (s *Server) take(sc *uasc.SecureChannel, r Request, req ua.Request) {
	status := ua.StatusOK
	if s.cfg.Admit != nil {
		status = s.cfg.Admit(req)
	}
	var resp ua.Response
	if status == ua.StatusOK {
		resp, status = s.answer(sc, r, req)
	}
	if status != ua.StatusOK {
		resp = &ua.ServiceFault{}
	}
	if resp != nil {
		s.send(sc, r, resp, status)
	}
}

// Respond answers a request of a session that had to wait. The lock is held.
func (s *Server) Respond(to *Session, r Request, resp ua.Response) {
	s.send(to.channel, r, resp, ua.StatusOK)
}

func (s *Server) send(sc *uasc.SecureChannel, r Request, resp ua.Response, status ua.StatusCode) {
	resp.SetHeader(Header(s.cfg.Now(), r.handle, status))
	_ = sc.SendResponseWithContext(s.ctx, r.number, resp) // whoever went away needs none
}

// Header is that of an answer.
func Header(now time.Time, handle uint32, status ua.StatusCode) *ua.ResponseHeader {
	return &ua.ResponseHeader{
		Timestamp: now, RequestHandle: handle, ServiceResult: status,
		ServiceDiagnostics: &ua.DiagnosticInfo{}, StringTable: []string{}, AdditionalHeader: ua.NewExtensionObject(nil),
	}
}

func (s *Server) answer(sc *uasc.SecureChannel, r Request, req ua.Request) (ua.Response, ua.StatusCode) {
	switch req.(type) {
	case *ua.GetEndpointsRequest:
		return &ua.GetEndpointsResponse{Endpoints: s.endpoints()}, ua.StatusOK
	case *ua.CreateSessionRequest:
		n := ua.NewNumericNodeID(1, s.Number())
		s.Sessions[n.String()] = &Session{Token: n.String()}
		return &ua.CreateSessionResponse{
			SessionID: n, AuthenticationToken: n, RevisedSessionTimeout: float64(time.Minute.Milliseconds()), ServerEndpoints: s.endpoints(),
			ServerSignature: &ua.SignatureData{},
		}, ua.StatusOK
	case *ua.CloseSecureChannelRequest:
		return nil, ua.StatusOK
	}
	session := s.Sessions[req.Header().AuthenticationToken.String()]
	if session == nil {
		return nil, ua.StatusBadSessionIDInvalid
	}
	switch req.(type) {
	case *ua.ActivateSessionRequest:
		session.channel, session.Waiting = sc, nil
		return &ua.ActivateSessionResponse{}, ua.StatusOK
	case *ua.CloseSessionRequest:
		delete(s.Sessions, session.Token)
		return &ua.CloseSessionResponse{}, ua.StatusOK
	}
	return s.cfg.Serve(session, r, req)
}

func (s *Server) endpoints() []*ua.EndpointDescription {
	return []*ua.EndpointDescription{{
		EndpointURL: s.URL(), SecurityMode: ua.MessageSecurityModeNone, SecurityPolicyURI: ua.SecurityPolicyURINone,
		Server:             &ua.ApplicationDescription{ApplicationName: ua.NewLocalizedText(s.cfg.Name)},
		UserIdentityTokens: []*ua.UserTokenPolicy{{PolicyID: "anonymous", TokenType: ua.UserTokenTypeAnonymous}},
	}}
}
