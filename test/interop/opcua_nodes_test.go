package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/gateway"
	"tidemark/test/process"
)

// newPlantService reads a plant by the given rules for nodes, each a line of YAML.
func newPlantService(t *testing.T, p *plant, rules ...string) *service {
	t.Helper()
	dir := process.Scratch(t)
	s := &service{config: filepath.Join(dir, "tidemark.yaml")}
	process.Write(t, s.config, fmt.Sprintf(`gateway: {id: interop}
clock: {trust: local}
store: {path: tidemark.db, quota: 64MiB, commit_interval: 100ms}
web: {listen: ""}
inputs:
  - name: plant
    opcua:
      endpoint: %s
      security: none
      publishing: 200ms
      nodes:
        - %s
features: []
uplinks: []
`, p.endpoint, strings.Join(rules, "\n        - ")))
	s.Process = process.Prepare(t, dir, binary, "run", "-c", s.config)
	return s
}

// command runs the binary and returns what it prints.
func command(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return out, fmt.Errorf("%v: %w: %s", args, err, failed.Stderr)
	}
	return out, err
}

// tagList asks the gateway for its tags.
func (s *service) tagList() (*gateway.Tags, error) {
	out, err := command(s.T, "tags", "-c", s.config, "--json")
	if err != nil {
		return nil, err
	}
	tags := &gateway.Tags{}
	return tags, json.Unmarshal(out, tags)
}

// TestTagFileOfARealServer looks at a server, reads it by the tag file that comes of
// it, and finds the values that the server has.
func TestTagFileOfARealServer(t *testing.T) {
	begin(t)
	p := newPlant(t, "--counters", "0")
	file, err := command(t, "browse", p.endpoint, "--security", "none", "--under", "/Objects/Types", "--csv")
	if err != nil {
		t.Fatal(err)
	}
	s := newPlantService(t, p, "tags: tags.csv")
	process.Write(t, filepath.Join(filepath.Dir(s.config), "tags.csv"), string(file)+"ns=9;s=wrong,,,x\n"+tag("nowhere")+",,,y\n")
	s.Start()
	want := map[string]string{
		"Boolean": "true", "SByte": "-128", "Byte": "255", "Int16": "-32768", "UInt16": "65535", "Int32": "-2147483648", "UInt32": "4294967295",
		"Int64": "-9223372036854775808", "UInt64": "18446744073709551615", "Float": "1.5", "Double": "0.1", "String": `"grün"`,
		"DateTime": `"2026-01-02T03:04:05.678Z"`, "Guid": `"72962B91-FA75-4AE6-8D28-B404DC7DAF63"`, "LocalizedText": `"laeuft"`, "StatusCode": "2157641728",
		"Enumeration": "1", "Int64Array[1]": "-9223372036854775808", "Matrix[1][2]": "6", "Structure.High": "7",
		"Weld.Number": "4294967295", "Weld.Phase": "2", "Weld.Good": "true", "Weld.Points[1].Travel": "0.5", "Weld.Operator": `"M. Kühn"`,
	}
	process.Eventually(t, 20*time.Second, func() error {
		tags, err := s.tagList()
		if err != nil {
			return err
		}
		got, problems := map[string]string{}, 0
		for _, tag := range tags.Tags {
			if _, asked := want[tag.Sensor]; asked && tag.Last != nil {
				value, err := json.Marshal(tag.Last.Value)
				if err != nil {
					return err
				}
				got[tag.Sensor] = string(value)
			}
			if tag.State == gateway.TagProblem {
				problems++
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			return errors.New(d)
		}
		if problems != 2 {
			return fmt.Errorf("%d problems, want the two lines at the end of the file", problems)
		}
		return nil
	})
	s.stop()
}

// A node that appears while the gateway is away is not read, and said so; the list
// of those that are known outlives the restart.
func TestNewNodesAreReported(t *testing.T) {
	begin(t)
	p := newPlant(t, "--counters", "0")
	s := newPlantService(t, p, `{under: /Objects/Line3, match: "{asset}/{sensor}", exclude: ["_System/**"]}`)
	watched := func(nodes int, says string) func() error {
		return func() error {
			st, err := s.status()
			if err != nil {
				return err
			}
			r := st.Inputs[0].Reader
			if r == nil || r.Monitored != nodes || !strings.Contains(r.Problem, says) || says == "" && r.Problem != "" {
				return fmt.Errorf("%+v: want %d nodes and %q", r, nodes, says)
			}
			return nil
		}
	}
	s.Start()
	process.Eventually(t, 20*time.Second, watched(10, ""))
	s.stop()
	p.do(map[string]any{"do": "addNode", "parent": tag("Line3.press-07"), "name": "speed", "id": "Line3.press-07.speed"}, nil)
	p.do(map[string]any{"do": "deleteNode", "node": tag("Line3.press-08.setpoint")}, nil)
	s.Start()
	process.Eventually(t, 20*time.Second, watched(9, "2 nodes are not read"))
	tags, err := s.tagList()
	if err != nil {
		t.Fatal(err)
	}
	for place, why := range map[string]string{tag("Line3.press-07.speed"): "new_tags", tag("Line3.press-08.setpoint"): "no longer"} {
		found := false
		for _, tag := range tags.Tags {
			found = found || tag.Address == place && strings.Contains(tag.Why, why)
		}
		if !found {
			t.Errorf("%s: nothing says %q", place, why)
		}
	}
	if code := s.End(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
