package mqtt

import (
	"errors"
	"fmt"
	"strings"

	"tidemark/reading"
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
	naming  naming
	plan    plan
	rules   []valueRule // by sensor
	rule    valueRule   // of sensors that are not listed
	byName  map[string]int
	fixed   bool // the topic and the configuration name all but the sensor
}

func compile(cfg Subscription) (*subscription, error) {
	p, err := parsePattern(cfg.Topic)
	if err != nil {
		return nil, err
	}
	s := &subscription{Subscription: cfg, pattern: p, filter: p.filter(cfg.Share), byName: map[string]int{},
		rule: newValueRule(Sensor{Type: cfg.Value.Type})}
	switch {
	case cfg.QoS > 2:
		return nil, fmt.Errorf("topic %q: qos %d is none of 0, 1 and 2", cfg.Topic, cfg.QoS)
	case strings.ContainsAny(cfg.Share, "/+#"):
		return nil, fmt.Errorf("topic %q: share %q may not hold / + or #", cfg.Topic, cfg.Share)
	case cfg.Sensor.Given() || p.names(sensorPart):
		s.naming = byName
	case cfg.Each != "" && (len(cfg.Sensors) == 0 || cfg.Value.Path != ""):
		s.naming = byKey
	case len(cfg.Sensors) == 0:
		return nil, fmt.Errorf("topic %q: nothing names the sensor; give sensors, sensor, or a {sensor} in the topic", cfg.Topic)
	}
	for i, x := range cfg.Sensors {
		if _, twice := s.byName[x.Name]; twice || x.Name == "" {
			return nil, fmt.Errorf("topic %q: sensor %q has no name of its own", cfg.Topic, x.Name)
		}
		if x.Range != nil && !(x.Range[0] <= x.Range[1]) {
			return nil, fmt.Errorf("topic %q: range of sensor %q is empty", cfg.Topic, x.Name)
		}
		s.byName[x.Name] = i
		s.rules = append(s.rules, newValueRule(x))
	}
	s.plan = newPlan(s.paths())
	s.fixed = s.plan.paths[slotAsset] == "" && s.plan.paths[slotDevice] == "" && s.plan.paths[slotLifecycle] == ""
	return s, nil
}

// paths lists where the fields are, by slot.
func (s *subscription) paths() []string {
	paths := make([]string, fixedSlots, fixedSlots+len(s.Sensors))
	paths[slotTime], paths[slotID], paths[slotSeq], paths[slotQuality] = s.TimePath, s.IDPath, s.SeqPath, s.QualityPath
	paths[slotUnit] = s.Value.Unit.Path
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
	topic string
	sub   *subscription
	names names    // from the topic and written out in the configuration
	ids   []*tagID // byField and fixed: by sensor, as far as met
}

// tagID is a series met before, with what is known of its sensor.
type tagID struct {
	tag    reading.Tag
	sensor int // in the subscription's Sensors; -1 if not listed
	// specimens, if not empty, are the asset's lifecycles with a tag each, in
	// order of time; tag is that of the time before the first.
	specimens []specimen
}

type specimen struct {
	fromNS int64
	tag    reading.Tag
}

// at returns the tag that holds at a source time.
func (t *tagID) at(ns int64) reading.Tag {
	tag := t.tag
	for _, s := range t.specimens {
		if s.fromNS > ns {
			break
		}
		tag = s.tag
	}
	return tag
}

// router finds a topic's route and a series' tag. What it remembers is bounded.
type router struct {
	input  string
	subs   []*subscription
	assets map[string]Asset
	routes recent[string, *route]
	tags   recent[tagKey, *tagID]
}

// tagKey is a series as the source names it.
type tagKey struct {
	sub                              *subscription
	asset, device, lifecycle, sensor string
}

// How many topics and series are remembered, twice over. Beyond that a topic is
// looked up anew, at some microseconds.
const (
	maxRoutes = 16 << 10
	maxTags   = 32 << 10
)

func newRouter(cfg Config) (*router, error) {
	r := &router{input: cfg.Input, assets: cfg.Assets,
		routes: recent[string, *route]{max: maxRoutes}, tags: recent[tagKey, *tagID]{max: maxTags}}
	seen := map[string]bool{}
	for _, c := range cfg.Subscriptions {
		s, err := compile(c)
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
	return r, nil
}

// route returns the route of a topic; nil if no subscription matches. topic may
// be changed afterwards.
func (r *router) route(topic string) *route {
	if rt, ok := r.routes.get(topic); ok {
		return rt
	}
	topic = strings.Clone(topic)
	var rt *route
	for _, s := range r.subs {
		if n, ok := s.pattern.match(topic); ok {
			for part, origin := range map[part]Origin{assetPart: s.Asset, devicePart: s.Device, lifecyclePart: s.Lifecycle, sensorPart: s.Sensor} {
				if !s.pattern.names(part) {
					n[part] = origin.Text
				}
			}
			rt = &route{topic: topic, sub: s, names: n}
			if s.fixed && s.naming == byField {
				rt.ids = make([]*tagID, len(s.Sensors))
			}
			break
		}
	}
	r.routes.put(topic, rt)
	return rt
}

// tag returns the tag of a series as named by the source; its strings may change
// afterwards.
func (r *router) tag(k tagKey) *tagID {
	if t, ok := r.tags.get(k); ok {
		return t
	}
	k.asset, k.device = strings.Clone(k.asset), strings.Clone(k.device)
	k.lifecycle, k.sensor = strings.Clone(k.lifecycle), strings.Clone(k.sensor)
	t := r.newTag(k)
	r.tags.put(k, t)
	return t
}

func (r *router) newTag(k tagKey) *tagID {
	asset := r.assets[k.asset]
	series := reading.Series{Input: r.input, Asset: k.asset, Device: k.device, Lifecycle: k.lifecycle, Sensor: k.sensor}
	t := &tagID{sensor: -1}
	if alias, ok := asset.Aliases[k.sensor]; ok {
		series.Sensor = alias
	}
	if i, ok := k.sub.byName[k.sensor]; ok {
		t.sensor = i
	} else if i, ok := k.sub.byName[series.Sensor]; ok {
		t.sensor = i
	}
	t.tag = reading.MakeTag(series)
	if k.lifecycle == "" {
		for _, l := range asset.Lifecycles {
			series.Lifecycle = l.ID
			t.specimens = append(t.specimens, specimen{l.FromNS, reading.MakeTag(series)})
		}
	}
	return t
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
