package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"

	"tidemark/internal/uaserver"
)

// opcuaServer is an OPC UA server with a small address space and no security, with
// the services that a reader of values needs (OPC 10000-4 §5).
type opcuaServer struct {
	*uaserver.Server // its lock guards subs
	now              func() time.Time
	uris             []string
	nodes            map[string]*opcuaNode // by node id
	subs             map[uint32]*opcuaSubscription
}

type opcuaNode struct {
	id         *ua.NodeID
	below      []*ua.ReferenceDescription
	attributes map[ua.AttributeID]*ua.Variant
	value      func() *ua.DataValue // of a variable
}

type opcuaSubscription struct {
	owner   string // token of its session
	next    uint32
	quiet   time.Duration // after which it sends a keep-alive
	said    time.Time
	items   []opcuaItem
	pending []*ua.MonitoredItemNotification
	kept    map[uint32]*ua.NotificationMessage // not acknowledged
}

type opcuaItem struct {
	handle uint32
	node   *opcuaNode
}

// newOPCUAServer binds a loopback port. uri is the namespace of its nodes, index 2.
func newOPCUAServer(uri string, now func() time.Time) (*opcuaServer, error) {
	started := now()
	s := &opcuaServer{
		now: now, uris: []string{"http://opcfoundation.org/UA/", "urn:tidemark:demo", uri},
		nodes: map[string]*opcuaNode{}, subs: map[uint32]*opcuaSubscription{},
	}
	var err error
	if s.Server, err = uaserver.Listen(uaserver.Config{Name: "controller", Now: now, Serve: s.answer}); err != nil {
		return nil, err
	}
	root := s.add(nil, ua.NewTwoByteNodeID(id.RootFolder), "Root", ua.NodeClassObject, 0)
	s.add(root, ua.NewTwoByteNodeID(id.ObjectsFolder), "Objects", ua.NodeClassObject, id.Organizes)
	s.add(nil, ua.NewTwoByteNodeID(id.Double), "Double", ua.NodeClassDataType, 0)
	s.fixed(id.Server_NamespaceArray, func() any { return s.uris })
	s.fixed(id.Server_ServerStatus_StartTime, func() any { return started })
	s.fixed(id.Server_ServerStatus_CurrentTime, func() any { return s.now() })
	return s, nil
}

func (s *opcuaServer) objects() *opcuaNode {
	return s.nodes[ua.NewTwoByteNodeID(id.ObjectsFolder).String()]
}

// add makes a node below parent, by a reference of that type.
func (s *opcuaServer) add(parent *opcuaNode, n *ua.NodeID, name string, class ua.NodeClass, reference uint32) *opcuaNode {
	browseName := &ua.QualifiedName{NamespaceIndex: n.Namespace(), Name: name}
	node := &opcuaNode{id: n, attributes: map[ua.AttributeID]*ua.Variant{
		ua.AttributeIDNodeClass: ua.MustVariant(int32(class)), ua.AttributeIDBrowseName: ua.MustVariant(browseName),
		ua.AttributeIDDisplayName: ua.MustVariant(ua.NewLocalizedText(name)),
	}}
	s.nodes[n.String()] = node
	if parent != nil {
		parent.below = append(parent.below, &ua.ReferenceDescription{
			NodeID: &ua.ExpandedNodeID{NodeID: n}, ReferenceTypeID: ua.NewNumericNodeID(0, reference), IsForward: true,
			BrowseName: browseName, NodeClass: class, DisplayName: ua.NewLocalizedText(name),
			TypeDefinition: &ua.ExpandedNodeID{NodeID: ua.NewTwoByteNodeID(0)},
		})
	}
	return node
}

// variable makes a variable below parent.
func (s *opcuaServer) variable(parent *opcuaNode, n *ua.NodeID, name string, reference, dataType uint32, value func() *ua.DataValue) *opcuaNode {
	v := s.add(parent, n, name, ua.NodeClassVariable, reference)
	v.value = value
	v.attributes[ua.AttributeIDDataType] = ua.MustVariant(ua.NewNumericNodeID(0, dataType))
	v.attributes[ua.AttributeIDValueRank] = ua.MustVariant(int32(-1))
	v.attributes[ua.AttributeIDAccessLevel] = ua.MustVariant(byte(1))
	v.attributes[ua.AttributeIDUserAccessLevel] = ua.MustVariant(byte(1))
	return v
}

// fixed makes a node of the specification.
func (s *opcuaServer) fixed(n uint32, value func() any) {
	s.nodes[ua.NewNumericNodeID(0, n).String()] = &opcuaNode{value: func() *ua.DataValue {
		return &ua.DataValue{EncodingMask: ua.DataValueValue, Value: ua.MustVariant(value())}
	}}
}

func (s *opcuaServer) answer(session *uaserver.Session, r uaserver.Request, req ua.Request) (ua.Response, ua.StatusCode) {
	switch req := req.(type) {
	case *ua.ReadRequest:
		return s.read(req), ua.StatusOK
	case *ua.BrowseRequest:
		return s.browse(req), ua.StatusOK
	case *ua.PublishRequest:
		s.acknowledge(req)
		session.Waiting = append(session.Waiting, r)
		s.flush()
		return nil, ua.StatusOK
	}
	return s.subscribed(session.Token, req)
}

func (s *opcuaServer) read(req *ua.ReadRequest) ua.Response {
	resp := &ua.ReadResponse{}
	for _, r := range req.NodesToRead {
		resp.Results = append(resp.Results, s.attribute(r))
	}
	return resp
}

func (s *opcuaServer) attribute(r *ua.ReadValueID) *ua.DataValue {
	n := s.nodes[r.NodeID.String()]
	switch {
	case n == nil:
		return &ua.DataValue{EncodingMask: ua.DataValueStatusCode, Status: ua.StatusBadNodeIDUnknown}
	case r.AttributeID == ua.AttributeIDValue && n.value != nil:
		return n.value()
	case n.attributes[r.AttributeID] != nil:
		return &ua.DataValue{EncodingMask: ua.DataValueValue, Value: n.attributes[r.AttributeID]}
	}
	return &ua.DataValue{EncodingMask: ua.DataValueStatusCode, Status: ua.StatusBadAttributeIDInvalid}
}

func (s *opcuaServer) browse(req *ua.BrowseRequest) ua.Response {
	resp := &ua.BrowseResponse{}
	for _, b := range req.NodesToBrowse {
		n := s.nodes[b.NodeID.String()]
		switch {
		case n == nil:
			resp.Results = append(resp.Results, &ua.BrowseResult{StatusCode: ua.StatusBadNodeIDUnknown})
		case b.BrowseDirection == ua.BrowseDirectionInverse: // only of data types, which are the specification's
			resp.Results = append(resp.Results, &ua.BrowseResult{})
		default:
			resp.Results = append(resp.Results, &ua.BrowseResult{References: n.below})
		}
	}
	return resp
}

func (s *opcuaServer) subscribed(token string, req ua.Request) (ua.Response, ua.StatusCode) {
	switch req := req.(type) {
	case *ua.CreateSubscriptionRequest:
		n := s.Number()
		interval := time.Duration(req.RequestedPublishingInterval * float64(time.Millisecond))
		s.subs[n] = &opcuaSubscription{
			owner: token, next: 1, quiet: interval * time.Duration(req.RequestedMaxKeepAliveCount), said: s.now(),
			kept: map[uint32]*ua.NotificationMessage{},
		}
		return &ua.CreateSubscriptionResponse{
			SubscriptionID: n, RevisedPublishingInterval: req.RequestedPublishingInterval,
			RevisedLifetimeCount: req.RequestedLifetimeCount, RevisedMaxKeepAliveCount: req.RequestedMaxKeepAliveCount,
		}, ua.StatusOK
	case *ua.DeleteSubscriptionsRequest:
		resp := &ua.DeleteSubscriptionsResponse{}
		for _, n := range req.SubscriptionIDs {
			delete(s.subs, n)
			resp.Results = append(resp.Results, ua.StatusOK)
		}
		return resp, ua.StatusOK
	case *ua.CreateMonitoredItemsRequest:
		return s.monitor(req)
	case *ua.RepublishRequest:
		if sub := s.subs[req.SubscriptionID]; sub == nil {
			return nil, ua.StatusBadSubscriptionIDInvalid
		} else if nm := sub.kept[req.RetransmitSequenceNumber]; nm != nil {
			return &ua.RepublishResponse{NotificationMessage: nm}, ua.StatusOK
		}
		return nil, ua.StatusBadMessageNotAvailable
	}
	return nil, ua.StatusBadServiceUnsupported
}

// monitor begins to watch nodes, each with its present value.
func (s *opcuaServer) monitor(req *ua.CreateMonitoredItemsRequest) (ua.Response, ua.StatusCode) {
	sub := s.subs[req.SubscriptionID]
	if sub == nil {
		return nil, ua.StatusBadSubscriptionIDInvalid
	}
	resp := &ua.CreateMonitoredItemsResponse{}
	for _, it := range req.ItemsToCreate {
		p, n := it.RequestedParameters, s.nodes[it.ItemToMonitor.NodeID.String()]
		if n == nil || n.value == nil {
			resp.Results = append(resp.Results, &ua.MonitoredItemCreateResult{StatusCode: ua.StatusBadNodeIDUnknown})
			continue
		}
		sub.items = append(sub.items, opcuaItem{p.ClientHandle, n})
		sub.pending = append(sub.pending, &ua.MonitoredItemNotification{ClientHandle: p.ClientHandle, Value: n.value()})
		resp.Results = append(resp.Results, &ua.MonitoredItemCreateResult{
			MonitoredItemID: uint32(len(sub.items)), RevisedQueueSize: p.QueueSize, RevisedSamplingInterval: p.SamplingInterval,
		})
	}
	return resp, ua.StatusOK
}

func (s *opcuaServer) acknowledge(req *ua.PublishRequest) {
	for _, a := range req.SubscriptionAcknowledgements {
		if sub := s.subs[a.SubscriptionID]; sub != nil {
			delete(sub.kept, a.SequenceNumber)
		}
	}
}

// changed tells whoever watches them that these variables have another value, and
// those who heard nothing for long that the server lives.
func (s *opcuaServer) changed(nodes []*opcuaNode) {
	s.Lock()
	defer s.Unlock()
	for _, sub := range s.subs {
		for _, it := range sub.items {
			if slices.Contains(nodes, it.node) {
				sub.pending = append(sub.pending, &ua.MonitoredItemNotification{ClientHandle: it.handle, Value: it.node.value()})
			}
		}
	}
	s.flush()
}

// flush sends what waits, as far as there are requests to answer.
func (s *opcuaServer) flush() {
	for _, n := range slices.Sorted(maps.Keys(s.subs)) {
		sub := s.subs[n]
		session := s.Sessions[sub.owner]
		if session == nil || len(session.Waiting) == 0 {
			continue
		}
		nm := &ua.NotificationMessage{SequenceNumber: sub.next, PublishTime: s.now()}
		switch {
		case len(sub.pending) > 0:
			nm.NotificationData = []*ua.ExtensionObject{ua.NewExtensionObject(&ua.DataChangeNotification{MonitoredItems: sub.pending})}
			sub.kept[sub.next] = nm
			sub.pending, sub.next = nil, sub.next+1
		case nm.PublishTime.Sub(sub.said) < sub.quiet:
			continue
		}
		sub.said = nm.PublishTime
		to := session.Waiting[0]
		session.Waiting = session.Waiting[1:]
		s.Respond(session, to, &ua.PublishResponse{
			SubscriptionID: n, NotificationMessage: nm, AvailableSequenceNumbers: slices.Sorted(maps.Keys(sub.kept)),
		})
	}
}
