package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxNodes and maxDepth bound what aliases can unfold into.
const (
	maxNodes = 500_000
	maxDepth = 64
)

// decoder fills the tree from YAML nodes. It walks the struct, not the file, so
// that `defaults` is known before `features` wherever they stand, and goes on
// after a fault.
type decoder struct {
	cfg    *Config
	faults Faults
	places places
	meant  places // keys that a misspelt one stands for, and where that is
	nodes  int    // visited
	depth  int
	// feature is 1 + the index of the feature being decoded, or 0.
	feature int
}

// noder is a type that a node of several shapes gives.
type noder interface {
	decode(d *decoder, n *yaml.Node, path string)
}

// enum is a string with a closed set of values.
type enum interface{ values() []string }

func (d *decoder) fault(n *yaml.Node, nearest, format string, args ...any) {
	d.faultAt(place{n.Line, n.Column}, nearest, format, args...)
}

func (d *decoder) faultAt(at place, nearest, format string, args ...any) {
	d.faults = append(d.faults, Fault{File: d.cfg.file, Line: at.line, Column: at.column,
		Reason: fmt.Sprintf(format, args...), Nearest: nearest, feature: d.feature})
}

// value decodes n into v, which is addressable and holds its defaults.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	d.places[path] = place{n.Line, n.Column}
	if d.depth++; d.depth > maxDepth {
		d.fault(n, "", "nested deeper than %d levels", maxDepth)
		d.depth--
		return
	}
	defer func() { d.depth-- }()
	if n.Kind == yaml.AliasNode {
		d.value(n.Alias, v, path)
		return
	}
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.fault(n, "", "more than %d values, aliases unfolded", maxNodes)
		}
		return
	}
	if tag := n.ShortTag(); !strings.HasPrefix(tag, "!!") {
		d.fault(n, "", "the tag %s has no meaning here", tag)
		return
	}
	if x, ok := v.Addr().Interface().(noder); ok {
		x.decode(d, n, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		d.pointer(n, v, path)
	case reflect.Struct:
		if _, ok := v.Addr().Interface().(texter); ok {
			d.scalar(n, v)
			return
		}
		d.structure(n, v, path)
	case reflect.Slice:
		d.slice(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	default:
		d.scalar(n, v)
	}
}

func (d *decoder) pointer(n *yaml.Node, v reflect.Value, path string) {
	if null(n) {
		return
	}
	v.Set(reflect.New(v.Type().Elem()))
	d.initialise(v.Elem())
	d.value(n, v.Elem(), path)
}

// initialise sets the defaults of v and of the structs inside it.
func (d *decoder) initialise(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	if x, ok := v.Addr().Interface().(defaulter); ok {
		x.setDefaults(d.cfg)
	}
	for i := range v.NumField() {
		if t := v.Type().Field(i); t.IsExported() && !t.Anonymous {
			d.initialise(v.Field(i))
		}
	}
}

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// field is what the tag of a struct's field says.
type field struct {
	index    int
	key      string
	required bool
}

// fieldsOf lists the keys of a struct, and the index of the field that takes the
// key of the mapping around it, or -1.
func fieldsOf(t reflect.Type) (fields []field, keyField int) {
	keyField = -1
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("yaml")
		if !ok || tag == "-" {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		if option == "key" {
			keyField = i
			continue
		}
		fields = append(fields, field{i, name, option == "required"})
	}
	return fields, keyField
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	fields, _ := fieldsOf(v.Type())
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	if null(n) && slices.IndexFunc(fields, func(f field) bool { return f.required }) < 0 {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.wantsMapping(n, keys)
		return
	}
	given := d.pairs(n)
	for key, p := range given {
		if slices.Contains(keys, key) {
			continue
		}
		if near := d.unknownKey(p.key, key, keys); near != "" {
			d.meant[join(path, near)] = place{p.key.Line, p.key.Column}
		}
	}
	for _, f := range fields {
		p, ok := given[f.key]
		switch {
		case ok:
			d.value(p.value, v.Field(f.index), join(path, f.key))
		case f.required && !d.meant.given(join(path, f.key)):
			d.fault(n, "", "%s is missing", f.key)
		}
	}
}

func (d *decoder) wantsMapping(n *yaml.Node, keys []string) {
	d.fault(n, "", "wants keys and values here (%s), not %s", strings.Join(keys, ", "), shape(n))
}

// misnomers are keys that people know from elsewhere, and what may be meant.
var misnomers = map[string][]string{
	"size": {"window"}, "slide": {"every"}, "hop": {"every"}, "lateness": {"allowed_lateness"},
	"host": {"url", "endpoint"}, "broker": {"url"}, "address": {"url", "endpoint"}, "server": {"url", "endpoint"},
	"username": {"user", "login"}, "user": {"login"}, "pass": {"password", "login"}, "password": {"login"},
	"topics": {"subscribe"}, "uom": {"unit"}, "aggregations": {"functions"}, "statistics": {"functions"},
	"topic_prefix": {"prefix"}, "clientid": {"client_id"},
}

// unknownKey reports a key and returns the one that is probably meant.
func (d *decoder) unknownKey(at *yaml.Node, key string, keys []string) (near string) {
	near = Nearest(key, keys)
	for _, other := range misnomers[strings.ToLower(key)] {
		if near == "" && slices.Contains(keys, other) {
			near = other
		}
	}
	switch {
	case key == "<<":
		d.fault(at, "", "merge keys are not read; what features share stands in defaults")
		return ""
	case near != "":
		d.fault(at, near, "unknown key %q", clip(key))
	default:
		d.fault(at, "", "unknown key %q; here can stand %s", clip(key), strings.Join(keys, ", "))
	}
	return near
}

// clip keeps what is repeated from the file short.
func clip(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:61]) + "..."
	}
	return s
}

type pair struct{ key, value *yaml.Node }

// pairs reads a mapping's keys, and reports those that are no words or come
// twice; the first stands.
func (d *decoder) pairs(n *yaml.Node) map[string]pair {
	given := make(map[string]pair, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			d.fault(n.Content[i], "", "a key is a single word, not %s", shape(k))
			continue
		}
		if first, ok := given[k.Value]; ok {
			d.fault(n.Content[i], "", "the key %q stands here twice, first in line %d", clip(k.Value), first.key.Line)
			continue
		}
		given[k.Value] = pair{n.Content[i], n.Content[i+1]}
	}
	return given
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// at is the path of a list's element.
func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func (d *decoder) slice(n *yaml.Node, v reflect.Value, path string) {
	elem := v.Type().Elem()
	if elem.Kind() == reflect.Struct {
		if _, key := fieldsOf(elem); key >= 0 {
			d.keyed(n, v, path, key)
			return
		}
	}
	if null(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		near := ""
		if n.Kind == yaml.ScalarNode && elem.Kind() == reflect.String {
			near = "[" + clip(n.Value) + "]"
		}
		d.fault(n, near, "wants a list here, not %s", shape(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if path == "features" {
			d.feature = i + 1
		}
		d.initialise(v.Index(i))
		d.value(item, v.Index(i), at(path, i))
	}
	if path == "features" {
		d.feature = 0
	}
}

// keyed decodes a mapping into a list of structs that know their key, in the
// file's order.
func (d *decoder) keyed(n *yaml.Node, v reflect.Value, path string, key int) {
	if null(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fault(n, "", "wants names and what is known of each here, not %s", shape(n))
		return
	}
	given := d.pairs(n)
	v.Set(reflect.MakeSlice(v.Type(), 0, len(given)))
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if given[name].key != n.Content[i] {
			continue // a fault, or the second of its name
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.initialise(item)
		item.Field(key).SetString(name)
		p := at(path, v.Len())
		d.value(n.Content[i+1], item, p)
		d.places[p] = place{n.Content[i].Line, n.Content[i].Column}
		v.Set(reflect.Append(v, item))
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if null(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fault(n, "", "wants keys and values here, not %s", shape(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for key, p := range d.pairs(n) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(p.value, item, join(path, key))
		v.SetMapIndex(reflect.ValueOf(key), item)
	}
}

// shape says in words what a node is, without repeating what it holds.
func shape(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case null(n):
		return "nothing"
	}
	return "a single value"
}
