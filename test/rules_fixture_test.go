package test

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestRulesCanFail feeds each rule with a file that breaks it, and with one that
// does not: a rule that cannot fail protects nothing.
func TestRulesCanFail(t *testing.T) {
	f := func(file, content, want string) {
		t.Helper()
		found, err := violations(fstest.MapFS{file: {Data: []byte(content)}})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			return
		}
		all := strings.Join(found, "\n")
		switch {
		case want == "" && len(found) > 0:
			t.Errorf("%s breaks no rule, but: %s\n%s", file, all, content)
		case !strings.Contains(all, want) || want != "" && len(found) != 1:
			t.Errorf("%s: want one violation with %q, got %q\n%s", file, want, found, content)
		}
	}
	imp := func(what string) string { return "package p\nimport _ \"" + what + "\"\n" }

	// Every room keeps to its row.
	for _, r := range rooms {
		if r.dir == "test" {
			continue
		}
		f(r.dir+"/x.go", imp("example.com/anything"), r.why)
		f(r.dir+"/x_test.go", imp("example.com/anything"), r.why)
		f(r.dir+"/x.go", imp("strings"), "")
		for _, m := range r.foreign {
			f(r.dir+"/mqtt.go", imp(strings.TrimSuffix(m, "/")+"/x"), "")
		}
		if !matches("buffer", r.ours) && r.dir != "buffer" {
			f(r.dir+"/x.go", imp("tidemark/buffer"), r.why)
		}
		for _, o := range r.ours {
			if o != "..." {
				f(r.dir+"/x.go", imp("tidemark/"+o), "")
			}
		}
	}
	f("gateway/elsewhere/x.go", imp("example.com/anything"), "protocols")
	f("novel/x.go", imp("strings"), "no room of the table")

	// Nobody imports what is sealed.
	for _, s := range sealed {
		f("gateway/elsewhere/x.go", imp("tidemark/"+s.dir), s.why)
		if s.except != "" {
			f(s.except+"/x.go", imp("tidemark/"+s.dir), "")
		}
	}
	f("buffer/x_test.go", imp("tidemark/gateway/sim"), "")
	f("uplink/x_test.go", imp("pgregory.net/rapid"), "")
	f("uplink/x.go", imp("pgregory.net/rapid"), "an uplink knows records")

	// The engine is pure.
	const law2 = "law 2"
	f("windowing/x.go", "package p\nimport \"context\"\nvar _ context.Context", law2)
	f("windowing/x.go", "package p\nimport \"os\"\nvar _ = os.Args", law2)
	f("windowing/x.go", "package p\nimport log \"math/rand/v2\"\nvar _ = log.N", law2)
	f("windowing/x.go", "package p\nimport clk \"time\"\nvar _ = clk.NewTimer", law2)
	f("windowing/x.go", "package p\nimport . \"fmt\"\nvar _ = 1", law2)
	f("windowing/x.go", "package p\nfunc f() { go f() }", law2)
	f("windowing/x.go", "package p\nfunc f() { select {} }", law2)
	f("windowing/x.go", "package p\nvar c chan int", law2)
	f("windowing/x.go", "package p\nimport \"time\"\nvar _ = time.UnixMilli", "")
	f("windowing/x_test.go", "package p\nfunc f() { go f() }", "")

	// One clock.
	f("uplink/x.go", "package p\nimport \"time\"\nvar _ = time.Now()", "K7")
	f("cmd/tidemark/x.go", "package p\nimport t \"time\"\nvar _ = t.Since", "K7")
	f("gateway/x.go", "package p\nimport . \"time\"\nvar _ = Now", "K7")
	f("clock/x.go", "package p\nimport \"time\"\nvar _ = time.Now()", "")
	f("uplink/x_test.go", "package p\nimport \"time\"\nvar _ = time.Now()", "")
	f("uplink/x.go", "package p\nimport \"time\"\nvar _ = time.NewTimer", "")

	// Paho behind one door.
	f("uplink/x.go", imp("github.com/eclipse/paho.golang/paho"), "one door")
	f("uplink/mqtt.go", imp("github.com/eclipse/paho.golang/paho"), "")

	// No global logger.
	f("clock/x.go", imp("log"), "global logger")
	f("configs/x.go", imp("log/slog"), "global logger")
	f("gateway/sim/x.go", imp("log/slog"), "")

	// Nothing of this machine.
	f("go.mod", "module tidemark\nreplace example.com/x => ../x", "builds here and nowhere else")
	f("go.mod", "module tidemark\nrequire example.com/x v1.0.0", "")
	f("README.md", "see /wo"+"rk/main", "machine")
	f("README.md", "see /ho"+"me/alice", "machine")
	f("Makefile", "GOPROXY=https://proxy.gol"+"ang.org", "setting of the machine")
	f("README.md", "the whole/work/of it", "")
}
