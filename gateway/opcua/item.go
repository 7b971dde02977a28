package opcua

import (
	"context"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// caller sends one request to the server and returns the answer. A request has a
// time-out of its own besides ctx. A service result that is not good comes as an
// error that wraps its ua.StatusCode, so that errors.Is tells it; the results of
// the single operations in an answer are for whoever asked.
type caller interface {
	call(ctx context.Context, req ua.Request) (ua.Response, error)
}

// ask calls with an answer of a known type.
func ask[T ua.Response](ctx context.Context, c caller, req ua.Request) (T, error) {
	var none T
	resp, err := c.call(ctx, req)
	if err != nil {
		return none, err
	}
	t, ok := resp.(T)
	if !ok {
		return none, wrongAnswer(req, resp)
	}
	return t, nil
}

// item is one node as this session knows it: where it is now, and what its
// readings are called. One goroutine at a time may take values of it.
type item struct {
	node *ua.NodeID // in the server's present namespace table; valid for one session
	// place is the node with its namespace's URI, as nsu=URI;s=Line3.Temp: what
	// records, positions and tag files call it.
	place  string
	series reading.Series // without a lifecycle
	unit   string         // UCUM; empty if not known

	deadband Deadband
	trigger  Trigger
	history  bool // the server keeps this node's history

	lifecycles []reading.Lifecycle   // of the asset, in order of FromNS
	structures map[string]*structure // by the id of their encoding; shared, never changed
	parts      []part                // what the values so far had, in order of coming
	next       int                   // the part that is expected
}

// problem is a node that cannot be read, and why. It never stops the others.
type problem struct {
	place  string // as the configuration or the browse path names it
	detail string // a sentence with the remedy
	served bool   // the node is read all the same
}
