package opcua

import (
	"slices"
	"testing"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// FuzzStructure walks what no server should send: nothing of it may be more than
// a reject.
func FuzzStructure(f *testing.F) {
	inner := &structure{name: "inner", fields: []structField{{name: "a", scalar: ua.TypeIDString, array: true}, {name: "v", scalar: ua.TypeIDByteString}}}
	outer := &structure{name: "outer", kind: ua.StructureTypeStructureWithOptionalFields, fields: []structField{
		{name: "n", scalar: ua.TypeIDUint64}, {name: "o", scalar: ua.TypeIDNodeID, optional: true}, {name: "in", nested: inner, array: true},
	}}
	f.Add([]byte{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 85, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 'x', 0, 0, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		it := press()
		it.structures = map[string]*structure{"ns=3;i=77": outer}
		var p reading.Parcel
		it.take(valued(&ua.ExtensionObject{EncodingMask: ua.ExtensionObjectBinary, TypeID: ua.NewFourByteExpandedNodeID(3, 77), Value: &rawStructure{body}}), arrival, 0, &p)
		if len(p.Readings) > maxElements+1 {
			t.Fatalf("%d readings of one value", len(p.Readings))
		}
		for _, r := range p.Rejects {
			if r.Reason == "" {
				t.Fatalf("no reason: %+v", r)
			}
		}
	})
}
