package opcua

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/gopcua/opcua/ua"
)

// structure is how a structured data type lays out its fields (Part 3 §8.48 and
// §8.49, encoded by Part 6 §5.2.6 to §5.2.8).
type structure struct {
	name     string
	kind     ua.StructureType
	fields   []structField
	unusable string // why values of it cannot be taken apart; empty: they can
}

type structField struct {
	name     string
	dataType *ua.NodeID
	scalar   ua.TypeID  // of built-in types; 0: nested
	nested   *structure // of structured types
	array    bool
	optional bool
}

// rawStructure is the body of a structure that the library does not know. The
// library drops what it does not know, so this is registered for the encodings of
// every structure that a server describes. The same type under an id that another
// server uses for something else does no harm: it only keeps the bytes.
type rawStructure struct{ body []byte }

// Decode implements ua.BinaryDecoder.
func (r *rawStructure) Decode(b []byte) (int, error) {
	r.body = append([]byte(nil), b...)
	return len(b), nil
}

// Encode implements ua.BinaryEncoder.
func (r *rawStructure) Encode() ([]byte, error) { return r.body, nil }

// walk calls field with the name and value of each field in the body: a scalar of
// the library's types, a slice of them, or a part to be walked in its turn.
func (s *structure) walk(body []byte, field func(name string, value any, depth int), depth int) error {
	if s.unusable != "" {
		return errors.New(s.unusable)
	}
	buf := ua.NewBuffer(body)
	err := s.read(buf, "", field, depth)
	if err == nil && buf.Error() != nil {
		err = buf.Error()
	}
	if err == nil && buf.Len() > 0 {
		err = fmt.Errorf("%s has %d bytes more than its description", s.name, buf.Len())
	}
	return err
}

func (s *structure) read(buf *ua.Buffer, prefix string, field func(string, any, int), depth int) error {
	if depth == maxDepth {
		return fmt.Errorf("it is nested more than %d levels deep", maxDepth)
	}
	present, chosen := ^uint32(0), 0
	switch s.kind {
	case ua.StructureTypeStructureWithOptionalFields:
		present = buf.ReadUint32()
	case ua.StructureTypeUnion:
		chosen = int(buf.ReadUint32())
		if chosen == 0 {
			return nil // the null union
		}
		if chosen > len(s.fields) {
			return fmt.Errorf("%s has no alternative %d", s.name, chosen)
		}
	}
	optional := 0
	for i := range s.fields {
		f := &s.fields[i]
		if chosen != 0 && chosen != i+1 {
			continue
		}
		if f.optional {
			optional++
			if present&(1<<(optional-1)) == 0 {
				continue
			}
		}
		if err := f.read(buf, prefix+f.name, field, depth); err != nil {
			return err
		}
	}
	return nil
}

func (f *structField) read(buf *ua.Buffer, name string, field func(string, any, int), depth int) error {
	if !f.array {
		return f.one(buf, name, field, depth)
	}
	n := buf.ReadInt32()
	if buf.Error() != nil {
		return buf.Error()
	}
	if int(n) > maxElements {
		return fmt.Errorf("%s has %d elements", name, n)
	}
	for i := range max(n, 0) { // -1 is the null array
		if err := f.one(buf, name+"["+strconv.Itoa(int(i))+"]", field, depth); err != nil {
			return err
		}
	}
	return nil
}

func (f *structField) one(buf *ua.Buffer, name string, field func(string, any, int), depth int) error {
	if f.nested != nil {
		if f.nested.unusable != "" {
			return errors.New(f.nested.unusable)
		}
		return f.nested.read(buf, name+".", field, depth+1)
	}
	s := scan{b: buf.Bytes()} // the message's scan could not know what the body is made of
	if s.scalar(f.scalar); s.err != nil {
		return fmt.Errorf("%s cannot be decoded: %w", name, s.err)
	}
	v := readScalar(buf, f.scalar)
	if buf.Error() != nil {
		return fmt.Errorf("%s cannot be decoded: %w", name, buf.Error())
	}
	field(name, v, depth)
	return nil
}

// readScalar reads one value of a built-in type.
func readScalar(buf *ua.Buffer, id ua.TypeID) any {
	switch id {
	case ua.TypeIDBoolean:
		return buf.ReadBool()
	case ua.TypeIDSByte:
		return buf.ReadInt8()
	case ua.TypeIDByte:
		return buf.ReadByte()
	case ua.TypeIDInt16:
		return buf.ReadInt16()
	case ua.TypeIDUint16:
		return buf.ReadUint16()
	case ua.TypeIDInt32:
		return buf.ReadInt32()
	case ua.TypeIDUint32:
		return buf.ReadUint32()
	case ua.TypeIDInt64:
		return buf.ReadInt64()
	case ua.TypeIDUint64:
		return buf.ReadUint64()
	case ua.TypeIDFloat:
		return buf.ReadFloat32()
	case ua.TypeIDDouble:
		return buf.ReadFloat64()
	case ua.TypeIDString:
		return buf.ReadString()
	case ua.TypeIDDateTime:
		return buf.ReadTime()
	case ua.TypeIDByteString:
		return buf.ReadBytes()
	case ua.TypeIDXMLElement:
		return ua.XMLElement(buf.ReadString())
	case ua.TypeIDStatusCode:
		return ua.StatusCode(buf.ReadUint32())
	case ua.TypeIDGUID:
		return readStruct[ua.GUID](buf)
	case ua.TypeIDNodeID:
		return readStruct[ua.NodeID](buf)
	case ua.TypeIDExpandedNodeID:
		return readStruct[ua.ExpandedNodeID](buf)
	case ua.TypeIDQualifiedName:
		return readStruct[ua.QualifiedName](buf)
	case ua.TypeIDLocalizedText:
		return readStruct[ua.LocalizedText](buf)
	case ua.TypeIDExtensionObject:
		return readStruct[ua.ExtensionObject](buf)
	case ua.TypeIDVariant:
		return readStruct[ua.Variant](buf)
	}
	return nil
}

func readStruct[T any](buf *ua.Buffer) *T {
	v := new(T)
	buf.ReadStruct(v)
	return v
}
