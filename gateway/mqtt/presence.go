package mqtt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tidemark/reading"
)

// Presence is a topic that says whether a device is there: its last will, or a
// heartbeat. A message that says that the device is gone idles the device at once;
// any other proves it alive (SEMANTICS I4, I7).
type Presence struct {
	// Topic is as a Subscription's; it names {device}, unless Device does, or {asset}
	// and {sensor}.
	Topic  string
	QoS    byte
	Device string // where the topic does not name it
	// Path is where the state stands in a JSON payload; empty: the payload is it.
	Path string
	// Gone are the states that mean that the device is gone; default offline.
	Gone []string
}

// presenceRule is a Presence made ready.
type presenceRule struct {
	Presence
	pattern pattern
	filter  string
	// alive is when a device's life was last passed on, on the boot line: a
	// heartbeat each second is not worth a mark each second.
	alive recent[string, int64]
}

// aliveEvery is how often a device's life is passed on, in nanoseconds. It is well
// below any sensible idle_after.
const aliveEvery = 5e9

func newPresenceRule(c Presence) (*presenceRule, error) {
	p, err := parsePattern(c.Topic)
	if err != nil {
		return nil, fmt.Errorf("presence: %w", err)
	}
	if !p.names(devicePart) && c.Device == "" && !p.names(sensorPart) {
		return nil, fmt.Errorf("presence: topic %q: whose presence? name the {device}", c.Topic)
	}
	if c.QoS > 2 {
		return nil, errors.New("presence: qos is 0, 1 or 2")
	}
	if len(c.Gone) == 0 {
		c.Gone = []string{"offline"}
	}
	return &presenceRule{Presence: c, pattern: p, filter: p.filter(""), alive: recent[string, int64]{max: maxRoutes}}, nil
}

// present reads a message about a device's presence.
func (d *Decoder) present() {
	p, topic := d.route.presence, d.route.topic
	if len(d.raw) == 0 {
		return // a retained message is deleted: it says nothing of the device
	}
	if p.gone(d.raw) {
		p.alive.put(topic, d.msg.At.BootNS-aliveEvery)
		d.presenceMark(reading.MarkIdle, p)
		return
	}
	if d.msg.Retain {
		return // the device was there once
	}
	if last, ok := p.alive.get(topic); !ok || d.msg.At.BootNS-last >= aliveEvery {
		p.alive.put(topic, d.msg.At.BootNS)
		d.presenceMark(reading.MarkActive, p)
	}
}

func (p *presenceRule) gone(payload string) bool {
	state := strings.TrimSpace(payload)
	if p.Path != "" {
		state = gjson.Get(payload, p.Path).String()
	} else if len(state) >= 2 && state[0] == '"' && state[len(state)-1] == '"' {
		state = state[1 : len(state)-1]
	}
	return slices.Contains(p.Gone, state)
}

func (d *Decoder) presenceMark(kind reading.MarkKind, p *presenceRule) {
	n := d.route.names
	device := n[devicePart]
	if device == "" {
		device = p.Device
	}
	d.out.Marks = append(d.out.Marks, reading.Mark{Kind: kind, At: len(d.out.Readings), Input: d.router.input,
		Device: device, Asset: n[assetPart], Sensor: n[sensorPart], TimeMS: reading.NoTime})
}
