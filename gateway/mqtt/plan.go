package mqtt

import "strings"

// plan is where the fields of an element are. All that are plain names, or names
// below names, are found in one pass over the element; only what needs gjson's
// language is looked up one by one.
type plan struct {
	paths []string // by slot; empty: not wanted
	tree  node
	odd   []int // slots whose path is more than names
}

// node is a place in a payload that some slots want, or something below it.
type node struct {
	name  string
	slots []int
	below []*node
	names map[string]*node // of below, if there are many
	// likely is what the n-th member last was: the next element is mostly written
	// in the same order.
	likely [likelyMembers]*node
}

const (
	likelyMembers = 16
	// manyMembers is from where a map beats comparing names in a row.
	manyMembers = 12
)

func newPlan(paths []string) plan {
	p := plan{paths: paths}
	for slot, path := range paths {
		switch {
		case path == "":
		case plain(path):
			p.tree.want(strings.Split(path, "."), slot)
		default:
			p.odd = append(p.odd, slot)
		}
	}
	p.tree.index()
	return p
}

// newFlatPlan is the plan of a format without levels: a path is a name.
func newFlatPlan(paths []string) plan {
	p := plan{paths: paths}
	for slot, path := range paths {
		if path != "" {
			p.tree.want([]string{path}, slot)
		}
	}
	p.tree.index()
	return p
}

// plain reports whether a gjson path is nothing but names below names.
func plain(path string) bool {
	return !strings.ContainsAny(path, "|#@*?\\!{}[]()<>=%:\"'") && !strings.Contains("."+path+".", "..")
}

func (n *node) want(path []string, slot int) {
	if len(path) == 0 {
		n.slots = append(n.slots, slot)
		return
	}
	for _, c := range n.below {
		if c.name == path[0] {
			c.want(path[1:], slot)
			return
		}
	}
	c := &node{name: path[0]}
	n.below = append(n.below, c)
	c.want(path[1:], slot)
}

func (n *node) index() {
	if len(n.below) > manyMembers {
		n.names = map[string]*node{}
	}
	for _, c := range n.below {
		if n.names != nil {
			n.names[c.name] = c
		}
		c.index()
	}
}

// child returns what is wanted of the i-th member, nil if nothing is.
func (n *node) child(name string, i int) *node {
	if i < likelyMembers {
		if c := n.likely[i]; c != nil && c.name == name {
			return c
		}
	}
	c := n.find(name)
	if c != nil && i < likelyMembers {
		n.likely[i] = c
	}
	return c
}

func (n *node) find(name string) *node {
	if n.names != nil {
		return n.names[name]
	}
	for _, c := range n.below {
		if c.name == name {
			return c
		}
	}
	return nil
}

// put fills the slots that want what stands at n. What is there twice counts the
// first time.
func (n *node) put(f field, slots []field) {
	for _, s := range n.slots {
		if !slots[s].exists() {
			slots[s] = f
		}
	}
}

// putNamed fills the slots of a flat format's field.
func (p *plan) putNamed(name string, f field, slots []field) (wanted bool) {
	n := p.tree.find(name)
	if n == nil || len(n.slots) == 0 {
		return false
	}
	n.put(f, slots)
	return true
}
