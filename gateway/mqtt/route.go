package mqtt

import (
	"errors"
	"fmt"
	"strings"

	"tidemark/internal/topic"
)

// naming is how an element's sensor is known.
type naming uint8

const (
	byField naming = iota // a field for each sensor
	byName                // the topic or the element names it
	byKey                 // it is a member of an object
)

// subscription is a Subscription made ready.
type subscription struct {
	Subscription
	pattern pattern
	filter  string // as sent to the broker, with the share group
	format  format
	naming  naming
	plan    plan
	rules   []valueRule // by sensor
	rule    valueRule   // of sensors that are not listed
	byName  map[string]int
	fixed   bool // the topic and the configuration name all but the sensor
}

func compile(cfg Subscription, edges *edges) (*subscription, error) {
	p, err := parsePattern(cfg.Topic)
	if err != nil {
		return nil, err
	}
	s := &subscription{Subscription: cfg, pattern: p, filter: p.filter(cfg.Share), byName: map[string]int{},
		rule: newValueRule(Sensor{Type: cfg.Value.Type, Map: cfg.Value.Map})}
	switch {
	case cfg.QoS > 2:
		return nil, fmt.Errorf("topic %q: qos %d is none of 0, 1 and 2", cfg.Topic, cfg.QoS)
	case strings.ContainsAny(cfg.Share, "/+#"):
		return nil, fmt.Errorf("topic %q: share %q may not hold / + or #", cfg.Topic, cfg.Share)
	}
	if err := s.declare(); err != nil {
		return nil, fmt.Errorf("topic %q: %w", cfg.Topic, err)
	}
	for i, x := range cfg.Sensors {
		if _, twice := s.byName[x.Name]; twice || x.Name == "" {
			return nil, fmt.Errorf("topic %q: sensor %q has no name of its own", cfg.Topic, x.Name)
		}
		if x.Range != nil && !(x.Range[0] <= x.Range[1]) {
			return nil, fmt.Errorf("topic %q: range of sensor %q is empty", cfg.Topic, x.Name)
		}
		s.byName[x.Name] = i
		if x.Map == nil {
			x.Map = cfg.Value.Map
		}
		s.rules = append(s.rules, newValueRule(x))
	}
	if s.Format == JSON {
		s.plan = newPlan(s.paths())
	} else {
		s.plan = newFlatPlan(s.paths())
	}
	s.fixed = s.plan.paths[slotAsset] == "" && s.plan.paths[slotDevice] == "" && s.plan.paths[slotLifecycle] == ""
	s.format = newFormat(s, edges)
	return s, nil
}

// paths lists where the fields are, by slot.
func (s *subscription) paths() []string {
	paths := make([]string, fixedSlots, fixedSlots+len(s.Sensors))
	paths[slotTime], paths[slotID], paths[slotSeq], paths[slotQuality] = s.TimePath, s.IDPath, s.SeqPath, s.QualityPath
	paths[slotUnit] = s.Value.Unit.Path
	if s.Waveform != nil {
		paths[slotRate], paths[slotStep] = s.Waveform.Rate.Path, s.Waveform.StepPath
	}
	for _, o := range []struct {
		part   part
		slot   int
		origin Origin
	}{{assetPart, slotAsset, s.Asset}, {devicePart, slotDevice, s.Device}, {lifecyclePart, slotLifecycle, s.Lifecycle}, {sensorPart, slotSensor, s.Sensor}} {
		if !s.pattern.names(o.part) {
			paths[o.slot] = o.origin.Path
		}
	}
	if s.naming != byField {
		if s.Value.Path != "@this" {
			paths[slotValue] = s.Value.Path
		}
		return paths
	}
	for _, x := range s.Sensors {
		path := x.Path
		if path == "" {
			path = x.Name
		}
		paths = append(paths, path)
	}
	return paths
}

// route is what is known of a topic.
type route struct {
	topic    string
	sub      *subscription
	presence *presenceRule // sub is nil then
	names    names         // from the topic and written out in the configuration

	// What was met before, where topic and configuration name all but the sensor.
	ids   []*series          // byField: by sensor
	only  *series            // where the topic names the sensor
	named map[string]*series // where the element does
}

// remember keeps a series that an element named. The map is made anew rather than
// grow with names that come once.
func (r *route) remember(id *series) {
	if r.named == nil || len(r.named) >= maxNamed {
		r.named = map[string]*series{}
	}
	r.named[id.name] = id
}

// How many topics are remembered, twice over, and sensors of one of them. Beyond
// that they are looked up anew, at about a microsecond.
const (
	maxRoutes = 16 << 10
	maxNamed  = 16 << 10
)

// filter is what a session subscribes to.
type filter struct {
	topic, share string // as configured
	qos          byte
	text         string // as sent
}

func (f *filter) covers(o *filter) bool {
	return f.share == o.share && f.qos >= o.qos && topic.Covers(f.topic, o.topic)
}

// fewest leaves out of the filters of subscriptions and presence those that another
// one covers: a broker may send a message once for each filter that it matches
// (MQTT 5, 3.3.4), and who it belongs to is decided here.
func (r *router) fewest() (fs []filter) {
	var all []filter
	for _, s := range r.subs {
		all = append(all, filter{s.Topic, s.Share, s.QoS, s.filter})
	}
	for _, p := range r.presence {
		all = append(all, filter{p.Topic, "", p.QoS, p.filter})
	}

next:
	for i := range all {
		for j := range all {
			if j != i && all[j].covers(&all[i]) && (j < i || !all[i].covers(&all[j])) {
				continue next
			}
		}
		fs = append(fs, all[i])
	}
	return fs
}

// router finds a topic's route and its series. What it remembers is bounded.
type router struct {
	seriesTable
	subs     []*subscription
	presence []*presenceRule
	filters  []filter // that the session has
	edges    *edges
	routes   recent[string, *route]
}

func newRouter(cfg Config) (*router, error) {
	r := &router{seriesTable: newSeriesTable(cfg), edges: newEdges(cfg.MaxSeries), routes: recent[string, *route]{max: maxRoutes}}
	seen := map[string]bool{}
	for _, c := range cfg.Subscriptions {
		s, err := compile(c, r.edges)
		if err != nil {
			return nil, err
		}
		if seen[s.filter] {
			return nil, fmt.Errorf("topic %q: subscribed to twice; a topic belongs to one subscription", c.Topic)
		}
		seen[s.filter] = true
		r.subs = append(r.subs, s)
	}
	if len(r.subs) == 0 {
		return nil, errors.New("nothing to subscribe to")
	}
	for _, c := range cfg.Presence {
		p, err := newPresenceRule(c)
		if err != nil {
			return nil, err
		}
		if seen[p.filter] {
			return nil, fmt.Errorf("presence: topic %q: subscribed to already", c.Topic)
		}
		seen[p.filter] = true
		r.presence = append(r.presence, p)
	}
	r.filters = r.fewest()
	return r, nil
}

// route returns the route of a topic; nil if nothing matches. Presence goes first:
// its topics often lie among those of readings. topic may be changed afterwards.
func (r *router) route(topic string) *route {
	if rt, ok := r.routes.get(topic); ok {
		return rt
	}
	topic = strings.Clone(topic)
	rt := r.find(topic)
	r.routes.put(topic, rt)
	return rt
}

func (r *router) find(topic string) *route {
	for _, p := range r.presence {
		if n, ok := p.pattern.match(topic); ok {
			return &route{topic: topic, presence: p, names: n}
		}
	}
	for _, s := range r.subs {
		n, ok := s.pattern.match(topic)
		if !ok {
			continue
		}
		for part, origin := range map[part]Origin{assetPart: s.Asset, devicePart: s.Device, lifecyclePart: s.Lifecycle, sensorPart: s.Sensor} {
			if !s.pattern.names(part) {
				n[part] = origin.Text
			}
		}
		rt := &route{topic: topic, sub: s, names: n}
		if s.fixed && s.naming == byField {
			rt.ids = make([]*series, len(s.Sensors))
		}
		return rt
	}
	return nil
}

// recent remembers what was last asked for: at most 2·max values, in two
// generations of which the older one is forgotten when the younger is full.
type recent[K comparable, V any] struct {
	max        int
	young, old map[K]V
}

func (c *recent[K, V]) get(k K) (V, bool) {
	if v, ok := c.young[k]; ok {
		return v, true
	}
	v, ok := c.old[k]
	return v, ok
}

// put remembers v under k, which must not change afterwards.
func (c *recent[K, V]) put(k K, v V) {
	if c.young == nil || len(c.young) >= c.max {
		c.old, c.young = c.young, make(map[K]V)
	}
	c.young[k] = v
}
