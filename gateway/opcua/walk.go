package opcua

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// Bounds on a tree, against servers whose nodes have no end.
const (
	maxTreeDepth = 32
	maxTreeNodes = 200_000
)

// treeNode is a node that a walk came to.
type treeNode struct {
	node     *ua.NodeID
	path     []string // browse names below the start
	variable bool
}

// walk goes through the tree below start, level by level, and calls visit with
// each node once, by its shortest path; visit says whether to go on below it. The
// server's own objects (i=2253) are left out unless they are the start. It
// returns a sentence if the tree was not gone through to its end.
func walk(ctx context.Context, c caller, l *operations, start *ua.NodeID, visit func(treeNode) bool) (cut string, err error) {
	seen := map[string]bool{start.String(): true, ua.NewNumericNodeID(0, id.Server).String(): true}
	level := []treeNode{{node: start}}
	var unseen hidden
	for depth := 0; len(level) > 0; depth++ {
		if depth == maxTreeDepth {
			return fmt.Sprintf("the tree is deeper than %d levels; what is below is not read", maxTreeDepth), nil
		}
		nodes := make([]*ua.NodeID, len(level))
		for i := range level {
			nodes[i] = level[i].node
		}
		below, faults, err := children(ctx, c, l, nodes)
		if err != nil {
			return "", err
		}
		if depth == 0 && faults[0] != nil && !errors.Is(faults[0], errEndless) {
			return "", faults[0]
		}
		unseen.note(level, faults)
		var next []treeNode
		for i, list := range below {
			for _, ch := range list {
				key := ch.node.String()
				if ch.property || seen[key] {
					continue
				}
				if len(seen) == maxTreeNodes {
					return fmt.Sprintf("there are more than %d nodes; those above are not read. Write a narrower rule", maxTreeNodes), nil
				}
				seen[key] = true
				n := treeNode{ch.node, append(slices.Clone(level[i].path), ch.name), ch.variable}
				if visit(n) {
					next = append(next, n)
				}
			}
		}
		level = next
	}
	return unseen.sentence(), nil
}

// hidden are nodes that a walk could not look below, or not to the end.
type hidden struct {
	n     int
	first treeNode
	why   error
}

func (h *hidden) note(level []treeNode, faults []error) {
	for i, fault := range faults {
		if fault == nil {
			continue
		}
		if h.n == 0 {
			h.first, h.why = level[i], fault
		}
		h.n++
	}
}

func (h *hidden) sentence() string {
	if h.n == 0 {
		return ""
	}
	others := ""
	if h.n > 1 {
		others = fmt.Sprintf(" and %d other nodes", h.n-1)
	}
	path := cmp.Or(strings.Join(h.first.path, "/"), h.first.node.String())
	return fmt.Sprintf("what is below %s%s is not known, or not all of it: %s", path, others, unreachable(h.why))
}

// choose returns the nodes that a browse rule chooses, in order of their paths.
func (r *Nodes) choose(ctx context.Context, c caller, l *operations, start *ua.NodeID, into func(node *ua.NodeID, path []string, s reading.Series)) (cut string, err error) {
	match := parsePattern(r.Match)
	var exclude []pattern
	for _, e := range r.Exclude {
		exclude = append(exclude, parsePattern(e))
	}
	type choice struct {
		node   *ua.NodeID
		path   []string
		series reading.Series
	}
	var found []choice
	cut, err = walk(ctx, c, l, start, func(n treeNode) bool {
		for _, e := range exclude {
			if e.whole(n.path) {
				return false
			}
		}
		if n.variable && !slices.ContainsFunc(exclude, func(e pattern) bool { return e.match(n.path, nil) }) {
			s := reading.Series{Asset: r.Asset}
			if match.match(n.path, &s) {
				found = append(found, choice{n.node, n.path, s})
			}
		}
		return match.leads(n.path)
	})
	// The server's order may be another one tomorrow.
	slices.SortFunc(found, func(a, b choice) int { return slices.Compare(a.path, b.path) })
	for _, f := range found {
		into(f.node, f.path, f.series)
	}
	return cut, err
}

// label is what a rule is called where something is wrong with it.
func (r *Nodes) label() string {
	if len(r.Tags) > 0 || r.Under == "" {
		return "tags"
	}
	return strings.TrimSpace(r.Under)
}
