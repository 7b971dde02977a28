package gateway_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tidemark/gateway"
)

var update = flag.Bool("update", false, "rewrite docs/api.md")

const apiHead = `# What the gateway says as JSON

| asked | answers |
|---|---|
| ` + "`tidemark status --json`" + ` | the status: the fields below up to ` + "`lost`" + ` |
| GET /api/view on ` + "`web.listen`" + ` | the status and what the local page draws, once |
| GET /api/stream | the same every second, as server-sent events, while somebody listens; at most 32 do |
| GET /metrics | Prometheus' text format; alert rules are in ` + "`configs/alerts.yaml`" + ` |
| GET /healthz | 200 while the pipeline answers, whatever it waits for; else 503 and why |
| GET /readyz | 200 while what arrives is stored and windowed: the store takes it, and the gateway's clock was trusted once; else 503 and why. A source or an uplink that is away is no reason: a restart would not bring it back |

While the gateway starts, recovers or reloads, nobody answers there, or 503. All of it only
shows. On a loopback address this machine may ask, by a loopback name; elsewhere a token is
needed: ` + "`Authorization: Bearer TOKEN`" + `. The token is sent as it is: let a proxy with TLS or
` + "`ssh -L`" + ` stand between other machines and the gateway.

Fields are added, never renamed or removed, and keep their type; ignore those that you do not
know. Times are RFC 3339 in UTC, empty where there is none; a suffix names the unit of
numbers. Lists and mappings are never null. ` + "`[]`" + ` stands for each entry of a list, ` + "`{}`" + ` for
each of a mapping, ` + "`?`" + ` for a value that may be null or left out.

| field | type | meaning |
|---|---|---|
`

// docs/api.md has the fields that the code has: one that goes or changes its type is
// seen. What they mean is taken from the code when the page is made.
func TestAPIPage(t *testing.T) {
	p := apiPage{comments: map[string]string{}}
	p.b.WriteString(apiHead)
	p.fields(t, "", reflect.TypeFor[gateway.View]())
	const path = "../docs/api.md"
	if *update {
		if err := os.WriteFile(path, []byte(p.b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || !slices.Equal(promised(string(have)), promised(p.b.String())) {
		t.Errorf("docs/api.md is not what the code says (%v): go test ./gateway -run APIPage -update", err)
	}
}

// promised is the page without what its fields mean.
func promised(page string) []string {
	lines := strings.Split(page, "\n")
	for i, l := range lines {
		if cells := strings.SplitN(l, " | ", 3); strings.HasPrefix(l, "| `") && len(cells) == 3 {
			lines[i] = cells[0] + " | " + cells[1]
		}
	}
	return lines
}

type apiPage struct {
	b        strings.Builder
	comments map[string]string // by package path, type and field
}

// fields writes a row for each field of a struct.
func (p *apiPage) fields(t *testing.T, prefix string, of reflect.Type) {
	t.Helper()
	for f := range of.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			p.fields(t, prefix, f.Type.Elem())
			continue
		case !f.IsExported() || name == "-":
			continue
		}
		suffix, kind, inner := shape(f.Type)
		if (opts != "" || suffix == "?") && !strings.HasSuffix(suffix, "?") {
			suffix += "?"
		}
		fmt.Fprintf(&p.b, "| `%s%s%s` | %s | %s |\n", prefix, name, suffix, kind, strings.ReplaceAll(p.comment(t, of, f.Name), "|", `\|`))
		if inner != nil {
			p.fields(t, prefix+name+strings.TrimSuffix(suffix, "?")+".", inner)
		}
	}
}

// shape is how a type looks in JSON: what stands behind the name, its kind, and the
// struct inside.
func shape(of reflect.Type) (suffix, kind string, inner reflect.Type) {
	switch of.Kind() {
	case reflect.Pointer:
		_, kind, inner = shape(of.Elem())
		return "?", kind, inner
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 { // json.RawMessage
			return "?", "number, boolean or text", nil
		}
		s, kind, inner := shape(of.Elem())
		return "[]" + s, kind, inner
	case reflect.Map:
		s, kind, inner := shape(of.Elem())
		return "{}" + s, kind, inner
	case reflect.Struct:
		return "", "object", of
	case reflect.Bool:
		return "", "boolean", nil
	case reflect.String:
		return "", "text", nil
	case reflect.Float32, reflect.Float64:
		return "", "number", nil
	}
	return "", "integer", nil
}

// comment is what the source says of a field.
func (p *apiPage) comment(t *testing.T, of reflect.Type, field string) string {
	t.Helper()
	if _, read := p.comments[of.PkgPath()]; !read {
		p.comments[of.PkgPath()] = ""
		p.read(t, of.PkgPath())
	}
	return p.comments[of.PkgPath()+"."+of.Name()+"."+field]
}

// read takes in the comments of a package's structs.
func (p *apiPage) read(t *testing.T, pkg string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", strings.TrimPrefix(pkg, "tidemark/"), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", pkg, err)
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
						p.comments[pkg+"."+spec.Name.Name+"."+name.Name] = strings.TrimPrefix(text, name.Name+" is ")
					}
				}
			}
			return false
		})
	}
}
