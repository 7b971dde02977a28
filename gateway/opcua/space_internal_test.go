package opcua

import (
	"context"
	"fmt"
	"strings"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
)

// space is the address space of a server that a test makes up: what it has, and
// how narrow and forgetful it is. Nodes are named by their browse path.
type space struct {
	uris  []string
	nodes map[string]*spaceNode // by node id

	most   uint32 // operations in a request that it takes, and says so; 0: no limit
	secret int    // the same, and it does not say so
	page   int    // references in an answer; 0: no limit
	points int    // continuation points at a time; 0: no limit

	endless string // node that always has one more page; "": none
	closed  string // node that cannot be browsed

	open  map[string][]*ua.ReferenceDescription
	calls map[string]int
}

type spaceNode struct {
	id         *ua.NodeID
	name       string
	class      ua.NodeClass
	below      []*ua.ReferenceDescription
	parent     *ua.NodeID // of a data type
	attributes map[ua.AttributeID]*ua.DataValue
}

func newSpace() *space {
	s := &space{uris: []string{"http://opcfoundation.org/UA/", "urn:server", "urn:plant"}, nodes: map[string]*spaceNode{}, open: map[string][]*ua.ReferenceDescription{}, calls: map[string]int{}}
	s.add(nil, ua.NewTwoByteNodeID(id.RootFolder), "Root", ua.NodeClassObject)
	s.add(s.at("i=84"), ua.NewTwoByteNodeID(id.ObjectsFolder), "Objects", ua.NodeClassObject)
	s.add(s.at("i=85"), ua.NewNumericNodeID(0, id.Server), "Server", ua.NodeClassObject)
	return s
}

func (s *space) at(nodeID string) *spaceNode { return s.nodes[nodeID] }

func (s *space) add(parent *spaceNode, n *ua.NodeID, name string, class ua.NodeClass) *spaceNode {
	node := &spaceNode{id: n, name: name, class: class, attributes: map[ua.AttributeID]*ua.DataValue{}}
	s.nodes[n.String()] = node
	if parent != nil {
		parent.refer(node, id.Organizes)
	}
	return node
}

func (n *spaceNode) refer(to *spaceNode, reference uint32) {
	n.below = append(n.below, &ua.ReferenceDescription{
		NodeID: &ua.ExpandedNodeID{NodeID: to.id}, ReferenceTypeID: ua.NewNumericNodeID(0, reference), IsForward: true,
		BrowseName: &ua.QualifiedName{NamespaceIndex: to.id.Namespace(), Name: to.name}, NodeClass: to.class,
		DisplayName: ua.NewLocalizedText(to.name), TypeDefinition: &ua.ExpandedNodeID{NodeID: ua.NewTwoByteNodeID(0)},
	})
}

// folder makes the object at a path below Objects, and those above it.
func (s *space) folder(path string) *spaceNode {
	if path == "" {
		return s.at("i=85")
	}
	if n := s.at("ns=2;s=" + path); n != nil {
		return n
	}
	above, name := cutLast(path)
	return s.add(s.folder(above), ua.NewStringNodeID(2, path), name, ua.NodeClassObject)
}

// variable makes the variable at a path below Objects.
func (s *space) variable(path string, dataType uint32) *spaceNode {
	above, name := cutLast(path)
	n := s.add(s.folder(above), ua.NewStringNodeID(2, path), name, ua.NodeClassVariable)
	n.typed(ua.NewNumericNodeID(0, dataType))
	n.attributes[ua.AttributeIDUserAccessLevel] = valued(byte(1))
	n.attributes[ua.AttributeIDBrowseName] = valued(&ua.QualifiedName{NamespaceIndex: 2, Name: name})
	return n
}

func (n *spaceNode) typed(dataType *ua.NodeID) {
	n.attributes[ua.AttributeIDDataType] = valued(dataType)
}

// property gives n a property with a structured value.
func (s *space) property(n *spaceNode, name string, value any) {
	p := s.add(nil, ua.NewStringNodeID(2, n.id.StringID()+"."+name), name, ua.NodeClassVariable)
	p.attributes[ua.AttributeIDValue] = valued(ua.NewExtensionObject(value))
	n.refer(p, id.HasProperty)
}

func cutLast(path string) (above, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

func (s *space) call(ctx context.Context, req ua.Request) (ua.Response, error) {
	s.calls[fmt.Sprintf("%T", req)]++
	switch req := req.(type) {
	case *ua.ReadRequest:
		if err := s.count(len(req.NodesToRead)); err != nil {
			return nil, err
		}
		resp := &ua.ReadResponse{}
		for _, r := range req.NodesToRead {
			resp.Results = append(resp.Results, s.read(r))
		}
		return resp, nil
	case *ua.BrowseRequest:
		if err := s.count(len(req.NodesToBrowse)); err != nil {
			return nil, err
		}
		resp := &ua.BrowseResponse{}
		for _, b := range req.NodesToBrowse {
			resp.Results = append(resp.Results, s.browse(b))
		}
		return resp, nil
	case *ua.BrowseNextRequest:
		resp := &ua.BrowseNextResponse{}
		if req.ReleaseContinuationPoints {
			return resp, nil
		}
		for _, p := range req.ContinuationPoints {
			rest := s.open[string(p)]
			delete(s.open, string(p))
			resp.Results = append(resp.Results, s.pageOf(string(p), rest))
		}
		return resp, nil
	}
	return nil, fmt.Errorf("unexpected %T", req)
}

func (s *space) count(n int) error {
	if s.most > 0 && n > int(s.most) || s.secret > 0 && n > s.secret {
		return fmt.Errorf("refused: %w", ua.StatusBadTooManyOperations)
	}
	return nil
}

func (s *space) read(r *ua.ReadValueID) *ua.DataValue {
	switch r.NodeID.String() {
	case ua.NewNumericNodeID(0, id.Server_NamespaceArray).String():
		return valued(s.uris)
	case ua.NewNumericNodeID(0, id.Server_ServerCapabilities_OperationLimits_MaxNodesPerRead).String(),
		ua.NewNumericNodeID(0, id.Server_ServerCapabilities_OperationLimits_MaxNodesPerBrowse).String():
		return valued(s.most)
	}
	n := s.at(r.NodeID.String())
	if n == nil {
		return &ua.DataValue{EncodingMask: ua.DataValueStatusCode, Status: ua.StatusBadNodeIDUnknown}
	}
	if dv := n.attributes[r.AttributeID]; dv != nil {
		return dv
	}
	return &ua.DataValue{EncodingMask: ua.DataValueStatusCode, Status: ua.StatusBadAttributeIDInvalid}
}

func (s *space) browse(b *ua.BrowseDescription) *ua.BrowseResult {
	n := s.at(b.NodeID.String())
	switch {
	case n == nil:
		return &ua.BrowseResult{StatusCode: ua.StatusBadNodeIDUnknown}
	case s.closed == b.NodeID.String():
		return &ua.BrowseResult{StatusCode: ua.StatusBadUserAccessDenied}
	case b.BrowseDirection == ua.BrowseDirectionInverse && n.parent == nil:
		return &ua.BrowseResult{}
	case b.BrowseDirection == ua.BrowseDirectionInverse:
		return &ua.BrowseResult{References: []*ua.ReferenceDescription{{NodeID: &ua.ExpandedNodeID{NodeID: n.parent}}}}
	}
	return s.pageOf(b.NodeID.String(), n.below)
}

func (s *space) pageOf(point string, refs []*ua.ReferenceDescription) *ua.BrowseResult {
	if point == s.endless && point != "" {
		return &ua.BrowseResult{References: refs, ContinuationPoint: []byte(point)}
	}
	if s.page == 0 || len(refs) <= s.page {
		return &ua.BrowseResult{References: refs}
	}
	if s.points > 0 && len(s.open) >= s.points {
		return &ua.BrowseResult{StatusCode: ua.StatusBadNoContinuationPoints}
	}
	s.open[point] = refs[s.page:]
	return &ua.BrowseResult{References: refs[:s.page], ContinuationPoint: []byte(point)}
}

// breaking is a connection that ends after some calls.
type breaking struct {
	*space
	left int
	err  error
}

func (b *breaking) call(ctx context.Context, req ua.Request) (ua.Response, error) {
	if b.left == 0 {
		return nil, b.err
	}
	b.left--
	return b.space.call(ctx, req)
}
