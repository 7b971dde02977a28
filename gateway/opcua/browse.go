package opcua

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
)

// child is a node below another one.
type child struct {
	node     *ua.NodeID
	name     string // browse name without its namespace
	variable bool
	property bool // describes its parent; no part of the tree
}

// errNotThere says that a node cannot be browsed, which is no fault of the others.
type errNotThere struct{ status ua.StatusCode }

func (e errNotThere) Error() string { return e.status.Error() }

// children browses nodes, all at once and to their last page. The second result
// has for each node why there is no answer, or none to its end; nil where there is one.
func children(ctx context.Context, c caller, l *operations, nodes []*ua.NodeID) ([][]child, []error, error) {
	found, faults := make([][]child, len(nodes)), make([]error, len(nodes))
	todo := make([]int, len(nodes))
	for i := range todo {
		todo[i] = i
	}
	// A server that has no room for another continuation point gives none: those
	// nodes come in a next round, when the others are through.
	for len(todo) > 0 {
		var again []int
		err := inBatches(todo, &l.browse, func(part []int) error {
			refused, err := browsePart(ctx, c, nodes, part, found, faults)
			again = append(again, refused...)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		if len(again) == len(todo) {
			for _, i := range again {
				faults[i] = errNotThere{ua.StatusBadNoContinuationPoints}
			}
			break
		}
		todo = again
	}
	return found, faults, nil
}

// browseIdle is how many answers in a row may bring nothing new though there is more
// to come.
const browseIdle = 100

// browsePart browses some of nodes with all pages, and returns those that the
// server had no continuation point for.
func browsePart(ctx context.Context, c caller, nodes []*ua.NodeID, part []int, found [][]child, faults []error) (refused []int, err error) {
	req := &ua.BrowseRequest{View: &ua.ViewDescription{ViewID: ua.NewTwoByteNodeID(0)}}
	for _, i := range part {
		req.NodesToBrowse = append(req.NodesToBrowse, &ua.BrowseDescription{
			NodeID: nodes[i], BrowseDirection: ua.BrowseDirectionForward,
			ReferenceTypeID: ua.NewTwoByteNodeID(id.HierarchicalReferences), IncludeSubtypes: true,
			NodeClassMask: uint32(ua.NodeClassObject | ua.NodeClassVariable),
			ResultMask:    uint32(ua.BrowseResultMaskReferenceTypeID | ua.BrowseResultMaskNodeClass | ua.BrowseResultMaskBrowseName),
		})
	}
	resp, err := ask[*ua.BrowseResponse](ctx, c, req)
	if err != nil {
		return nil, err
	}
	idle := 0
	for results := resp.Results; ; {
		if len(results) != len(part) {
			return nil, wrongCount("browse", len(part), len(results))
		}
		idle++
		var more [][]byte
		var open []int
		for k, r := range results {
			i := part[k]
			switch {
			case r.StatusCode == ua.StatusBadNoContinuationPoints:
				found[i] = nil
				refused = append(refused, i)
				continue
			case severity(r.StatusCode) == bad:
				found[i], faults[i] = nil, errNotThere{r.StatusCode}
				continue
			}
			if len(r.References) > 0 {
				idle = 0
			}
			found[i] = appendChildren(found[i], r.References)
			if len(r.ContinuationPoint) > 0 {
				more, open = append(more, r.ContinuationPoint), append(open, i)
			}
		}
		if len(more) == 0 {
			return refused, nil
		}
		if idle == browseIdle || most(found, open) > maxTreeNodes {
			// The session's end frees the continuation points too.
			_, _ = c.call(ctx, &ua.BrowseNextRequest{ReleaseContinuationPoints: true, ContinuationPoints: more})
			for _, i := range open {
				faults[i] = errEndless
			}
			return refused, nil
		}
		next, err := ask[*ua.BrowseNextResponse](ctx, c, &ua.BrowseNextRequest{ContinuationPoints: more})
		if err != nil {
			return nil, err
		}
		results, part = next.Results, open
	}
}

// errEndless says that a node always has more below it than was given; what was given
// is of use.
var errEndless = errors.New("the server does not come to an end of what is below it")

// most is the number of children of the node that has most so far.
func most(found [][]child, open []int) (n int) {
	for _, i := range open {
		n = max(n, len(found[i]))
	}
	return n
}

func appendChildren(list []child, refs []*ua.ReferenceDescription) []child {
	for _, r := range refs {
		if r == nil || r.NodeID == nil || r.NodeID.NodeID == nil || r.NodeID.ServerIndex != 0 || r.BrowseName == nil || r.BrowseName.Name == "" {
			continue // on another server, or without a name
		}
		list = append(list, child{
			node: r.NodeID.NodeID, name: r.BrowseName.Name, variable: r.NodeClass == ua.NodeClassVariable,
			property: r.ReferenceTypeID != nil && r.ReferenceTypeID.Namespace() == 0 && r.ReferenceTypeID.IntID() == id.HasProperty,
		})
	}
	return list
}

func wrongCount(what string, asked, got int) error {
	return fmt.Errorf("the server answers a %s of %d with %d results", what, asked, got)
}

// unreachable says in words why a node cannot be read, with the remedy.
func unreachable(err error) string {
	var there errNotThere
	if errors.As(err, &there) {
		return explain(there.status)
	}
	return err.Error()
}

// explain says what a status means for whoever configured the node.
func explain(code ua.StatusCode) string {
	switch code {
	case ua.StatusBadNodeIDUnknown:
		return "the server has no such node (BadNodeIdUnknown)" + lookedForAgain
	case ua.StatusBadNodeIDInvalid:
		return "the server does not take this node id (BadNodeIdInvalid); correct it (`tidemark browse` shows the ids)"
	case ua.StatusBadUserAccessDenied, ua.StatusBadNotReadable:
		return fmt.Sprintf("the login may not read it (%s); give it the right at the server", statusName(code))
	case ua.StatusBadNoContinuationPoints:
		return "the server has no continuation points left (BadNoContinuationPoints); close other clients' sessions, or raise its limit"
	}
	return "the server answers " + statusName(code)
}
