package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room says what a package, and those below it unless they have a row of their
// own, may import. Test files are held to it too, except for testPeers.
type room struct {
	dir     string
	ours    []string // directories of this module; "..." at the end takes in what is below
	foreign []string // modules, by the beginning of their import path
	why     string
}

// rooms is the table of DESIGN: who may import whom, and why no more.
var rooms = []room{
	{"reading", nil, []string{"github.com/klauspost/compress"},
		"every room speaks the vocabulary, so it must depend on none of them"},
	{"clock", []string{"reading"}, []string{"github.com/beevik/ntp", "github.com/facebook/time", "github.com/rs/zerolog", "golang.org/x/"},
		"how far a clock can be trusted must not depend on who asks"},
	{"windowing", []string{"reading"}, nil,
		"the engine is a function of its batches: whatever else it could reach might change what a replay gives"},
	{"windowing/disorder", []string{"reading"}, nil,
		"what readings are like must not depend on the engine whose tuning it decides"},
	{"windowing/trace", []string{"reading", "windowing"}, nil,
		"a trace says what a journal says: readings, and the engine's configuration"},
	{"history", []string{"reading", "windowing", "windowing/trace", "buffer"}, nil,
		"what is seen inside a gateway must come out the same beside it and from a store at rest, so it knows blocks and not who hands them out"},
	{"buffer", []string{"internal/owner"}, []string{"go.etcd.io/bbolt", "golang.org/x/sys"},
		"the store keeps opaque bytes, so that no change of a record's meaning can break what is on disk"},
	{"uplink", []string{"reading", "windowing", "internal/broker"}, []string{"github.com/eclipse/paho.golang", "github.com/rs/zerolog", "golang.org/x/"},
		"an uplink knows records, not where they come from; what it needs of the outbox is an interface of its own"},
	{"internal/broker", nil, []string{"github.com/gorilla/websocket"},
		"how a broker is reached is the same for inputs and uplinks, so it must know neither"},
	{"internal/archive", []string{"internal/owner"}, nil,
		"what a backup is must not depend on what is in it"},
	{"internal/pki", []string{"internal/owner"}, nil,
		"whom to believe is decided by certificates alone, whatever they are shown for"},
	{"internal/uaserver", nil, []string{"github.com/gopcua/opcua"},
		"a server for demonstrations and tests knows nothing of who reads it"},
	{"internal/topic", nil, nil,
		"what a filter matches is said by the standard alone"},
	{"internal/owner", nil, nil,
		"whose a file is does not depend on what is in it"},
	{"configs", []string{"reading", "internal/topic"}, []string{"go.yaml.in/yaml/v4"},
		"a configuration is data: it is checked without any of the rooms that it configures"},
	{"gateway/mqtt", []string{"reading", "internal/broker", "internal/topic"}, []string{"github.com/eclipse/paho.golang", "github.com/tidwall/gjson", "google.golang.org/protobuf/encoding/protowire", "github.com/rs/zerolog", "golang.org/x/"},
		"a reader brings readings to a sink and knows neither store nor uplink nor the configuration's file"},
	{"gateway/opcua", []string{"reading", "internal/pki"}, []string{"github.com/gopcua/opcua", "github.com/rs/zerolog", "golang.org/x/"},
		"a reader brings readings to a sink and knows neither store nor uplink nor the configuration's file"},
	{"gateway/web", nil, []string{"github.com/rs/zerolog"},
		"what is shown needs no library, and knows of the gateway only what it asks"},
	{"gateway/sim", []string{"internal/uaserver"}, []string{"github.com/mochi-mqtt/server", "github.com/eclipse/paho.golang", "github.com/gopcua/opcua", "golang.org/x/"},
		"the simulated world stands outside of the gateway, or it would prove nothing about it"},
	{"gateway", []string{"..."}, []string{"github.com/rs/zerolog", "github.com/coreos/go-systemd/v22/daemon", "golang.org/x/"},
		"the wiring uses the rooms and leaves protocols and files to them"},
	{"cmd/tidemark", []string{"..."}, []string{"github.com/spf13/cobra", "github.com/rs/zerolog", "golang.org/x/"},
		"the commands print and ask; the work is in the rooms"},
	{"test", []string{"..."}, []string{"github.com/", "go.", "golang.org/x/", "pgregory.net/"},
		"end-to-end tests may reach everything"},
}

// Nobody imports these, whatever the table says.
var sealed = []struct{ dir, except, why string }{
	{"gateway", "cmd/tidemark", "the wiring knows every room; a room that knew it would know them all"},
	{"gateway/sim", "cmd/tidemark", "a simulated world must not find its way into the service"},
	{"cmd/tidemark", "", "commands are the end of the line"},
	{"test", "", "tests are the end of the line"},
}

// testPeers may be imported by test files of any room.
var testPeers = []string{"gateway/sim", "internal/uaserver", "windowing/trace", "github.com/google/go-cmp", "go.uber.org/goleak", "pgregory.net/rapid", "github.com/mochi-mqtt/server", "github.com/eclipse/paho.golang", "github.com/gorilla/websocket", "github.com/beevik/ntp", "go.etcd.io/bbolt", "golang.org/x/"}

// habit is a thing that the code of some places does not do. Test files are free.
type habit struct {
	name  string
	where func(file string) bool
	uses  []string // identifiers of packages, path.Name; path.* is any use
	keys  []token.Token
	why   string
}

var habits = []habit{
	{"engine is pure", in("windowing"),
		[]string{"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.Tick", "time.NewTimer", "time.NewTicker", "time.Sleep",
			"context.*", "log.*", "log/slog.*", "os.*", "io/fs.*", "net.*", "math/rand.*", "math/rand/v2.*", "runtime.*", "sync.*", "sync/atomic.*", "fmt.Print", "fmt.Println", "fmt.Printf"},
		[]token.Token{token.GO, token.SELECT, token.CHAN},
		"law 2: re-stepping the journal must give the same bytes, so time enters as data and nothing runs beside the step"},
	{"one clock", func(f string) bool { return !in("clock")(f) && !in("test")(f) },
		[]string{"time.Now", "time.Since", "time.Until"}, nil,
		"whatever reads the time elsewhere reads a clock that nobody vouches for (SEMANTICS K7)"},
	{"paho in one file", func(f string) bool { return in("uplink")(f) && f != "uplink/mqtt.go" },
		[]string{"github.com/eclipse/paho.golang/paho.*", "github.com/eclipse/paho.golang/packets.*", "github.com/eclipse/paho.golang/autopaho.*", "github.com/eclipse/paho.golang/paho/session.*", "github.com/eclipse/paho.golang/paho/session/state.*"}, nil,
		"order and acknowledgement are ours; the library stays behind one door, to be exchanged there"},
	{"no logger but the injected one", func(f string) bool { return !in("gateway/sim")(f) && !in("test")(f) },
		[]string{"log.*", "log/slog.*", "github.com/rs/zerolog/log.*"}, nil,
		"a global logger cannot be silenced, tested or told apart"},
	{"aligned atomics", func(string) bool { return true },
		[]string{"sync/atomic.AddInt64", "sync/atomic.AddUint64", "sync/atomic.LoadInt64", "sync/atomic.LoadUint64", "sync/atomic.StoreInt64", "sync/atomic.StoreUint64",
			"sync/atomic.SwapInt64", "sync/atomic.SwapUint64", "sync/atomic.CompareAndSwapInt64", "sync/atomic.CompareAndSwapUint64"}, nil,
		"on ARMv7 a field of 64 bits may lie where an atomic must not touch it; the compiler aligns atomic.Int64 and atomic.Uint64"},
}

func in(dir string) func(string) bool {
	return func(file string) bool { return strings.HasPrefix(file, dir+"/") }
}

// Words that must not stand anywhere in the tree. They are pieced together here,
// or this file would break its own rule.
var unwelcome = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`(^|[\s"'=(:])/(wo` + `rk|fa` + `rm)/`), "a path of one machine is wrong on every other"},
	{regexp.MustCompile(`/ho` + `me/[a-z]`), "a path of one machine is wrong on every other"},
	{regexp.MustCompile(`(?i)proxy\.gol` + `ang|registry\.npm` + `js|deb\.deb` + `ian|pypi\.o` + `rg|repo1?\.mav` + `en`), "where packages come from is a setting of the machine"},
}

// notOurs are the folders that .gitignore leaves out, and git's own.
var notOurs = regexp.MustCompile(`^\.git$|^bin$|^dist$|(^|/)node_modules$|^test/interop/peers/[^/]+/site$`)

// violations checks a tree against every rule of this file.
func violations(tree fs.FS) ([]string, error) {
	var found []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && notOurs.MatchString(name):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular() || name == ".git": // a linked work tree has a file of that name
			return nil
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		found = append(found, inText(name, data)...)
		switch {
		case name == "go.mod":
			found = append(found, inModule(data)...)
		case path.Ext(name) == ".go" && !strings.Contains(name, "testdata/"):
			v, err := inCode(name, data)
			if err != nil {
				return err
			}
			found = append(found, v...)
		}
		return nil
	})
	return found, err
}

func inText(name string, data []byte) (found []string) {
	for n, line := range strings.Split(string(data), "\n") {
		for _, u := range unwelcome {
			if word := u.pattern.FindString(line); word != "" {
				found = append(found, fmt.Sprintf("%s:%d: %q must not stand here: %s", name, n+1, word, u.why))
			}
		}
	}
	return found
}

func inModule(data []byte) (found []string) {
	for n, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "replace" {
			found = append(found, fmt.Sprintf("go.mod:%d: replace: a replaced module builds here and nowhere else", n+1))
		}
	}
	return found
}

func inCode(name string, data []byte) ([]string, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, data, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	found := imports(name, f)
	if strings.HasSuffix(name, "_test.go") {
		return found, nil
	}
	for _, h := range habits {
		if h.where(name) {
			found = append(found, h.check(files, f)...)
		}
	}
	return found, nil
}

// imports checks a file's imports against the rooms.
func imports(name string, f *ast.File) (found []string) {
	dir, test := path.Dir(name), strings.HasSuffix(name, "_test.go")
	r := roomOf(dir)
	if r == nil {
		return []string{name + ": no room of the table: give the package a row in test/rules_test.go"}
	}
	for _, spec := range f.Imports {
		what, _ := strconv.Unquote(spec.Path.Value)
		local, ours := strings.CutPrefix(what, "tidemark/")
		switch {
		case what == "tidemark":
			continue
		case ours && local == dir:
			continue // an external test package
		case ours && !matches(local, r.ours) && !(test && slices.Contains(testPeers, local)):
			found = append(found, fmt.Sprintf("%s imports %s: %s", name, what, r.why))
		case ours:
			for _, s := range sealed {
				if local == s.dir && r.dir != s.except && r.dir != "test" && !(test && slices.Contains(testPeers, local)) {
					found = append(found, fmt.Sprintf("%s imports %s: %s", name, what, s.why))
				}
			}
		case !strings.Contains(strings.SplitN(what, "/", 2)[0], "."):
			continue // the standard library
		case !begins(what, r.foreign) && !(test && begins(what, testPeers)):
			found = append(found, fmt.Sprintf("%s imports %s: %s", name, what, r.why))
		}
	}
	return found
}

// roomOf returns the row of the nearest room at or above dir.
func roomOf(dir string) *room {
	for ; dir != "."; dir = path.Dir(dir) {
		for i := range rooms {
			if rooms[i].dir == dir {
				return &rooms[i]
			}
		}
	}
	return nil
}

func matches(local string, allowed []string) bool {
	return slices.Contains(allowed, "...") || slices.Contains(allowed, local)
}

func begins(what string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return what == p || strings.HasPrefix(what, strings.TrimSuffix(p, "/")+"/") || strings.HasSuffix(p, ".") && strings.HasPrefix(what, p)
	})
}

func (h *habit) check(files *token.FileSet, f *ast.File) (found []string) {
	report := func(pos token.Pos, what string) {
		found = append(found, fmt.Sprintf("%s: %s (%s): %s", files.Position(pos), what, h.name, h.why))
	}
	names := map[string]string{} // local name → import path
	for _, spec := range f.Imports {
		what, _ := strconv.Unquote(spec.Path.Value)
		if slices.Contains(h.uses, what+".*") {
			report(spec.Pos(), what)
			continue
		}
		local := path.Base(what)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." && slices.ContainsFunc(h.uses, func(u string) bool { return strings.HasPrefix(u, what+".") }) {
			report(spec.Pos(), "dot import of "+what)
		}
		names[local] = what
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(h.uses, names[x.Name]+"."+n.Sel.Name) {
				report(n.Pos(), names[x.Name]+"."+n.Sel.Name)
			}
		case *ast.GoStmt:
			h.key(token.GO, n, report)
		case *ast.SelectStmt:
			h.key(token.SELECT, n, report)
		case *ast.ChanType:
			h.key(token.CHAN, n, report)
		}
		return true
	})
	return found
}

func (h *habit) key(k token.Token, n ast.Node, report func(token.Pos, string)) {
	if slices.Contains(h.keys, k) {
		report(n.Pos(), k.String())
	}
}

func TestArchitecture(t *testing.T) {
	found, err := violations(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}
