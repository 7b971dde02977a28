package opcua

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gopcua/opcua/ua"
	"github.com/rs/zerolog"

	"tidemark/reading"
)

// Visit is a session that looks around at a server and leaves nothing behind.
type Visit struct {
	cfg Config
	s   *session
	clk Clock
}

// Look begins a visit at cfg's endpoint, with its security and login. It must be
// closed.
func Look(ctx context.Context, cfg Config, clk Clock, log zerolog.Logger) (*Visit, error) {
	r := &Reader{cfg: cfg.withDefaults(), clk: clk, log: log}
	a, err := r.approach(ctx)
	if err != nil {
		return nil, err
	}
	s, _, err := enter(ctx, cfg.Endpoint, a, nil, "tidemark browse")
	if err != nil {
		return nil, err
	}
	return &Visit{cfg: r.cfg, s: s, clk: clk}, nil
}

// Close ends the visit.
func (v *Visit) Close() { v.s.leave(context.Background()) }

// Node is a node as a visit finds it.
type Node struct {
	Path     []string // browse names below the start
	Place    string   // nsu=URI;s=NAME
	Variable bool
	// What follows is of variables.
	Type    string // of its values, as the server calls it
	Unit    string // UCUM; empty if not known
	Span    *ua.Range
	History bool
	Value   reading.Value // the first, where it has parts
	Parts   int           // readings that its value gives
	Level   reading.Level
	Unread  string // why it cannot be read; empty: it can
	Remark  string // what is odd about it though it can
}

// Tree returns the nodes below a node, in order of their paths, at most depth
// levels down. The second result says what of the tree is left out, if anything.
func (v *Visit) Tree(ctx context.Context, under string, depth int) ([]Node, string, error) {
	r := &resolving{resolver: newResolver(v.cfg), c: v.s, blind: map[int]bool{}}
	if err := r.begin(ctx); err != nil {
		return nil, "", err
	}
	starts, faults, err := r.uris.locate(ctx, v.s, &r.limits, []string{under})
	if err != nil {
		return nil, "", err
	}
	if faults[0] != nil {
		return nil, "", errors.New(strings.TrimSuffix(faults[0].Error(), lookedForAgain)) // nobody does here
	}
	var found []treeNode
	cut, err := walk(ctx, v.s, &r.limits, starts[0], func(n treeNode) bool {
		found = append(found, n)
		return len(n.path) < depth
	})
	if err != nil {
		return nil, "", fmt.Errorf("%s: %s", under, unreachable(err))
	}
	slices.SortFunc(found, func(a, b treeNode) int { return slices.Compare(a.path, b.path) })
	nodes := make([]Node, len(found))
	at := map[*target]*Node{}
	for i, n := range found {
		nodes[i] = Node{Path: n.path, Place: r.uris.place(n.node), Variable: n.variable}
		if n.variable {
			t := &target{path: n.path, item: item{node: n.node, place: nodes[i].Place}}
			r.targets = append(r.targets, t)
			at[t] = &nodes[i]
		}
	}
	return nodes, cut, v.describe(ctx, r, at)
}

// describe fills in what variables are and what they say now.
func (v *Visit) describe(ctx context.Context, r *resolving, at map[*target]*Node) error {
	if err := r.describe(ctx); err != nil {
		return err
	}
	types, err := r.typeNames(ctx)
	if err != nil {
		return err
	}
	var ids []*ua.ReadValueID
	for _, t := range r.targets {
		n := at[t]
		n.Unit, n.History, n.Unread = t.unit, t.history, t.unread
		if t.dataType != nil {
			n.Type = types[t.dataType.String()]
		}
		ids = append(ids, attribute(t.node, ua.AttributeIDValue))
		if t.span != nil {
			ids = append(ids, attribute(t.span, ua.AttributeIDValue))
		}
	}
	values, err := readAll(ctx, v.s, &r.limits.read, ids)
	if err != nil {
		return err
	}
	remarks := map[string]string{}
	for _, p := range r.problems {
		remarks[p.place] = p.detail
	}
	for _, t := range r.targets {
		at[t].Remark = remarks[t.place]
		at[t].say(t, values[0], v.clk.Now())
		values = values[1:]
		if t.span != nil {
			if o, ok := value[*ua.ExtensionObject](values[0]); ok {
				at[t].Span, _ = o.Value.(*ua.Range)
			}
			values = values[1:]
		}
	}
	return nil
}

// say takes in the present value.
func (n *Node) say(t *target, dv *ua.DataValue, now reading.Instant) {
	var p reading.Parcel
	t.take(dv, now, 0, &p)
	n.Parts = len(p.Readings)
	if n.Parts > 0 {
		n.Value, n.Level = p.Readings[0].Value, p.Readings[0].Quality.Level
	}
	n.Unread = cmp.Or(n.Unread, unreadable(t, dv))
	switch {
	case len(p.Rejects) == 0:
	case n.Parts == 0:
		n.Unread = cmp.Or(n.Unread, p.Rejects[0].Detail)
	default:
		n.Remark = cmp.Or(n.Remark, p.Rejects[0].Detail)
	}
}

// unreadable says why a node has no value for this login, and will have none. A device
// that is away, or a value that is not there yet, is no reason; nor is an access level
// that forbids what the server does all the same.
func unreadable(t *target, dv *ua.DataValue) string {
	switch {
	case severity(dv.Status) != bad:
		return ""
	case t.closed:
		return explain(ua.StatusBadNotReadable)
	case dv.Status == ua.StatusBadNotReadable, dv.Status == ua.StatusBadUserAccessDenied,
		dv.Status == ua.StatusBadAttributeIDInvalid, dv.Status == ua.StatusBadNodeIDUnknown, dv.Status == ua.StatusBadNotSupported:
		return explain(dv.Status)
	}
	return ""
}

// typeNames returns what the server calls the data types of the targets.
func (r *resolving) typeNames(ctx context.Context) (map[string]string, error) {
	names := map[string]string{}
	var types []*ua.NodeID
	for _, t := range r.targets {
		if t.dataType == nil {
			continue
		}
		if _, ok := names[t.dataType.String()]; !ok {
			names[t.dataType.String()] = t.dataType.String()
			types = append(types, t.dataType)
		}
	}
	ids := make([]*ua.ReadValueID, len(types))
	for i, n := range types {
		ids[i] = attribute(n, ua.AttributeIDBrowseName)
	}
	values, err := readAll(ctx, r.c, &r.limits.read, ids)
	for i, dv := range values {
		if name, ok := value[*ua.QualifiedName](dv); ok {
			names[types[i].String()] = name.Name
		}
	}
	return names, err
}

// Choice is a node that the configuration's rules choose.
type Choice struct {
	Place   string `json:"node"`
	Asset   string `json:"asset,omitempty"`
	Device  string `json:"device,omitempty"`
	Sensor  string `json:"sensor"`
	Unit    string `json:"unit,omitempty"` // UCUM; empty if not known
	History bool   `json:"history,omitempty"`
}

// Choose returns what the rules of the visit's configuration choose, and what they
// name that is not read, or not as configured.
func (v *Visit) Choose(ctx context.Context, rules []Nodes) (chosen []Choice, unread []Unread, err error) {
	cfg := v.cfg
	cfg.Nodes, cfg.KnownTags, cfg.KeepTags = rules, nil, nil
	chosen, unread = []Choice{}, []Unread{}
	items, problems, err := newResolver(cfg).resolve(ctx, v.s)
	for _, it := range items {
		chosen = append(chosen, Choice{it.place, it.series.Asset, it.series.Device, it.series.Sensor, it.unit, it.history})
	}
	for _, p := range problems {
		unread = append(unread, Unread{p.place, p.detail})
	}
	return chosen, unread, err
}
