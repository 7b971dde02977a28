package opcua

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// Bounds on what one value may become. A server that sends more has a node that
// is no sensor.
const (
	maxElements = 1024      // of an array, or fields of a structure, all levels together
	maxDepth    = 8         // structures in structures
	maxText     = 64 * 1024 // bytes
)

// flattener turns one value into readings. Element 3 of an array is the sensor
// name[3], of a matrix name[1][3], the field f of a structure name.f. Enumerations
// are their numbers, times RFC 3339, localized texts their text.
type flattener struct {
	it   *item
	r    reading.Reading
	p    *reading.Parcel
	path []byte // of the part, below the item's sensor
	n    int    // parts so far
}

// flatten takes v, which stands depth levels below the node's value.
func (f *flattener) flatten(v any, depth int) {
	if value, ok := scalar(v); ok {
		f.reading(value)
		return
	}
	switch v := v.(type) {
	case []byte:
		f.reject("byte_string", "a ByteString is no value of a sensor; leave the node out with exclude, or have the server give its parts as numbers", v)
	case *ua.Variant:
		f.nested(v.Value(), depth)
	case *ua.ExtensionObject:
		f.structure(v, depth)
	case nil:
		f.reading(reading.Value{})
	default:
		f.compound(reflect.ValueOf(v), depth)
	}
}

func (f *flattener) nested(v any, depth int) {
	if depth == maxDepth {
		f.reject("too_deep", fmt.Sprintf("the value is nested more than %d levels deep", maxDepth), nil)
		return
	}
	f.flatten(v, depth+1)
}

// compound takes arrays, and the structures that the library knows.
func (f *flattener) compound(v reflect.Value, depth int) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if !f.below(func() { f.path = strconv.AppendInt(append(f.path, '['), int64(i), 10); f.path = append(f.path, ']') },
				func() { f.nested(v.Index(i).Interface(), depth) }) {
				return
			}
		}
	case v.Kind() == reflect.Struct && standard(v.Type()):
		for i := range v.NumField() {
			if !f.field(v.Type().Field(i).Name, v.Field(i).Interface(), depth) {
				return
			}
		}
	case v.Kind() == reflect.Uint32, v.Kind() == reflect.Int32: // an enumeration's own type
		f.reading(whole(v))
	default:
		f.reject("type_unsupported", fmt.Sprintf("a value of type %T is no value of a sensor; leave the node out with exclude", v.Interface()), nil)
	}
}

// standard reports whether t is a structure of the specification, and no wrapper
// that only the library has.
func standard(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[ua.DataValue](), reflect.TypeFor[ua.DiagnosticInfo]():
		return false
	}
	return true
}

func whole(v reflect.Value) reading.Value {
	if v.CanInt() {
		return reading.IntValue(v.Int())
	}
	return reading.UintValue(v.Uint())
}

func (f *flattener) field(name string, v any, depth int) bool {
	return f.below(func() { f.path = append(append(f.path, '.'), name...) }, func() { f.nested(v, depth) })
}

// below takes a part of the value whose name step appends. It reports false when
// there are too many.
func (f *flattener) below(step, take func()) bool {
	if f.n == maxElements {
		f.reject("too_many_elements", fmt.Sprintf("the value has more than %d elements; those above are not read. Leave the node out with exclude, or have the server give the elements that matter as nodes", maxElements), nil)
		f.n++
	}
	if f.n > maxElements {
		return false
	}
	had := len(f.path)
	step()
	take()
	f.path = f.path[:had]
	return true
}

func (f *flattener) structure(o *ua.ExtensionObject, depth int) {
	switch v := o.Value.(type) {
	case *rawStructure:
		s := f.it.structures[o.TypeID.NodeID.String()]
		if s == nil {
			f.unknown("the server does not describe its structure")
			return
		}
		if err := s.walk(v.body, func(name string, value any, depth int) { f.field(name, value, depth) }, depth); err != nil {
			f.unknown(err.Error())
		}
	case nil:
		if o.EncodingMask == ua.ExtensionObjectEmpty {
			f.reading(reading.Value{})
			return
		}
		f.unknown("the server does not describe its structure")
	case *ua.XMLElement:
		f.unknown("the server sends it as XML")
	default:
		f.compound(reflect.ValueOf(v), depth)
	}
}

func (f *flattener) unknown(why string) {
	f.reject("structure_unknown", "the structure cannot be taken apart: "+why+"; leave the node out with exclude, or read its parts as nodes where the server has them", nil)
}

func (f *flattener) reading(v reading.Value) {
	if len(v.Text()) > maxText {
		f.reject("text_too_long", fmt.Sprintf("the text is longer than %d bytes; leave the node out with exclude", maxText), []byte(v.Text()[:64]))
		return
	}
	f.n++
	f.it.give(f.path, v, &f.r, f.p)
}

func (f *flattener) reject(reason, detail string, excerpt []byte) {
	f.p.Rejects = append(f.p.Rejects, reading.Reject{
		Kind: reading.Malformed, Reason: reason, Detail: detail, Place: f.it.place + string(f.path),
		Excerpt: append([]byte(nil), excerpt[:min(len(excerpt), maxExcerpt)]...), IngestNS: f.r.IngestNS,
	})
}

// maxExcerpt is how much of what is refused is shown.
const maxExcerpt = 64

// scalar returns the value of a scalar type, and false for what is none. Every
// number stays exact.
func scalar(v any) (reading.Value, bool) {
	switch v := v.(type) {
	case bool:
		return reading.BoolValue(v), true
	case int8:
		return reading.IntValue(int64(v)), true
	case byte:
		return reading.IntValue(int64(v)), true
	case int16:
		return reading.IntValue(int64(v)), true
	case uint16:
		return reading.IntValue(int64(v)), true
	case int32:
		return reading.IntValue(int64(v)), true
	case uint32:
		return reading.IntValue(int64(v)), true
	case int64:
		return reading.IntValue(v), true
	case uint64:
		return reading.UintValue(v), true
	case float32:
		return reading.FloatValue(float64(v)), true
	case float64:
		return reading.FloatValue(v), true
	case string:
		return reading.TextValue(v), true
	case ua.StatusCode:
		return reading.IntValue(int64(v)), true
	}
	return described(v)
}

// described returns the types that have a text form of their own.
func described(v any) (reading.Value, bool) {
	switch v := v.(type) {
	case time.Time:
		if v.IsZero() {
			return reading.Value{}, true // OPC UA's null
		}
		return reading.TextValue(v.UTC().Format(time.RFC3339Nano)), true
	case ua.XMLElement:
		return reading.TextValue(string(v)), true
	case *ua.LocalizedText:
		return text(v != nil, func() string { return v.Text })
	case *ua.QualifiedName:
		return text(v != nil, func() string { return v.Name })
	case *ua.GUID:
		return text(v != nil, v.String)
	case *ua.NodeID:
		return text(v != nil, v.String)
	case *ua.ExpandedNodeID:
		return text(v != nil && v.NodeID != nil, v.String)
	}
	return reading.Value{}, false
}

func text(there bool, s func() string) (reading.Value, bool) {
	if !there {
		return reading.Value{}, true
	}
	return reading.TextValue(s()), true
}
