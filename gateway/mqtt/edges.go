package mqtt

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// edges is what is known of Sparkplug's edge nodes. Its exported parts are what is
// remembered over a restart.
type edges struct {
	nodes   map[string]*edge // by group/node
	max     int              // nodes, and metrics in all
	changed bool             // since the memory was last taken
	asking  []string         // topics of the requests to be born again
}

// edge is an edge node as it was born.
type edge struct {
	Alive   bool
	BdSeq   uint64 // of the session that it was born in
	Metrics []metric

	seq     uint64
	counted bool // seq is that of the last message
	stale   bool // what is known is from before a restart
	byAlias map[uint64]int
	byName  map[string]int // by device and name

	askedNS int64 // when it was last asked, on the boot line
	asked   int   // how often, since it was last born
}

// metric is what a birth says of one.
type metric struct {
	Device   string `json:",omitempty"`
	Name     string
	Alias    uint64 `json:",omitempty"`
	HasAlias bool   `json:",omitempty"`
	Type     uint32
	Unit     string `json:",omitempty"`
}

func newEdges(limit int) *edges { return &edges{nodes: map[string]*edge{}, max: limit} }

// node returns what is known of an edge node, nil if there are too many.
func (x *edges) node(from origin) *edge {
	key := from.group + "/" + from.node
	if e, ok := x.nodes[key]; ok {
		return e
	}
	if len(x.nodes) >= x.max {
		return nil
	}
	e := &edge{}
	e.index()
	x.nodes[strings.Clone(key)] = e
	return e
}

// born begins a new life of a node.
func (e *edge) born(p *spPayload) {
	*e = edge{Alive: true}
	e.index()
	e.BdSeq, _ = p.bdSeq()
}

func (e *edge) die() {
	*e = edge{askedNS: e.askedNS, asked: e.asked}
	e.index()
}

// follows counts a message and reports whether none is missing before it. A
// message that comes twice is none.
func (e *edge) follows(kind string, p *spPayload) bool {
	whole := e.Alive && !e.stale
	if p.hasSeq {
		if e.counted && p.seq != e.seq && p.seq != (e.seq+1)%256 {
			whole = false
		}
		e.seq, e.counted = p.seq, true
	}
	return whole || kind == "NBIRTH"
}

// forget forgets the metrics of a device; "" are the node's own.
func (e *edge) forget(device string) {
	e.Metrics = slices.DeleteFunc(e.Metrics, func(m metric) bool { return m.Device == device })
	e.index()
}

func (e *edge) index() {
	e.byAlias, e.byName = map[uint64]int{}, map[string]int{}
	for i := range e.Metrics {
		e.enter(i)
	}
}

func (e *edge) enter(i int) {
	m := &e.Metrics[i]
	e.byName[m.Device+"\x00"+m.Name] = i
	if m.HasAlias {
		e.byAlias[m.Alias] = i
	}
}

// learn enters a metric of a birth.
func (e *edge) learn(device string, m *spMetric) {
	e.Metrics = append(e.Metrics, metric{Device: strings.Clone(device), Name: strings.Clone(m.name), Alias: m.alias, HasAlias: m.hasAlias,
		Type: m.datatype, Unit: strings.Clone(m.unit())})
	e.enter(len(e.Metrics) - 1)
}

// room is how many more metrics may be learnt.
func (x *edges) room() int {
	n := x.max
	for _, e := range x.nodes {
		n -= len(e.Metrics)
	}
	return n
}

// find returns the metric that m is of, nil if no birth names it.
func (e *edge) find(m *spMetric, device string) *metric {
	i, ok := 0, false
	if m.name != "" {
		i, ok = e.byName[device+"\x00"+m.name]
	} else if m.hasAlias {
		i, ok = e.byAlias[m.alias]
	}
	if !ok {
		return nil
	}
	return &e.Metrics[i]
}

func (e *edge) devices() (names []string) {
	for i := range e.Metrics {
		if n := e.Metrics[i].Device; n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// A node is asked again after askFirst, doubling to askMax, until it is born.
const (
	askFirst = 10 * time.Second
	askMax   = 10 * time.Minute
)

// ask has a node asked to be born again.
func (x *edges) ask(e *edge, from origin, bootNS int64) {
	wait := min(askFirst<<min(max(e.asked-1, 0), 10), askMax)
	if e.asked > 0 && bootNS-e.askedNS < int64(wait) {
		return
	}
	e.asked, e.askedNS = e.asked+1, bootNS
	x.asking = append(x.asking, "spBv1.0/"+from.group+"/NCMD/"+from.node)
}

// memory encodes what must be known after a restart; nil if nothing has changed.
func (x *edges) memory() []byte {
	if !x.changed {
		return nil
	}
	x.changed = false
	data, err := json.Marshal(x.nodes)
	if err != nil {
		panic("mqtt: births cannot be encoded: " + err.Error()) // plain data
	}
	return data
}

// remember takes up what memory encoded. What was missed meanwhile is not known:
// every node is asked to be born again.
func (x *edges) remember(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, &x.nodes); err != nil {
		return err
	}
	for key, e := range x.nodes {
		if e == nil {
			delete(x.nodes, key)
			continue
		}
		e.stale = true
		e.index()
	}
	return nil
}
