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

	"tidemark/internal/uaserver"
)

// peer is a server that a test leads: it says what it is told to, when it is told
// to, and keeps what was not acknowledged, as OPC UA Part 4 §5.13 has it.
type peer struct {
	*uaserver.Server // its lock guards what follows
	t                testing.TB
	space            *space
	started          time.Time
	subs             map[uint32]*peerSub
	refuse           map[string]ua.StatusCode // by service
	calls            map[string]int           // by service
	acked            []uint32
	keep             uint32 // keep-alive count that it grants
	publish          time.Duration
	queue            uint32        // that it grants an item; 0: what is asked for
	swallow          bool          // what is published does not arrive
	reuse            uint32        // id of the next subscriptions; 0: a new one
	vague            bool          // a message that it no longer has is an empty one
	ahead            time.Duration // of this host's clock
	archive          *archive      // nil: it keeps no history
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
	p := &peer{
		t: t, space: newSpace(), started: time.Now(), subs: map[uint32]*peerSub{},
		refuse: map[string]ua.StatusCode{}, calls: map[string]int{}, keep: 1000, publish: 10 * time.Millisecond,
	}
	var err error
	if p.Server, err = uaserver.Listen(uaserver.Config{Name: "peer", Now: time.Now, Admit: p.admit, Serve: p.answer}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { p.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	return p
}

// restart forgets sessions and subscriptions.
func (p *peer) restart() {
	p.do(func() {
		clear(p.Sessions)
		clear(p.subs)
		p.started = p.started.Add(time.Hour)
	})
	p.Cut()
}

func (p *peer) do(f func()) {
	p.Lock()
	defer p.Unlock()
	f()
}

func (p *peer) now() time.Time { return time.Now().Add(p.ahead) }

func (p *peer) count(service string) (n int) {
	p.do(func() { n = p.calls[service] })
	return n
}

// admit counts what is asked for, and refuses what it was told to.
func (p *peer) admit(req ua.Request) ua.StatusCode {
	name := service(req)
	p.calls[name]++
	return p.refuse[name]
}

func (p *peer) answer(s *uaserver.Session, r uaserver.Request, req ua.Request) (ua.Response, ua.StatusCode) {
	switch req := req.(type) {
	case *ua.ReadRequest:
		return p.read(req), ua.StatusOK
	case *ua.BrowseRequest:
		resp, err := p.space.call(p.t.Context(), req)
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
		return p.published(s, r, req)
	}
	return p.subscribed(s.Token, req)
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
func (p *peer) published(s *uaserver.Session, r uaserver.Request, req *ua.PublishRequest) (ua.Response, ua.StatusCode) {
	for _, a := range req.SubscriptionAcknowledgements {
		if sub := p.subs[a.SubscriptionID]; sub != nil {
			delete(sub.kept, a.SequenceNumber)
			p.acked = append(p.acked, a.SequenceNumber)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(p.subs)), func(sub *peerSub) bool { return sub.owner == s.Token }) {
		return nil, ua.StatusBadNoSubscription
	}
	s.Waiting = append(s.Waiting, r)
	for _, sub := range p.subs {
		p.send(sub)
	}
	return nil, ua.StatusOK
}

func (p *peer) subscribed(token string, req ua.Request) (ua.Response, ua.StatusCode) {
	switch req := req.(type) {
	case *ua.CreateSubscriptionRequest:
		n := cmp.Or(p.reuse, p.Number())
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
	p.Lock()
	defer p.Unlock()
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
			for _, s := range p.Sessions {
				ok = ok || len(s.Waiting) >= 3
			}
		})
		return ok
	})
}

// breathe sends a keep-alive for every subscription.
func (p *peer) breathe() {
	p.Lock()
	defer p.Unlock()
	for _, sub := range p.subs {
		if s := p.Sessions[sub.owner]; s != nil && len(s.Waiting) > 0 {
			p.answerPublish(s, sub, &ua.NotificationMessage{SequenceNumber: sub.next, PublishTime: p.now()})
		}
	}
}

// send lets what was not sent go, as far as there are requests.
func (p *peer) send(sub *peerSub) {
	for len(sub.unsent) > 0 {
		s := p.Sessions[sub.owner]
		if s == nil || len(s.Waiting) == 0 {
			return
		}
		nm := sub.unsent[0]
		sub.unsent = sub.unsent[1:]
		sub.kept[nm.SequenceNumber] = nm
		p.answerPublish(s, sub, nm)
	}
}

func (p *peer) answerPublish(s *uaserver.Session, sub *peerSub, nm *ua.NotificationMessage) {
	r := s.Waiting[0]
	s.Waiting = s.Waiting[1:]
	if p.swallow {
		return
	}
	p.Respond(s, r, &ua.PublishResponse{
		SubscriptionID: sub.id, NotificationMessage: nm, AvailableSequenceNumbers: slices.Sorted(maps.Keys(sub.kept)), MoreNotifications: len(sub.unsent) > 0,
	})
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
