package opcua

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uacp"
	"github.com/gopcua/opcua/uasc"
)

// peer is a server that a test leads: it says what it is told to, when it is told
// to, and keeps what was not acknowledged, as OPC UA Part 4 §5.13 has it.
type peer struct {
	t        testing.TB
	listener *uacp.Listener
	ctx      context.Context
	wg       sync.WaitGroup

	mu       sync.Mutex
	space    *space
	started  time.Time
	conns    map[*uacp.Conn]bool
	sessions map[string]*peerSession // by token
	subs     map[uint32]*peerSub
	last     uint32                   // number of the last session, subscription or channel
	refuse   map[string]ua.StatusCode // by service
	calls    map[string]int           // by service
	acked    []uint32
	keep     uint32 // keep-alive count that it grants
	publish  time.Duration
	queue    uint32        // that it grants an item; 0: what is asked for
	swallow  bool          // what is published does not arrive
	reuse    uint32        // id of the next subscriptions; 0: a new one
	vague    bool          // a message that it no longer has is an empty one
	ahead    time.Duration // of this host's clock
	archive  *archive      // nil: it keeps no history
}

type peerSession struct {
	sc      *uasc.SecureChannel
	waiting []peerRequest
}

type peerRequest struct {
	number uint32
	handle uint32
}

type peerSub struct {
	id      uint32
	owner   string
	next    uint32
	kept    map[uint32]*ua.NotificationMessage
	unsent  []*ua.NotificationMessage
	handles map[string]uint32 // by node id
}

func newPeer(t testing.TB) *peer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l, err := uacp.Listen(ctx, "opc.tcp://127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{
		t: t, listener: l, ctx: ctx, space: newSpace(), started: time.Now(), conns: map[*uacp.Conn]bool{},
		sessions: map[string]*peerSession{}, subs: map[uint32]*peerSub{}, refuse: map[string]ua.StatusCode{}, calls: map[string]int{},
		keep: 1000, publish: 10 * time.Millisecond,
	}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		cancel()
		l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *peer) endpoint() string { return "opc.tcp://" + p.listener.Addr().String() }

func (p *peer) accept() {
	for p.ctx.Err() == nil {
		conn, err := p.listener.Accept(p.ctx)
		if err != nil {
			continue
		}
		p.mu.Lock()
		p.conns[conn] = true
		p.last++
		n := p.last
		p.mu.Unlock()
		p.wg.Go(func() { p.serve(conn, n) })
	}
}

func (p *peer) serve(conn *uacp.Conn, n uint32) {
	defer conn.Close()
	cfg := &uasc.Config{SecurityPolicyURI: ua.SecurityPolicyURINone, SecurityMode: ua.MessageSecurityModeNone, Lifetime: 3600_000}
	sc, err := uasc.NewServerSecureChannel("", conn, cfg, make(chan error, 1), n, 1, n)
	if err != nil {
		p.t.Error(err)
		return
	}
	for {
		msg := sc.Receive(p.ctx)
		if msg.Err != nil {
			return
		}
		if req := msg.Request(); req != nil {
			p.handle(sc, msg.RequestID, req)
		}
	}
}

// cut breaks every connection; sessions and subscriptions stay.
func (p *peer) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.SetLinger(0)
		c.Close()
	}
	clear(p.conns)
}

// restart forgets sessions and subscriptions.
func (p *peer) restart() {
	p.mu.Lock()
	clear(p.sessions)
	clear(p.subs)
	p.started = p.started.Add(time.Hour)
	p.mu.Unlock()
	p.cut()
}

func (p *peer) do(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *peer) now() time.Time { return time.Now().Add(p.ahead) }

func (p *peer) count(service string) (n int) {
	p.do(func() { n = p.calls[service] })
	return n
}

func header(handle uint32, status ua.StatusCode) *ua.ResponseHeader {
	return &ua.ResponseHeader{
		Timestamp: time.Now(), RequestHandle: handle, ServiceResult: status,
		ServiceDiagnostics: &ua.DiagnosticInfo{}, StringTable: []string{}, AdditionalHeader: ua.NewExtensionObject(nil),
	}
}

// handle answers one request, now or, a publish, later.
func (p *peer) handle(sc *uasc.SecureChannel, number uint32, req ua.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := req.Header()
	name := service(req)
	p.calls[name]++
	token := h.AuthenticationToken.String()
	resp, status := p.answer(sc, token, number, req)
	if s, ok := p.refuse[name]; ok {
		status = s
	}
	if status != ua.StatusOK {
		resp = &ua.ServiceFault{}
	}
	if resp == nil {
		return
	}
	p.respond(sc, number, h.RequestHandle, resp, status)
}

func (p *peer) respond(sc *uasc.SecureChannel, number, handle uint32, resp ua.Response, status ua.StatusCode) {
	resp.SetHeader(header(handle, status))
	_ = sc.SendResponseWithContext(p.ctx, number, resp) // the connection may be cut
}

func (p *peer) answer(sc *uasc.SecureChannel, token string, number uint32, req ua.Request) (ua.Response, ua.StatusCode) {
	switch req.(type) {
	case *ua.GetEndpointsRequest:
		return &ua.GetEndpointsResponse{Endpoints: []*ua.EndpointDescription{p.offered()}}, ua.StatusOK
	case *ua.CreateSessionRequest:
		if s, ok := p.refuse["CreateSession"]; ok {
			return nil, s
		}
		p.last++
		n := ua.NewNumericNodeID(1, p.last)
		p.sessions[n.String()] = &peerSession{}
		return &ua.CreateSessionResponse{
			SessionID: n, AuthenticationToken: n, RevisedSessionTimeout: 60_000, ServerEndpoints: []*ua.EndpointDescription{p.offered()},
			ServerSignature: &ua.SignatureData{},
		}, ua.StatusOK
	case *ua.CloseSecureChannelRequest:
		return nil, ua.StatusOK
	}
	s := p.sessions[token]
	if s == nil {
		return nil, ua.StatusBadSessionIDInvalid
	}
	switch req := req.(type) {
	case *ua.ActivateSessionRequest:
		*s = peerSession{sc: sc}
		return &ua.ActivateSessionResponse{}, ua.StatusOK
	case *ua.CloseSessionRequest:
		delete(p.sessions, token)
		return &ua.CloseSessionResponse{}, ua.StatusOK
	case *ua.ReadRequest:
		return p.read(req), ua.StatusOK
	case *ua.BrowseRequest:
		resp, err := p.space.call(p.ctx, req)
		if err != nil {
			p.t.Error(err)
		}
		return resp, ua.StatusOK
	case *ua.HistoryReadRequest:
		if p.archive == nil {
			return nil, ua.StatusBadServiceUnsupported
		}
		resp, err := p.archive.history(req)
		if err != nil {
			p.t.Error(err)
		}
		return resp, ua.StatusOK
	case *ua.PublishRequest:
		return p.published(s, token, number, req)
	}
	return p.subscribed(token, req)
}

func (p *peer) offered() *ua.EndpointDescription {
	return &ua.EndpointDescription{
		EndpointURL: p.endpoint(), SecurityMode: ua.MessageSecurityModeNone, SecurityPolicyURI: ua.SecurityPolicyURINone,
		Server:             &ua.ApplicationDescription{ApplicationName: ua.NewLocalizedText("peer")},
		UserIdentityTokens: []*ua.UserTokenPolicy{{PolicyID: "anonymous", TokenType: ua.UserTokenTypeAnonymous}},
	}
}

func (p *peer) read(req *ua.ReadRequest) ua.Response {
	resp := &ua.ReadResponse{}
	for _, r := range req.NodesToRead {
		switch r.NodeID.String() {
		case ua.NewNumericNodeID(0, id.Server_ServerStatus_StartTime).String():
			resp.Results = append(resp.Results, valued(p.started))
		case ua.NewNumericNodeID(0, id.Server_ServerStatus_CurrentTime).String():
			resp.Results = append(resp.Results, valued(p.now()))
		default:
			resp.Results = append(resp.Results, p.space.read(r))
		}
	}
	return resp
}

// published takes acknowledgements, and the request for the next message.
func (p *peer) published(s *peerSession, token string, number uint32, req *ua.PublishRequest) (ua.Response, ua.StatusCode) {
	for _, a := range req.SubscriptionAcknowledgements {
		if sub := p.subs[a.SubscriptionID]; sub != nil {
			delete(sub.kept, a.SequenceNumber)
			p.acked = append(p.acked, a.SequenceNumber)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(p.subs)), func(sub *peerSub) bool { return sub.owner == token }) {
		return nil, ua.StatusBadNoSubscription
	}
	s.waiting = append(s.waiting, peerRequest{number, req.RequestHeader.RequestHandle})
	for _, sub := range p.subs {
		p.send(sub)
	}
	return nil, ua.StatusOK
}

func (p *peer) subscribed(token string, req ua.Request) (ua.Response, ua.StatusCode) {
	switch req := req.(type) {
	case *ua.CreateSubscriptionRequest:
		p.last++
		n := cmp.Or(p.reuse, p.last)
		p.subs[n] = &peerSub{id: n, owner: token, next: 1, kept: map[uint32]*ua.NotificationMessage{}, handles: map[string]uint32{}}
		return &ua.CreateSubscriptionResponse{
			SubscriptionID: n, RevisedPublishingInterval: float64(p.publish.Milliseconds()),
			RevisedMaxKeepAliveCount: p.keep, RevisedLifetimeCount: 3 * p.keep,
		}, ua.StatusOK
	case *ua.DeleteSubscriptionsRequest:
		resp := &ua.DeleteSubscriptionsResponse{}
		for _, n := range req.SubscriptionIDs {
			delete(p.subs, n)
			resp.Results = append(resp.Results, ua.StatusOK)
		}
		return resp, ua.StatusOK
	case *ua.TransferSubscriptionsRequest:
		resp := &ua.TransferSubscriptionsResponse{}
		for _, n := range req.SubscriptionIDs {
			sub := p.subs[n]
			if sub == nil {
				resp.Results = append(resp.Results, &ua.TransferResult{StatusCode: ua.StatusBadSubscriptionIDInvalid})
				continue
			}
			sub.owner = token
			resp.Results = append(resp.Results, &ua.TransferResult{AvailableSequenceNumbers: slices.Sorted(maps.Keys(sub.kept))})
		}
		return resp, ua.StatusOK
	case *ua.CreateMonitoredItemsRequest:
		return p.monitor(req), ua.StatusOK
	case *ua.RepublishRequest:
		sub := p.subs[req.SubscriptionID]
		if sub == nil {
			return nil, ua.StatusBadSubscriptionIDInvalid
		}
		if nm := sub.kept[req.RetransmitSequenceNumber]; nm != nil {
			return &ua.RepublishResponse{NotificationMessage: nm}, ua.StatusOK
		}
		if p.vague {
			return &ua.RepublishResponse{NotificationMessage: &ua.NotificationMessage{}}, ua.StatusOK
		}
		return nil, ua.StatusBadMessageNotAvailable
	}
	return nil, ua.StatusBadServiceUnsupported
}

func (p *peer) monitor(req *ua.CreateMonitoredItemsRequest) ua.Response {
	resp := &ua.CreateMonitoredItemsResponse{}
	for _, it := range req.ItemsToCreate {
		n := it.ItemToMonitor.NodeID.String()
		q := it.RequestedParameters.QueueSize
		if p.queue > 0 {
			q = p.queue
		}
		res := &ua.MonitoredItemCreateResult{MonitoredItemID: 1, RevisedQueueSize: q, RevisedSamplingInterval: it.RequestedParameters.SamplingInterval}
		if p.space.at(n) == nil {
			res = &ua.MonitoredItemCreateResult{StatusCode: ua.StatusBadNodeIDUnknown}
		}
		p.subs[req.SubscriptionID].handles[n] = it.RequestedParameters.ClientHandle
		resp.Results = append(resp.Results, res)
	}
	return resp
}

// say has every subscription that watches one of the nodes tell a value of each.
func (p *peer) say(dv *ua.DataValue, nodes ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sub := range p.subs {
		n := &ua.DataChangeNotification{}
		for _, node := range nodes {
			if h, ok := sub.handles["ns=2;s="+node]; ok {
				n.MonitoredItems = append(n.MonitoredItems, &ua.MonitoredItemNotification{ClientHandle: h, Value: dv})
			}
		}
		if len(n.MonitoredItems) > 0 {
			p.tell(sub, n)
		}
	}
}

func (p *peer) tell(sub *peerSub, what any) { p.publishMessage(sub, ua.NewExtensionObject(what)) }

func (p *peer) publishMessage(sub *peerSub, data *ua.ExtensionObject) {
	nm := &ua.NotificationMessage{SequenceNumber: sub.next, PublishTime: p.now(), NotificationData: []*ua.ExtensionObject{data}}
	sub.next = succ(sub.next)
	sub.unsent = append(sub.unsent, nm)
	p.send(sub)
}

// patient waits until a few requests wait for what is to be said.
func (p *peer) patient() {
	p.t.Helper()
	until(p.t, "publish requests wait", func() (ok bool) {
		p.do(func() {
			for _, s := range p.sessions {
				ok = ok || len(s.waiting) >= 3
			}
		})
		return ok
	})
}

// breathe sends a keep-alive for every subscription.
func (p *peer) breathe() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sub := range p.subs {
		if s := p.sessions[sub.owner]; s != nil && len(s.waiting) > 0 {
			p.answerPublish(s, sub, &ua.NotificationMessage{SequenceNumber: sub.next, PublishTime: p.now()})
		}
	}
}

// send lets what was not sent go, as far as there are requests.
func (p *peer) send(sub *peerSub) {
	for len(sub.unsent) > 0 {
		s := p.sessions[sub.owner]
		if s == nil || len(s.waiting) == 0 {
			return
		}
		nm := sub.unsent[0]
		sub.unsent = sub.unsent[1:]
		sub.kept[nm.SequenceNumber] = nm
		p.answerPublish(s, sub, nm)
	}
}

func (p *peer) answerPublish(s *peerSession, sub *peerSub, nm *ua.NotificationMessage) {
	r := s.waiting[0]
	s.waiting = s.waiting[1:]
	if p.swallow {
		return
	}
	p.respond(s.sc, r.number, r.handle, &ua.PublishResponse{
		SubscriptionID: sub.id, NotificationMessage: nm, AvailableSequenceNumbers: slices.Sorted(maps.Keys(sub.kept)), MoreNotifications: len(sub.unsent) > 0,
	}, ua.StatusOK)
}

// at is a Good value measured then.
func at(v float64, t time.Time) *ua.DataValue {
	return &ua.DataValue{
		EncodingMask: ua.DataValueValue | ua.DataValueSourceTimestamp, Value: ua.MustVariant(v), SourceTimestamp: t,
	}
}

// tagged names variables of the plant's namespace.
func tagged(names ...string) (tags []Tag) {
	for i, n := range names {
		tags = append(tags, Tag{Node: "nsu=urn:plant;s=" + n, Asset: "press", Sensor: strings.ReplaceAll(n, "/", "."), Line: fmt.Sprintf("t.csv:%d", i+2)})
	}
	return tags
}
