package opcua

import (
	"context"
	"fmt"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// Bits of an access level (Part 3 §8.57).
const (
	canRead        = 0x01
	canReadHistory = 0x04
)

// describe asks the server what the targets are: their type, their access, their
// unit and range.
func (r *resolving) describe(ctx context.Context) error {
	nodes := make([]*ua.NodeID, len(r.targets))
	for i, t := range r.targets {
		nodes[i] = t.node
	}
	below, _, err := children(ctx, r.c, &r.limits, nodes) // what cannot be browsed has no properties
	if err != nil {
		return err
	}
	for i, list := range below {
		for _, ch := range list {
			switch {
			case ch.property && ch.name == "EngineeringUnits":
				r.targets[i].units = ch.node
			case ch.property && ch.name == "EURange":
				r.targets[i].span = ch.node
			}
		}
	}
	if err := r.attributes(ctx); err != nil {
		return err
	}
	return r.types(ctx)
}

// attributes reads what describes the targets, all of it in one go.
func (r *resolving) attributes(ctx context.Context) error {
	var ids []*ua.ReadValueID
	var answers []func(*ua.DataValue)
	add := func(node *ua.NodeID, a ua.AttributeID, answer func(*ua.DataValue)) {
		if node != nil {
			ids, answers = append(ids, attribute(node, a)), append(answers, answer)
		}
	}
	noRange := 0
	for _, t := range r.targets {
		add(t.node, ua.AttributeIDDataType, func(dv *ua.DataValue) { r.dataType(t, dv) })
		add(t.node, ua.AttributeIDUserAccessLevel, func(dv *ua.DataValue) {
			level, told := value[byte](dv)
			t.history, t.closed = level&canReadHistory != 0, told && level&canRead == 0
		})
		if t.unnamed {
			add(t.node, ua.AttributeIDBrowseName, func(dv *ua.DataValue) {
				if name, ok := value[*ua.QualifiedName](dv); ok {
					t.series.Sensor = name.Name
				}
			})
		}
		add(t.units, ua.AttributeIDValue, func(dv *ua.DataValue) { r.unit(t, dv) })
		if t.deadband.Percent > 0 && t.span == nil {
			t.deadband = Deadband{}
			noRange++
		}
	}
	values, err := readAll(ctx, r.c, &r.limits.read, ids)
	if err != nil {
		return err
	}
	for i, answer := range answers {
		answer(values[i])
	}
	if noRange > 0 {
		r.remark(r.input, fmt.Sprintf("%d nodes have a deadband in percent and no EURange at the server to take it of: every change of theirs is sent; give an absolute deadband instead", noRange))
	}
	return nil
}

func (r *resolving) dataType(t *target, dv *ua.DataValue) {
	node, ok := value[*ua.NodeID](dv)
	expanded, also := value[*ua.ExpandedNodeID](dv) // as some servers have it
	switch {
	case ok:
		t.dataType = node
	case also:
		t.dataType = expanded.NodeID
	case quality(dv).Level == reading.Good: // one that says something else has a value all the same
	case dv.Status == ua.StatusBadAttributeIDInvalid:
		t.unread = "it is no variable and has no value; name the variable itself"
	default:
		t.unread = explain(dv.Status)
	}
	if t.unread != "" && t.named != "" {
		t.unread += " (" + t.named + ")"
	}
}

// unit takes the server's unit where the configuration has none, and says where
// they disagree.
func (r *resolving) unit(t *target, dv *ua.DataValue) {
	o, _ := value[*ua.ExtensionObject](dv)
	if o == nil {
		return
	}
	eu, ok := o.Value.(*ua.EUInformation)
	if !ok {
		return
	}
	unit, remark := unitOf(eu)
	switch {
	case t.unit == "" && remark != "":
		r.remark(t.place, remark)
	case t.unit == "":
		t.unit = unit
	case unit != "" && unit != t.unit:
		r.remark(t.place, fmt.Sprintf("the configuration says %s and the server %s; readings carry what the configuration says (%s)", t.unit, unit, t.named))
	}
}

// value returns what an attribute holds, if it is there and of that type.
func value[T any](dv *ua.DataValue) (v T, ok bool) {
	if dv == nil || !dv.Has(ua.DataValueValue) || dv.Value == nil || quality(dv).Level != reading.Good {
		return v, false
	}
	v, ok = dv.Value.Value().(T)
	return v, ok
}

// types finds out what the structures among the targets' types look like, and
// refuses nodes without a value that could be a reading.
func (r *resolving) types(ctx context.Context) error {
	var asked []*ua.NodeID
	for _, t := range r.targets {
		if t.dataType != nil && !builtIn(t.dataType) {
			asked = append(asked, t.dataType)
		}
	}
	types, err := r.readTypes(ctx, asked)
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		if t.dataType == nil {
			continue
		}
		if types.base(t.dataType) == ua.TypeIDByteString {
			t.unread = "it is a ByteString, which is no value of a sensor; leave it out with exclude, or have the server give its parts as numbers"
		}
		if !builtIn(t.dataType) {
			t.structures = types.byEncoding
		}
	}
	return nil
}

// builtIn reports whether a data type is one of the scalars (Part 6 §5.1.2), so
// that nothing needs to be asked about it.
func builtIn(n *ua.NodeID) bool {
	return n.Namespace() == 0 && n.IntID() >= id.Boolean && n.IntID() <= id.DiagnosticInfo && n.IntID() != id.Structure
}
