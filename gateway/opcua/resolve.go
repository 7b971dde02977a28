package opcua

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// resolver finds the nodes that the configuration chooses, anew for each
// session: a server may have come back with other nodes, or with the same ones in
// another namespace table. One look at a time may use it.
type resolver struct {
	input  string
	rules  []Nodes
	assets map[string]reading.Asset
	tags   tagList
	keep   func([]byte) // nil: nobody
}

func newResolver(cfg Config) *resolver {
	k := &resolver{input: cfg.Input, rules: cfg.Nodes, assets: cfg.Assets, keep: cfg.KeepTags}
	k.tags.decode(cfg.KnownTags)
	return k
}

// target is a node on the way to become an item.
type target struct {
	item
	rule     int
	path     []string   // browse path below the rule's start; nil: named in a file
	named    string     // where it stands in a file
	units    *ua.NodeID // its EngineeringUnits
	span     *ua.NodeID // its EURange
	dataType *ua.NodeID
	unread   string // why it is not read; empty: it is
	closed   bool   // the server says that the login may not read its value
	before   bool   // it was read before
	unnamed  bool   // its sensor is called as the server calls the node
}

// resolving is one resolve under way.
type resolving struct {
	*resolver
	c        caller
	limits   operations
	uris     namespaces
	targets  []*target
	problems []problem
	blind    map[int]bool // rules whose start is not there
}

// resolve returns the nodes to read, in an order that depends on their names
// alone, and what is wrong with others: a node that is not there, two that give
// one name, a unit that nobody knows. An error is one of the call itself, and
// nothing is known then.
func (k *resolver) resolve(ctx context.Context, c caller) ([]item, []problem, error) {
	r := &resolving{resolver: k, c: c, blind: map[int]bool{}}
	if err := r.begin(ctx); err != nil {
		return nil, nil, err
	}
	if err := r.choose(ctx); err != nil {
		return nil, nil, fmt.Errorf("cannot look for the nodes: %w", err)
	}
	r.once()
	if err := r.describe(ctx); err != nil {
		return nil, nil, fmt.Errorf("cannot read what the nodes are: %w", err)
	}
	r.rename()
	r.compare()
	r.refuseTwins()
	return r.items(), r.problems, nil
}

// begin asks what has to be known first.
func (r *resolving) begin(ctx context.Context) (err error) {
	if r.limits, err = readOperations(ctx, r.c); err != nil {
		return fmt.Errorf("cannot ask the server for its limits: %w", err)
	}
	if r.uris, err = readNamespaces(ctx, r.c); err != nil {
		return fmt.Errorf("cannot read the server's namespaces: %w", err)
	}
	return nil
}

func (r *resolving) report(place, detail string) {
	r.problems = append(r.problems, problem{place: place, detail: detail})
}

// remark reports what is wrong with a node that is read all the same.
func (r *resolving) remark(place, detail string) {
	r.problems = append(r.problems, problem{place: place, detail: detail, served: true})
}

// choose makes targets of what the rules say.
func (r *resolving) choose(ctx context.Context) error {
	for i := range r.rules {
		rule := &r.rules[i]
		for _, f := range rule.Faults {
			r.report(f.Place, f.Reason)
		}
		err := r.file(ctx, i)
		if err == nil && rule.Under != "" {
			err = r.tree(ctx, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tree chooses the nodes of a browse rule.
func (r *resolving) tree(ctx context.Context, n int) error {
	rule := &r.rules[n]
	start, faults, err := r.uris.locate(ctx, r.c, &r.limits, []string{rule.Under})
	if err != nil {
		return err
	}
	if faults[0] != nil {
		r.report(rule.label(), faults[0].Error())
		r.blind[n] = true
		return nil
	}
	cut, err := rule.choose(ctx, r.c, &r.limits, start[0], func(node *ua.NodeID, path []string, s reading.Series) {
		s.Input = r.input
		r.targets = append(r.targets, &target{rule: n, path: path, item: item{
			node: node, place: r.uris.place(node), series: s, deadband: rule.Deadband, trigger: rule.Trigger,
		}})
	})
	var gone errNotThere
	switch {
	case errors.As(err, &gone):
		r.report(rule.label(), unreachable(err))
		r.blind[n] = true
		return nil
	case cut != "":
		r.remark(rule.label(), cut)
	}
	return err
}

// file chooses the nodes of a tag file.
func (r *resolving) file(ctx context.Context, n int) error {
	rule := &r.rules[n]
	places := make([]string, len(rule.Tags))
	for i, t := range rule.Tags {
		places[i] = t.Node
	}
	nodes, faults, err := r.uris.locate(ctx, r.c, &r.limits, places)
	if err != nil {
		return err
	}
	for i, t := range rule.Tags {
		if faults[i] != nil {
			r.report(t.Node, unreachable(faults[i])+" ("+t.Line+")")
			continue
		}
		deadband := rule.Deadband
		if t.Deadband != nil {
			deadband = *t.Deadband
		}
		r.targets = append(r.targets, &target{rule: n, named: t.Line, unnamed: t.Sensor == "", item: item{
			node: nodes[i], place: r.uris.place(nodes[i]), deadband: deadband, trigger: cmp.Or(t.Trigger, rule.Trigger), unit: t.Unit,
			series: reading.Series{Input: r.input, Asset: t.Asset, Device: t.Device, Sensor: t.Sensor},
		}})
	}
	return nil
}

// once leaves out nodes that an earlier rule has chosen.
func (r *resolving) once() {
	seen := make(map[string]bool, len(r.targets))
	kept := r.targets[:0]
	for _, t := range r.targets {
		if !seen[t.place] {
			seen[t.place] = true
			kept = append(kept, t)
		}
	}
	r.targets = kept
}

// rename gives sensors their present name and assets their lifecycles.
func (r *resolving) rename() {
	for _, t := range r.targets {
		a := r.assets[t.series.Asset]
		if now, ok := a.Aliases[t.series.Sensor]; ok {
			t.series.Sensor = now
		}
		t.lifecycles = a.Lifecycles
	}
}

// refuseTwins refuses nodes that give one name: their values would be taken for
// those of one sensor. One of them that is known from before keeps its name.
func (r *resolving) refuseTwins() {
	byName := map[reading.Series][]*target{}
	for _, t := range r.targets {
		if t.unread == "" {
			s := t.series
			s.Device = "" // no part of a feature's key
			byName[s] = append(byName[s], t)
		}
	}
	for s, twins := range byName {
		if len(twins) == 1 {
			continue
		}
		before := known(twins)
		for _, t := range twins {
			if t == before {
				continue
			}
			other := twins[0]
			if other == t {
				other = twins[1]
			}
			t.unread = fmt.Sprintf("it would be called %s, as would %s; leave one out with exclude, or name them in a tag file", label(s), other.place)
		}
	}
}

// known returns the one of twins that was read before, nil if it is none or several.
func known(twins []*target) (one *target) {
	for _, t := range twins {
		switch {
		case !t.before:
		case one != nil:
			return nil
		default:
			one = t
		}
	}
	return one
}

func label(s reading.Series) string {
	return strings.Trim(s.Asset+"/"+s.Sensor, "/")
}

func (r *resolving) items() []item {
	list := make([]item, 0, len(r.targets))
	for _, t := range r.targets {
		if t.unread != "" {
			r.report(t.place, t.unread)
			continue
		}
		list = append(list, t.item)
	}
	return list
}
