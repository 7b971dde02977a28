package opcua

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/gopcua/opcua/ua"
)

const (
	// scanDepth is how deep values may stand in values: far deeper than a value is taken
	// apart, and nothing to a stack.
	scanDepth = 64
	// scanDimensions are those of a matrix.
	scanDimensions = 16
)

var (
	errCutShort = errors.New("it is cut short")
	errTooDeep  = fmt.Errorf("values stand more than %d levels deep in values", scanDepth)
)

// scan goes through encoded values as the library's decoder will (OPC UA Part 6 §5.2),
// and makes nothing of them: what it has gone through without an error has lengths that
// are there, and ends. After an error it reads nothing but zeroes.
type scan struct {
	b     []byte // what is left
	depth int
	err   error
}

// scanMessage scans an answer with its type before it.
func scanMessage(b []byte) error {
	s := &scan{b: b}
	s.expandedNodeID()
	if s.err != nil {
		return s.err
	}
	// The library knows which type it is, and says so only by making one.
	_, v, _ := ua.DecodeService(b[:len(b)-len(s.b)])
	if v == nil {
		return errors.New("it is of a type that is not known")
	}
	s.value(reflect.TypeOf(v))
	return s.err
}

func (s *scan) fail(err error) {
	if s.err == nil {
		s.b, s.err = nil, err
	}
}

func (s *scan) take(n int) []byte {
	if n < 0 || n > len(s.b) {
		s.fail(errCutShort)
		return nil
	}
	b := s.b[:n]
	s.b = s.b[n:]
	return b
}

func (s *scan) byte() byte {
	if b := s.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (s *scan) int32() int {
	if b := s.take(4); b != nil {
		return int(int32(binary.LittleEndian.Uint32(b)))
	}
	return 0
}

// length is the number of elements, or bytes, that follow; each has one byte at least.
func (s *scan) length() int {
	n := s.int32()
	if n < -1 || n > len(s.b) {
		s.fail(fmt.Errorf("something has %d elements in %d bytes", n, len(s.b)))
		return 0
	}
	return max(n, 0) // -1 is null
}

func (s *scan) bytes() { s.take(s.length()) }

// deeper goes one level down.
func (s *scan) deeper() {
	if s.depth++; s.depth > scanDepth {
		s.fail(errTooDeep)
	}
}

func (s *scan) higher() { s.depth-- }

// scanners go through what is of a type of the library's; there are only so many.
var scanners sync.Map

// value scans one of a type.
func (s *scan) value(t reflect.Type) { scanner(t)(s) }

func scanner(t reflect.Type) func(*scan) {
	if f, ok := scanners.Load(t); ok {
		return f.(func(*scan))
	}
	f := makeScanner(t)
	scanners.Store(t, f)
	return f
}

func makeScanner(t reflect.Type) func(*scan) {
	switch t.Kind() {
	case reflect.Pointer:
		return scanner(t.Elem())
	case reflect.Struct:
		if f := specialScanner(t); f != nil {
			return f
		}
		return fieldsScanner(t)
	case reflect.String:
		return (*scan).bytes
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return (*scan).bytes
		}
		element := scanner(t.Elem())
		return func(s *scan) {
			for n := s.length(); n > 0 && s.err == nil; n-- {
				element(s)
			}
		}
	case reflect.Bool, reflect.Int8, reflect.Uint8, reflect.Int16, reflect.Uint16, reflect.Int32, reflect.Uint32, reflect.Int64, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return fixed(int(t.Size()))
	}
	return func(s *scan) { s.fail(fmt.Errorf("nobody knows how a %v is encoded", t)) }
}

func fixed(n int) func(*scan) { return func(s *scan) { s.take(n) } }

// fieldsScanner goes through a structure field by field.
func fieldsScanner(t reflect.Type) func(*scan) {
	fields := make([]reflect.Type, t.NumField())
	for i := range fields {
		fields[i] = t.Field(i).Type
	}
	known := sync.OnceValue(func() []func(*scan) { // not before: a type may have itself in it
		list := make([]func(*scan), len(fields))
		for i, f := range fields {
			list[i] = scanner(f)
		}
		return list
	})
	return func(s *scan) {
		s.deeper()
		for _, f := range known() {
			f(s)
		}
		s.higher()
	}
}

// specialScanner is for structures that are not encoded field by field.
func specialScanner(t reflect.Type) func(*scan) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return fixed(8)
	case reflect.TypeFor[ua.DataValue]():
		return (*scan).dataValue
	case reflect.TypeFor[ua.Variant]():
		return (*scan).variant
	case reflect.TypeFor[ua.ExtensionObject]():
		return (*scan).extensionObject
	case reflect.TypeFor[ua.DiagnosticInfo]():
		return (*scan).diagnosticInfo
	case reflect.TypeFor[ua.NodeID]():
		return func(s *scan) { s.nodeID() }
	case reflect.TypeFor[ua.ExpandedNodeID]():
		return (*scan).expandedNodeID
	case reflect.TypeFor[ua.LocalizedText]():
		return (*scan).localizedText
	case reflect.TypeFor[ua.GUID]():
		return fixed(16)
	case reflect.TypeFor[rawStructure]():
		return func(s *scan) { s.take(len(s.b)) }
	}
	return nil
}

// structureType is what the library makes of a structure with an encoded type id; nil:
// it keeps nothing of it. It says so only by making one, here of a single byte.
func structureType(id []byte) reflect.Type {
	o := new(ua.ExtensionObject)
	_, _ = o.Decode(slices.Concat(id, []byte{ua.ExtensionObjectBinary, 1, 0, 0, 0, 0}))
	return reflect.TypeOf(o.Value)
}
