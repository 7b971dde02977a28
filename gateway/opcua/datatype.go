package opcua

import (
	"context"
	"fmt"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
)

// dataTypes is what a server says of its data types.
type dataTypes struct {
	byType     map[string]*dataType
	byEncoding map[string]*structure // by the encoding's id, as values carry it
}

// dataType is one type: a scalar by its base, or a structure.
type dataType struct {
	base      ua.TypeID // 0: a structure, or not known
	structure *structure
	parent    *ua.NodeID
}

// base returns the scalar that a type is, 0 for structures and what is not known.
func (d *dataTypes) base(n *ua.NodeID) ua.TypeID {
	if builtIn(n) {
		return scalarID(n)
	}
	if t := d.byType[n.String()]; t != nil {
		return t.base
	}
	return 0
}

// scalarID is the built-in type with a data type's number; the abstract types
// travel as what can hold them.
func scalarID(n *ua.NodeID) ua.TypeID {
	switch n.IntID() {
	case id.BaseDataType, id.Number, id.Integer, id.UInteger:
		return ua.TypeIDVariant
	case id.Structure:
		return ua.TypeIDExtensionObject
	case id.Enumeration:
		return ua.TypeIDInt32
	}
	if n.IntID() <= uint32(ua.TypeIDDiagnosticInfo) {
		return ua.TypeID(n.IntID())
	}
	return 0
}

// maxTypeDepth bounds chains of types, against ones that lead back.
const maxTypeDepth = 10

// readTypes asks for the definitions (Part 3 §5.8.3) of types, of the types of
// their fields, and of what they derive from as far as that tells what they are.
func (r *resolving) readTypes(ctx context.Context, asked []*ua.NodeID) (*dataTypes, error) {
	d := &dataTypes{byType: map[string]*dataType{}, byEncoding: map[string]*structure{}}
	for depth := 0; len(asked) > 0 && depth < maxTypeDepth; depth++ {
		var todo []*ua.NodeID
		for _, n := range asked {
			key := n.String()
			if !final(n) && d.byType[key] == nil {
				d.byType[key] = &dataType{}
				todo = append(todo, n)
			}
		}
		var err error
		if asked, err = r.readDefinitions(ctx, d, todo); err != nil {
			return nil, err
		}
	}
	d.finish()
	return d, nil
}

// final reports whether a type needs no asking about.
func final(n *ua.NodeID) bool { return n.Namespace() == 0 && scalarID(n) != 0 }

// readDefinitions asks about types and returns those that have to be known too.
func (r *resolving) readDefinitions(ctx context.Context, d *dataTypes, types []*ua.NodeID) (more []*ua.NodeID, err error) {
	ids := make([]*ua.ReadValueID, len(types))
	for i, n := range types {
		ids[i] = attribute(n, ua.AttributeIDDataTypeDefinition)
	}
	values, err := readAll(ctx, r.c, &r.limits.read, ids)
	if err != nil {
		return nil, err
	}
	var derived []*ua.NodeID
	for i, dv := range values {
		t := d.byType[types[i].String()]
		var definition any
		if o, _ := value[*ua.ExtensionObject](dv); o != nil {
			definition = o.Value
		}
		switch definition := definition.(type) {
		case *ua.EnumDefinition:
			t.base = ua.TypeIDInt32
		case *ua.StructureDefinition:
			t.structure = &structure{name: types[i].String(), kind: definition.StructureType}
			for _, f := range definition.Fields {
				more = append(more, f.DataType)
			}
			d.define(t.structure, definition)
		default:
			derived = append(derived, types[i])
		}
	}
	parents, err := r.readParents(ctx, derived)
	for i, p := range parents {
		if p != nil {
			d.byType[derived[i].String()].parent = p
			more = append(more, p)
		}
	}
	return more, err
}

// define fills in a structure, whose fields' types may not be known yet.
func (d *dataTypes) define(s *structure, definition *ua.StructureDefinition) {
	if s.kind > ua.StructureTypeUnion {
		s.unusable = fmt.Sprintf("%s has fields of changing types", s.name)
	}
	for _, f := range definition.Fields {
		if f.ValueRank > 1 {
			s.unusable = fmt.Sprintf("its field %s is a matrix", f.Name)
		}
		s.fields = append(s.fields, structField{name: f.Name, dataType: f.DataType, array: f.ValueRank == 1, optional: f.IsOptional})
	}
	if e := definition.DefaultEncodingID; e != nil && e.Namespace() != 0 {
		d.byEncoding[e.String()] = s
		ua.RegisterExtensionObject(e, new(rawStructure))
	}
}

// finish connects what the server said about single types.
func (d *dataTypes) finish() {
	for _, t := range d.byType {
		for p, depth := t.parent, 0; p != nil && t.base == 0 && t.structure == nil && depth < maxTypeDepth; depth++ {
			if final(p) {
				t.base = scalarID(p)
				break
			}
			up := d.byType[p.String()]
			if up == nil {
				break
			}
			t.base, p = up.base, up.parent
		}
	}
	for _, t := range d.byType {
		if t.structure == nil {
			continue
		}
		for i := range t.structure.fields {
			d.connect(t.structure, &t.structure.fields[i])
		}
	}
}

func (d *dataTypes) connect(s *structure, f *structField) {
	if final(f.dataType) {
		f.scalar = scalarID(f.dataType)
		return
	}
	if t := d.byType[f.dataType.String()]; t != nil {
		f.scalar, f.nested = t.base, t.structure
	}
	if f.scalar == ua.TypeIDExtensionObject || f.scalar == 0 && f.nested == nil {
		s.unusable = fmt.Sprintf("the server does not say what its field %s is", f.name)
	}
}

// readParents asks what types derive from; nil where the server does not say.
func (r *resolving) readParents(ctx context.Context, types []*ua.NodeID) ([]*ua.NodeID, error) {
	parents := make([]*ua.NodeID, 0, len(types))
	err := inBatches(types, &r.limits.browse, func(part []*ua.NodeID) error {
		req := &ua.BrowseRequest{View: &ua.ViewDescription{ViewID: ua.NewTwoByteNodeID(0)}}
		for _, n := range part {
			req.NodesToBrowse = append(req.NodesToBrowse, &ua.BrowseDescription{
				NodeID: n, BrowseDirection: ua.BrowseDirectionInverse, ReferenceTypeID: ua.NewTwoByteNodeID(id.HasSubtype), IncludeSubtypes: true,
			})
		}
		resp, err := ask[*ua.BrowseResponse](ctx, r.c, req)
		if err != nil {
			return err
		}
		if len(resp.Results) != len(part) {
			return wrongCount("browse", len(part), len(resp.Results))
		}
		for _, result := range resp.Results {
			var p *ua.NodeID
			if len(result.References) > 0 && result.References[0].NodeID != nil {
				p = result.References[0].NodeID.NodeID
			}
			parents = append(parents, p)
		}
		return nil
	})
	return parents, err
}
