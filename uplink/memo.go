package uplink

import "tidemark/windowing"

// memo remembers what many records have alike, and lends room. It is for one
// goroutine; the zero value is ready for use.
type memo struct {
	names  windowing.Names
	units  map[function]string
	topics map[topicKey]string
	of     Encoder // whose the topics are
	room   []byte  // to hash from
}

type (
	function struct{ name, unit string } // and the unit of its values
	topicKey struct {
		kind                   windowing.EmissionKind
		asset, sensor, feature string
	}
)

// memoMax bounds each of a memo's maps.
const memoMax = 1 << 13

// unit is windowing.FunctionUnit. The nil memo remembers nothing.
func (k *memo) unit(name, unit string) string {
	if k == nil {
		return windowing.FunctionUnit(name, unit)
	}
	f := function{name, unit}
	u, ok := k.units[f]
	if !ok {
		if len(k.units) == 0 || len(k.units) >= memoMax {
			k.units = make(map[function]string)
		}
		u = windowing.FunctionUnit(name, unit)
		k.units[f] = u
	}
	return u
}

// topic is c's emissionTopic.
func (k *memo) topic(c *Encoder, e *windowing.Emission) string {
	if e.Kind != windowing.EmitFeature && e.Kind != windowing.EmitClosed {
		return c.emissionTopic(e)
	}
	if k.of.Gateway != c.Gateway || k.of.Prefix != c.Prefix || len(k.topics) == 0 || len(k.topics) >= memoMax {
		k.topics, k.of = make(map[topicKey]string), *c
	}
	key := topicKey{e.Kind, e.Asset, e.Sensor, e.Feature.Name}
	t, ok := k.topics[key]
	if !ok {
		t = c.emissionTopic(e)
		k.topics[key] = t
	}
	return t
}
