package opcua

import (
	"fmt"

	"github.com/gopcua/opcua/ua"
)

// What follows scans the built-in types that have a form of their own (OPC UA Part 6
// §5.2.2).

func (s *scan) dataValue() {
	s.deeper()
	defer s.higher()
	mask := s.byte()
	if mask&ua.DataValueValue != 0 {
		s.variant()
	}
	n := 0
	for bit, size := range dataValueParts {
		if mask&(1<<bit) != 0 {
			n += size
		}
	}
	s.take(n)
}

// dataValueParts are the sizes of what follows on a DataValue's value, by the bits of
// its mask: the status, two times, and their picoseconds.
var dataValueParts = [...]int{0, 4, 8, 8, 2, 2}

func (s *scan) variant() {
	s.deeper()
	defer s.higher()
	mask := s.byte()
	id := ua.TypeID(mask & 0x3f)
	switch {
	case id == ua.TypeIDNull:
		return
	case mask&ua.VariantArrayValues == 0:
		s.scalar(id)
		return
	}
	n := s.length()
	for i := 0; i < n && s.err == nil; i++ {
		s.scalar(id)
	}
	if mask&ua.VariantArrayDimensions != 0 {
		s.dimensions(n)
	}
}

// dimensions scans those of an array of n elements. The library multiplies them in 32
// bits, and makes whatever they announce of an array that has too few elements.
func (s *scan) dimensions(n int) {
	dimensions := s.length()
	if dimensions > scanDimensions {
		s.fail(fmt.Errorf("an array has %d dimensions", dimensions))
	}
	elements := int64(1)
	for i := 0; i < dimensions && s.err == nil; i++ {
		if elements *= int64(s.int32()); elements < 1 || elements > int64(n) {
			s.fail(fmt.Errorf("the dimensions of an array are not those of its %d elements", n))
		}
	}
}

// scalar scans a value of a built-in type.
func (s *scan) scalar(id ua.TypeID) {
	switch id {
	case ua.TypeIDBoolean, ua.TypeIDSByte, ua.TypeIDByte:
		s.take(1)
	case ua.TypeIDInt16, ua.TypeIDUint16:
		s.take(2)
	case ua.TypeIDInt32, ua.TypeIDUint32, ua.TypeIDFloat, ua.TypeIDStatusCode:
		s.take(4)
	case ua.TypeIDInt64, ua.TypeIDUint64, ua.TypeIDDouble, ua.TypeIDDateTime:
		s.take(8)
	case ua.TypeIDString, ua.TypeIDByteString, ua.TypeIDXMLElement:
		s.bytes()
	case ua.TypeIDGUID:
		s.take(16)
	case ua.TypeIDNodeID:
		s.nodeID()
	case ua.TypeIDExpandedNodeID:
		s.expandedNodeID()
	case ua.TypeIDQualifiedName:
		s.take(2)
		s.bytes()
	case ua.TypeIDLocalizedText:
		s.localizedText()
	case ua.TypeIDExtensionObject:
		s.extensionObject()
	case ua.TypeIDDataValue:
		s.dataValue()
	case ua.TypeIDVariant:
		s.variant()
	case ua.TypeIDDiagnosticInfo:
		s.diagnosticInfo()
	default:
		s.fail(fmt.Errorf("a value is of the unknown type %d", id))
	}
}

func (s *scan) nodeID() (mask byte) {
	mask = s.byte()
	switch ua.NodeIDType(mask & 0xf) {
	case ua.NodeIDTypeTwoByte:
		s.take(1)
	case ua.NodeIDTypeFourByte:
		s.take(3)
	case ua.NodeIDTypeNumeric:
		s.take(6)
	case ua.NodeIDTypeGUID:
		s.take(18)
	case ua.NodeIDTypeString, ua.NodeIDTypeByteString:
		s.take(2)
		s.bytes()
	default:
		s.fail(fmt.Errorf("a node id is of the unknown kind %d", mask&0xf))
	}
	return mask
}

// Bits of an ExpandedNodeId (Part 6 §5.2.2.10).
const (
	hasNamespaceURI = 0x80
	hasServerIndex  = 0x40
)

func (s *scan) expandedNodeID() {
	mask := s.nodeID()
	if mask&hasNamespaceURI != 0 {
		s.bytes()
	}
	if mask&hasServerIndex != 0 {
		s.take(4)
	}
}

func (s *scan) localizedText() {
	mask := s.byte()
	for _, part := range [...]byte{ua.LocalizedTextLocale, ua.LocalizedTextText} {
		if mask&part != 0 {
			s.bytes()
		}
	}
}

func (s *scan) diagnosticInfo() {
	s.deeper()
	defer s.higher()
	mask := s.byte()
	for _, part := range [...]byte{ua.DiagnosticInfoSymbolicID, ua.DiagnosticInfoNamespaceURI, ua.DiagnosticInfoLocale, ua.DiagnosticInfoLocalizedText} {
		if mask&part != 0 {
			s.take(4)
		}
	}
	if mask&ua.DiagnosticInfoAdditionalInfo != 0 {
		s.bytes()
	}
	if mask&ua.DiagnosticInfoInnerStatusCode != 0 {
		s.take(4)
	}
	if mask&ua.DiagnosticInfoInnerDiagnosticInfo != 0 {
		s.diagnosticInfo()
	}
}

func (s *scan) extensionObject() {
	s.deeper()
	defer s.higher()
	before := s.b
	s.expandedNodeID()
	id := before[:len(before)-len(s.b)]
	encoding := s.byte()
	if s.err != nil || encoding == ua.ExtensionObjectEmpty {
		return
	}
	n := s.length()
	body := scan{b: s.take(n), depth: s.depth}
	if n == 0 || s.err != nil {
		return
	}
	if encoding == ua.ExtensionObjectXML {
		body.bytes()
	} else if t := structureType(id); t != nil {
		body.value(t)
	}
	if body.err != nil {
		s.fail(body.err)
	}
}
