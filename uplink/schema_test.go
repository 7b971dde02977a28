package uplink_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/uplink"
)

// schema is the part of JSON Schema that the shipped schemas use.
type schema struct {
	Type                 any
	Const                any
	Enum                 []any
	Pattern              string
	Format               string
	Minimum              *float64
	Required             []string
	Properties           map[string]*schema
	AdditionalProperties any
	Items                *schema
}

// check returns what is wrong with v. It is stricter than JSON Schema in one
// point: a member that the schema does not name is a fault, since a record should
// hold nothing that the schema keeps silent about.
func (s *schema) check(path string, v any) (faults []string) {
	bad := func(format string, a ...any) { faults = append(faults, path+": "+fmt.Sprintf(format, a...)) }
	if s.Type != nil && !s.allows(v) {
		bad("%v is no %v", v, s.Type)
	}
	if s.Const != nil && !same(s.Const, v) {
		bad("%v is not %v", v, s.Const)
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return same(e, v) }) {
		bad("%v is none of %v", v, s.Enum)
	}
	switch v := v.(type) {
	case string:
		if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(v) {
			bad("%q is not %s", v, s.Pattern)
		}
		if s.Format == "date-time" {
			if _, err := time.Parse(time.RFC3339Nano, v); err != nil || !strings.HasSuffix(v, "Z") {
				bad("%q is no UTC time", v)
			}
		}
	case json.Number:
		if f, _ := v.Float64(); s.Minimum != nil && f < *s.Minimum {
			bad("%v is below %v", v, *s.Minimum)
		}
	case []any:
		for i, e := range v {
			faults = append(faults, s.Items.check(fmt.Sprintf("%s[%d]", path, i), e)...)
		}
	case map[string]any:
		faults = append(faults, s.checkMembers(path, v)...)
	}
	return faults
}

func (s *schema) checkMembers(path string, v map[string]any) (faults []string) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			faults = append(faults, path+": no "+name)
		}
	}
	for name, e := range v {
		p := s.Properties[name]
		if p == nil && s.AdditionalProperties == nil && s.Properties != nil {
			faults = append(faults, path+": the schema does not name "+name)
		}
		if m, ok := s.AdditionalProperties.(map[string]any); p == nil && ok {
			p = remarshal(m)
		}
		if p != nil {
			faults = append(faults, p.check(path+"."+name, e)...)
		}
	}
	return faults
}

func remarshal(m map[string]any) *schema {
	b, _ := json.Marshal(m)
	s := &schema{}
	if err := json.Unmarshal(b, s); err != nil {
		panic(err)
	}
	return s
}

func (s *schema) allows(v any) bool {
	types, ok := s.Type.([]any)
	if !ok {
		types = []any{s.Type}
	}
	for _, t := range types {
		switch v := v.(type) {
		case nil:
			ok = t == "null"
		case bool:
			ok = t == "boolean"
		case string:
			ok = t == "string"
		case json.Number:
			_, whole := new(big.Int).SetString(v.String(), 10)
			ok = t == "number" || t == "integer" && whole
		case []any:
			ok = t == "array"
		case map[string]any:
			ok = t == "object"
		}
		if ok {
			return true
		}
	}
	return false
}

// same compares a value of a schema, whose numbers are floats, with one of a
// record.
func same(a, b any) bool {
	if n, ok := b.(json.Number); ok {
		f, err := n.Float64()
		return err == nil && a == f
	}
	return reflect.DeepEqual(a, b)
}

func loadSchema(t *testing.T, kind string) *schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("schema", kind+".json"))
	if err != nil {
		t.Fatal(err)
	}
	s := &schema{}
	if err := json.Unmarshal(data, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func checkRecord(t *testing.T, payload []byte) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(payload)))
	d.UseNumber()
	var v map[string]any
	if payload[0] == '[' {
		var all []json.RawMessage
		if err := json.Unmarshal(payload, &all); err != nil {
			t.Fatalf("%v in %s", err, payload)
		}
		for _, one := range all {
			checkRecord(t, one)
		}
		return
	}
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, payload)
	}
	for _, f := range loadSchema(t, v["type"].(string)).check("$", v) {
		t.Error(f)
	}
}

func TestRecordsSatisfyTheirSchemas(t *testing.T) {
	for name, r := range records() {
		t.Run(name, func(t *testing.T) {
			var m uplink.Message
			if err := enc.Encode(&m, r); err != nil {
				t.Fatal(err)
			}
			checkRecord(t, m.Payload)
		})
	}
}

// A validator that finds nothing wrong proves nothing.
func TestSchemaFindsFaults(t *testing.T) {
	e := feature()
	good := string(payload(t, enc, &e))
	for _, change := range [][2]string{
		{`"revision":2`, `"revision":0`}, {`"revision":2`, `"revision":2.5`}, {`"status":"corrected"`, `"status":"x"`},
		{`"gateway":"line-3",`, ``}, {`"ratio":0.01`, `"ratio":"0.01"`}, {`"flags":[`, `"flags":[1,`},
		{`"schema":1`, `"schema":1,"extra":1`}, {`12:05:00Z"`, `12:05:00+01:00"`}, {`"definition":"9f`, `"definition":"9`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("no %s in %s", change[0], good)
		}
		var v any
		d := json.NewDecoder(strings.NewReader(bad))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if len(loadSchema(t, "feature").check("$", v)) == 0 {
			t.Errorf("%s is taken for %s", change[1], change[0])
		}
	}
}
