package configs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds a configuration's size; a thousand sensors take some 100 KB.
const maxFile = 16 << 20

// Load reads and checks a file. The error is Faults, or that of reading the file.
// With Faults that lie in features only, the tree is there too: without them.
func Load(path string) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read configuration: %w", err)
	}
	return ParseFile(path, data)
}

// readFile reads a file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	return data, err
}

// ParseFile checks data as the content of the file at path on this host, and
// reads the tag files that it names. What is wrong with one of those is no fault of
// the configuration: Nodes.TagList tells.
func ParseFile(path string, data []byte) (*Config, error) {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	cfg, err := Parse(path, data, host)
	if cfg != nil {
		cfg.readTags()
	}
	return cfg, err
}

func (c *Config) readTags() {
	for i := range c.Inputs {
		if c.Inputs[i].OPCUA == nil {
			continue
		}
		for j := range c.Inputs[i].OPCUA.Nodes {
			if n := &c.Inputs[i].OPCUA.Nodes[j]; n.Tags != "" {
				n.list, n.listErr = readTags(string(n.Tags))
			}
		}
	}
}

// StoreOf returns the path of the store that a configuration file names, however
// much else of it is at fault; the default where that cannot be told.
func StoreOf(path string) Path {
	cfg := &Config{file: path, places: places{}}
	d := &decoder{cfg: cfg, places: cfg.places, meant: places{}}
	d.initialise(reflect.ValueOf(cfg).Elem())
	if data, err := os.ReadFile(path); err == nil {
		if root, err := document(path, data); err == nil && root != nil {
			d.value(root, reflect.ValueOf(cfg).Elem(), "")
		}
	}
	return cfg.Store.Path
}

// Parse checks a configuration. name stands in faults, and relative paths are
// taken from its directory; host is the default of gateway.id. The error is
// Faults; with Faults that lie in features only, the tree is there too: without
// them.
func Parse(name string, data []byte, host string) (*Config, error) {
	cfg := &Config{file: name, text: string(data), places: places{"": {1, 1}}}
	d := &decoder{cfg: cfg, places: cfg.places, meant: places{}}
	d.initialise(reflect.ValueOf(cfg).Elem())
	root, err := document(name, data)
	if err != nil {
		return nil, err
	}
	if root != nil {
		d.value(root, reflect.ValueOf(cfg).Elem(), "")
	}
	c := newChecker(cfg, d.faults, d.meant)
	c.complete(host)
	c.check()
	return c.result()
}

// document returns the root of the one document in data, nil if there is none.
func document(name string, data []byte) (*yaml.Node, error) {
	fail := func(at place, reason string) (*yaml.Node, error) {
		return nil, Faults{{File: name, Line: at.line, Column: at.column, Reason: reason}}
	}
	if at, reason := unreadable(data); reason != "" {
		return fail(at, reason)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var doc, next yaml.Node
	for i, n := range []*yaml.Node{&doc, &next} {
		switch err := loader.Load(n); {
		case errors.Is(err, io.EOF):
			n.Kind = 0
		case err != nil:
			at, reason := yamlFault(err, data)
			return fail(at, reason)
		case i == 1:
			return fail(place{next.Line, next.Column}, "a second document begins here; a configuration is one")
		}
	}
	if doc.Kind == 0 || len(doc.Content) == 0 || null(doc.Content[0]) {
		return nil, nil
	}
	return doc.Content[0], nil
}

// unreadable finds what the YAML reader refuses without saying where.
func unreadable(data []byte) (place, string) {
	at := place{1, 1}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return at, "not UTF-8 text"
		case r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			return at, fmt.Sprintf("the control character U+%04X cannot stand in a configuration", r)
		case r == '\n':
			at = place{at.line + 1, 0}
		}
		at.column++
		i += size
	}
	return at, ""
}

// yamlFault turns the library's error into a place and a reason.
func yamlFault(err error, data []byte) (place, string) {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return place{1, 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	}
	at := place{max(1, e.Mark.Line), max(1, e.Mark.Column)}
	reason := strings.TrimPrefix(e.Message, "yaml: ")
	if e.ContextMsg != "" {
		at = place{max(1, e.ContextMark.Line), max(1, e.ContextMark.Column)}
		reason = fmt.Sprintf("%s (%s, at line %d)", reason, e.ContextMsg, e.Mark.Line)
	}
	if lines := bytes.Split(data, []byte("\n")); e.Mark.Line >= 1 && e.Mark.Line <= len(lines) {
		line := lines[e.Mark.Line-1]
		if indent := len(line) - len(bytes.TrimLeft(line, " ")); indent < len(line) && line[indent] == '\t' {
			return place{e.Mark.Line, indent + 1}, "not YAML: a tab stands where only spaces indent"
		}
	}
	return at, "not YAML: " + reason
}

// result parts faults of features from the others.
func (c *checker) result() (*Config, error) {
	slices.SortStableFunc(c.Notices, func(a, b Notice) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	faults := c.faults.sort()
	if len(faults) == 0 {
		return c.Config, nil
	}
	byFeature := make([]Faults, len(c.Features)+1)
	for _, f := range faults {
		byFeature[f.feature] = append(byFeature[f.feature], f)
	}
	if len(byFeature[0]) > 0 {
		return nil, faults
	}
	kept := []Feature{}
	for i, f := range c.Features {
		if mine := byFeature[i+1]; len(mine) == 0 {
			kept, c.stands = append(kept, f), append(c.stands, i)
		} else {
			c.Disabled = append(c.Disabled, DisabledFeature{f.Name, mine})
		}
	}
	c.Features = kept
	return c.Config, faults
}
