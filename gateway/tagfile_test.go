package gateway_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/windowing"
)

// What a tag file expects of a sensor holds for the name that the sensor goes by;
// lines at fault expect nothing and stop nothing.
func TestTagFileGivesExpectations(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tags.csv": "node,asset,sensor,expect_every\nnsu=u;s=a,press,old,1s\nnsu=u;s=b,press,speed,\nnsu=u;s=c,press,bad,1\n",
		"c.yaml": `
inputs: [{name: a, opcua: {endpoint: "opc.tcp://h", security: none, nodes: [{tags: tags.csv}]}}]
assets: {press: {aliases: {old: new}}}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := configs.Load(filepath.Join(dir, "c.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	engine, err := gateway.EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	want := []windowing.Expectation{{Select: windowing.Selector{Input: "a", Asset: "press", Sensor: "new"}, EveryMS: 1000}}
	if d := cmp.Diff(want, engine.Expectations); d != "" {
		t.Error(d)
	}
}
