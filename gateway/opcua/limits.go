package opcua

import (
	"context"
	"errors"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// operations are how many things one request may ask for (OPC UA Part 5 §6.3.11
// and §6.3.2). A server that states no limit gets ours.
type operations struct {
	read, browse, history int
	historyPoints         int // histories that may be in the middle of being read
}

var ownLimits = operations{read: 1000, browse: 500, history: 20, historyPoints: 20}

// readOperations asks the server for its limits. One that has no such nodes has
// no limits to say.
func readOperations(ctx context.Context, c caller) (operations, error) {
	l := ownLimits
	for _, q := range []struct {
		node  uint32
		limit *int
	}{
		{id.Server_ServerCapabilities_OperationLimits_MaxNodesPerRead, &l.read},
		{id.Server_ServerCapabilities_OperationLimits_MaxNodesPerBrowse, &l.browse},
		{id.Server_ServerCapabilities_OperationLimits_MaxNodesPerHistoryReadData, &l.history},
		{id.Server_ServerCapabilities_MaxHistoryContinuationPoints, &l.historyPoints},
	} {
		// One by one: the limit on reads may be one.
		values, err := readSome(ctx, c, []*ua.ReadValueID{attribute(ua.NewNumericNodeID(0, q.node), ua.AttributeIDValue)})
		if err != nil {
			return l, err
		}
		if n := counted(values[0]); n > 0 {
			*q.limit = min(*q.limit, n)
		}
	}
	return l, nil
}

// counted is a number of the server's, 0 if there is none.
func counted(dv *ua.DataValue) int {
	if dv == nil || !dv.Has(ua.DataValueValue) || quality(dv).Level != reading.Good {
		return 0
	}
	switch v := dv.Value.Value().(type) {
	case uint32:
		return int(min(v, 1<<30))
	case uint16:
		return int(v)
	}
	return 0
}

func attribute(node *ua.NodeID, a ua.AttributeID) *ua.ReadValueID {
	return &ua.ReadValueID{NodeID: node, AttributeID: a, DataEncoding: &ua.QualifiedName{}}
}

// readSome asks for all of ids in one request.
func readSome(ctx context.Context, c caller, ids []*ua.ReadValueID) ([]*ua.DataValue, error) {
	resp, err := ask[*ua.ReadResponse](ctx, c, &ua.ReadRequest{TimestampsToReturn: ua.TimestampsToReturnNeither, NodesToRead: ids})
	if err != nil {
		return nil, err
	}
	if len(resp.Results) != len(ids) {
		return nil, wrongCount("read", len(ids), len(resp.Results))
	}
	return resp.Results, nil
}

// readAll asks for all of ids, in as many requests as the server wants.
func readAll(ctx context.Context, c caller, size *int, ids []*ua.ReadValueID) ([]*ua.DataValue, error) {
	all := make([]*ua.DataValue, 0, len(ids))
	err := inBatches(ids, size, func(part []*ua.ReadValueID) error {
		values, err := readSome(ctx, c, part)
		all = append(all, values...)
		return err
	})
	return all, err
}

// inBatches calls do with at most *size of all at once. Where the server says
// that this is too much it goes on with half as many, for good.
func inBatches[T any](all []T, size *int, do func(part []T) error) error {
	for len(all) > 0 {
		n := min(len(all), *size)
		err := do(all[:n])
		switch {
		case err == nil:
			all = all[n:]
		case n > 1 && tooMuch(err):
			*size = n / 2
		default:
			return err
		}
	}
	return nil
}

// tooMuch reports whether a request failed for asking too much at once.
func tooMuch(err error) bool {
	for _, code := range []ua.StatusCode{
		ua.StatusBadTooManyOperations, ua.StatusBadEncodingLimitsExceeded, ua.StatusBadRequestTooLarge,
		ua.StatusBadResponseTooLarge, ua.StatusBadTCPMessageTooLarge, ua.StatusBadNoContinuationPoints,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
