package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/configs"
	"tidemark/gateway/opcua"
	"tidemark/gateway/sim"
)

// newController is a controller that serves until the test ends.
func newController(t *testing.T) *sim.Controller {
	t.Helper()
	c, err := sim.NewController(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

// browse runs the command until the controller answers, which takes it a moment.
func browse(t *testing.T, c *sim.Controller, args ...string) string {
	t.Helper()
	args = append([]string{"browse", c.URL(), "--security", "none"}, args...)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var out, errOut bytes.Buffer
		code := run(t.Context(), args, nil, &out, &errOut)
		switch {
		case code == exitOK:
			return strings.ReplaceAll(out.String(), c.URL(), "opc.tcp://HOST")
		case code != exitRuntime || time.Now().After(deadline):
			t.Fatalf("%v: exit code %d: %s", args, code, &errOut)
		}
	}
}

func TestBrowse(t *testing.T) {
	c := newController(t)

	out := regexp.MustCompile(`\b\d+\.\d\b|\b8[3-6]\d\b|\b[34]\d\b`).ReplaceAllString(browse(t, c, "--under", "/Objects/Kilns"), "N")
	out = regexp.MustCompile(` +nsu=`).ReplaceAllString(out, "  nsu=") // columns as wide as the values happen to be
	golden(t, "browse.txt", out)

	want := `node,asset,device,sensor,unit,deadband,trigger,expect_every,alarm_after
nsu=urn:tidemark:demo:controller;s=kiln-8.power,kiln-8,,power,kW,,,,
nsu=urn:tidemark:demo:controller;s=kiln-8.setpoint,kiln-8,,setpoint,Cel,,,,
nsu=urn:tidemark:demo:controller;s=kiln-8.temperature,kiln-8,,temperature,Cel,,,,
`
	file := browse(t, c, "--under", "nsu=urn:tidemark:demo:controller;s=Kilns", "--csv")
	if d := cmp.Diff(want, file); d != "" {
		t.Error(d)
	}
	if tags, err := configs.ParseTags("t.csv", []byte(file)); err != nil || len(tags) != 3 {
		t.Errorf("the tag file is not one: %d tags, %v", len(tags), err)
	}

	var view browseView
	asJSON := browse(t, c, "--under", "/Objects/Kilns", "--match", "*/{sensor}", "--exclude", "*/power", "--json")
	if err := json.Unmarshal([]byte(asJSON), &view); err != nil {
		t.Fatal(err)
	}
	if key := regexp.MustCompile(`"[A-Z]\w*": `).FindString(asJSON); key != "" {
		t.Errorf("the key %s is not written as the others", key)
	}
	if len(view.Chosen) != 2 || view.Chosen[0].Sensor != "setpoint" || len(view.Nodes) != 4 || view.Rule.Match != "*/{sensor}" {
		t.Errorf("%+v", view)
	}

	configuration := filepath.Join(t.TempDir(), "t.yaml")
	var initOut, errOut bytes.Buffer
	if code := run(t.Context(), []string{"init", "--from-browse", c.URL(), "--security", "none", "--under", "/Objects/Kilns", "-o", configuration}, nil, &initOut, &errOut); code != exitOK {
		t.Fatalf("init: exit code %d: %s", code, &errOut)
	}
	cfg, err := configs.Load(configuration)
	if err != nil {
		t.Fatal(err)
	}
	if in := cfg.Inputs[0].OPCUA; in == nil || in.Nodes[0].Under != "/Objects/Kilns" || in.Nodes[0].Match != "{asset}/{sensor}" || cfg.Features[0].Hold.Max == 0 {
		t.Errorf("%+v %+v", in, cfg.Features[0])
	}

	errOut.Reset()
	if code := run(t.Context(), []string{"browse", c.URL(), "--security", "none", "--under", "/Objects/Nowhere"}, nil, &initOut, &errOut); code != exitRuntime || !strings.Contains(errOut.String(), "there is no /Objects/Nowhere at the server\n") {
		t.Errorf("exit code %d: %s", code, &errOut)
	}
}

func TestBrowseRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.yaml")
	if err := os.WriteFile(file, []byte("gateway: {id: g}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := func(want string, args ...string) {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := run(t.Context(), append([]string{"browse"}, args...), nil, &out, &errOut); code != exitUsage || !strings.Contains(errOut.String(), want) || out.Len() > 0 {
			t.Errorf("%v: exit code %d: %s%s", args, code, &out, &errOut)
		}
	}
	f("which server?")
	f("no OPC UA endpoint", "http://host")
	f("not both", "opc.tcp://h", "--input", "a")
	f(`has no OPC UA input "a"`, "-c", file, "--input", "a")
	f("none of the others can be", "opc.tcp://h", "--csv", "--json")
	f("none of the others can be", "-c", file, "--input", "a", "--security", "none")
	f("missing [password-file]", "opc.tcp://h", "--user", "a")
}

func TestProposedExclude(t *testing.T) {
	if hidden([]string{"a", "b_"}) || !hidden([]string{"a", "_b"}) || !hidden([]string{".a", "b"}) {
		t.Error("names that begin with . _ or $ are about the server")
	}
}

// What cannot be read is left out by its name where nothing else has it, by its path
// where something has.
func TestProposalLeavesOutWhatCannotBeRead(t *testing.T) {
	node := func(unread string, path ...string) opcua.Node {
		return opcua.Node{Path: path, Variable: true, Unread: unread}
	}
	nodes := []opcua.Node{
		node("closed", "press", "image"), node("closed", "saw", "image"),
		node("closed", "press", "speed"), node("", "saw", "speed"),
		node("closed", "press", "a/b"), node("closed", "_System", "key"),
	}
	got := excludeNodes(nodes, unreadNodes(nodes))
	if d := cmp.Diff([]string{"**/image", "press/speed", "press/a*b"}, got); d != "" {
		t.Error(d)
	}
}
