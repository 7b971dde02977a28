package configs_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v4"

	"tidemark/configs"
)

// same compares trees without their places in a file.
var same = cmp.Options{
	cmpopts.IgnoreUnexported(configs.Config{}),
	cmpopts.IgnoreFields(configs.Config{}, "Notices"),
	cmp.AllowUnexported(configs.Feature{}), // the hashes
	cmpopts.IgnoreUnexported(configs.Nodes{}),
	cmp.Comparer(func(a, b configs.Zone) bool { return a.String() == b.String() }),
	cmp.Comparer(func(a, b configs.URL) bool { return a.String() == b.String() }),
	cmpopts.EquateEmpty(),
}

func reference(t *testing.T) string {
	t.Helper()
	data, err := configs.Files.ReadFile("tidemark.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func mustParse(t *testing.T, text string) *configs.Config {
	t.Helper()
	c, err := configs.Parse("test.yaml", []byte(text), "host-1")
	if err != nil {
		t.Fatalf("unexpected faults:\n%v", err)
	}
	return c
}

// uncommented switches the examples of the reference on, and off what stands in
// their place, such as `inputs: []`.
func uncommented(text string) string {
	lines := strings.Split(text, "\n")
	stub := regexp.MustCompile(`^( *\w+:) (\[\]|\{\})$`)
	lines = slices.DeleteFunc(lines, func(l string) bool {
		m := stub.FindStringSubmatch(l)
		return m != nil && slices.ContainsFunc(lines, func(x string) bool { return strings.HasPrefix(x, "#"+m[1]) })
	})
	example := regexp.MustCompile(`^#([^ #]|  )`)
	for i, l := range lines {
		if example.MatchString(l) {
			lines[i] = l[1:]
		}
	}
	return strings.Join(lines, "\n")
}

func TestReferenceIsTheDefaults(t *testing.T) {
	if diff := cmp.Diff(mustParse(t, ""), mustParse(t, reference(t)), same); diff != "" {
		t.Errorf("tidemark.yaml differs from the defaults (-defaults +file):\n%s", diff)
	}
}

func TestReferenceExamplesAreValid(t *testing.T) {
	c := mustParse(t, uncommented(reference(t)))
	if len(c.Inputs) != 3 || len(c.Assets) != 1 || len(c.Features) != 1 || len(c.Uplinks) != 1 {
		t.Errorf("%d inputs, %d assets, %d features, %d uplinks: an example was not switched on", len(c.Inputs), len(c.Assets), len(c.Features), len(c.Uplinks))
	}
}

func TestReferenceMarksDefaultsRightly(t *testing.T) {
	text := uncommented(reference(t))
	whole := mustParse(t, text)
	lines := strings.Split(text, "\n")
	marked := 0
	for i, l := range lines {
		if !strings.HasSuffix(l, "# (default)") {
			continue
		}
		marked++
		without := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n")
		if diff := cmp.Diff(whole, mustParse(t, without), same); diff != "" {
			t.Errorf("line %d is not the default: %s\n%s", i+1, l, diff)
		}
	}
	if marked < 30 {
		t.Errorf("only %d lines are marked as defaults", marked)
	}
}

func TestReferenceHasEveryKey(t *testing.T) {
	var doc yaml.Node
	if err := yaml.Load([]byte(uncommented(reference(t))), &doc); err != nil {
		t.Fatal(err)
	}
	visit(t, reflect.TypeFor[configs.Config](), doc.Content, "", func(reflect.StructField, string, *yaml.Node) {})
}

// visit looks in nodes, all of one type, for each key of the type, and calls fn with
// the first of its values.
func visit(t *testing.T, typ reflect.Type, nodes []*yaml.Node, path string, fn func(f reflect.StructField, path string, n *yaml.Node)) {
	switch typ.Kind() {
	case reflect.Pointer:
		visit(t, typ.Elem(), nodes, path, fn)
	case reflect.Slice:
		var items []*yaml.Node
		for _, n := range nodes {
			if n.Kind == yaml.SequenceNode {
				items = append(items, n.Content...)
			}
			for i := 1; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
				items = append(items, n.Content[i])
			}
		}
		visit(t, typ.Elem(), items, path+"[]", fn)
	case reflect.Struct:
		for i := range typ.NumField() {
			key, option, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
			if key == "" || key == "-" || option == "key" {
				continue
			}
			var values []*yaml.Node
			for _, n := range nodes {
				for j := 0; n.Kind == yaml.MappingNode && j < len(n.Content); j += 2 {
					if n.Content[j].Value == key {
						values = append(values, n.Content[j+1])
					}
				}
			}
			if len(values) == 0 {
				t.Errorf("tidemark.yaml does not have %s", strings.TrimPrefix(path+"."+key, "."))
				continue
			}
			fn(typ.Field(i), path+"."+key, values[0])
			visit(t, typ.Field(i).Type, values, path+"."+key, fn)
		}
	}
}

// differing are the values that a comparison finds to differ, by the name of their
// field.
type differing struct {
	path cmp.Path
	now  map[string][]reflect.Value
}

func (d *differing) PushStep(s cmp.PathStep) { d.path = append(d.path, s) }
func (d *differing) PopStep()                { d.path = d.path[:len(d.path)-1] }

func (d *differing) Report(r cmp.Result) {
	if f, ok := d.path.Last().(cmp.StructField); ok && !r.Equal() {
		_, now := f.Values()
		d.now[f.Name()] = append(d.now[f.Name()], now)
	}
}

// A 0 in the file is 0, or it is refused: nothing else ever stands in for it.
func TestZeroIsNeverReplaced(t *testing.T) {
	var doc yaml.Node
	if err := yaml.Load([]byte(uncommented(reference(t))), &doc); err != nil {
		t.Fatal(err)
	}
	parse := func() (*configs.Config, error) {
		text, err := yaml.Dump(&doc)
		if err != nil {
			t.Fatal(err)
		}
		return configs.Parse("test.yaml", text, "host-1")
	}
	whole, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	stood, refused := 0, 0
	visit(t, reflect.TypeFor[configs.Config](), doc.Content, "", func(f reflect.StructField, path string, n *yaml.Node) {
		was, kind := n.Value, f.Type.Kind()
		if f.Type == reflect.TypeFor[configs.Duration]() {
			n.Value = "0s"
		} else if kind == reflect.Int || kind == reflect.Int64 || kind == reflect.Float64 {
			n.Value = "0"
		}
		if n.Value == was || strings.Trim(was, "0s") == "" || f.Type == reflect.TypeFor[configs.Time]() {
			n.Value = was
			return
		}
		c, err := parse()
		n.Value = was
		if err != nil {
			refused++
			return
		}
		d := &differing{now: map[string][]reflect.Value{}}
		cmp.Equal(whole, c, same, cmp.Reporter(d))
		if len(d.now[f.Name]) == 0 || slices.ContainsFunc(d.now[f.Name], func(v reflect.Value) bool { return !v.IsZero() }) {
			t.Errorf("%s: 0 is neither refused nor does it stand", path)
		}
		stood++
	})
	if stood < 10 || refused < 10 {
		t.Errorf("%d zeros stood and %d were refused: not every number was looked at", stood, refused)
	}
}

func TestDemoIsValid(t *testing.T) {
	data, err := configs.Files.ReadFile("demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := mustParse(t, string(data))
	if len(c.Notices) > 0 {
		t.Errorf("the demo gives notices: %v", c.Notices)
	}
}

// A whole plant in the shape that users were promised.
func TestPromisedShapeIsValid(t *testing.T) {
	data, err := os.ReadFile("testdata/plant.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := mustParse(t, string(data))
	s := c.Inputs[1].MQTT.Subscribe[0]
	if c.Gateway.ID != "line-3" || len(c.Features) != 2 || s.Sensors[0].Path != "v_rms" || s.Sensors[0].ExpectEvery.String() != "10s" ||
		c.Inputs[1].MQTT.ClientID != "tidemark-line-3-in-vibration" || c.Uplinks[0].Backlog.Rate != 500 {
		t.Errorf("%+v", c)
	}
}
