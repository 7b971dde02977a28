package interop

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/gateway"
	"tidemark/test/process"
)

// TestCheckOnlineOfAServer: the clock of an OPC UA server is measured there and back,
// that of its nodes by their timestamps, and nothing is left of the visit.
func TestCheckOnlineOfAServer(t *testing.T) {
	begin(t)
	p := newPlant(t)
	times := newTimeServers(t, 3)
	times.start(t)
	dir := process.Scratch(t)
	config := filepath.Join(dir, "tidemark.yaml")
	process.Write(t, config, fmt.Sprintf(`gateway: {id: interop}
clock: {servers: [%s], poll_min: 250ms, poll_max: 1s}
store: {path: t.db}
web: {listen: ""}
inputs:
  - name: kepware
    opcua:
      endpoint: %s
      security: none
      sampling: 200ms
      publishing: 200ms
      nodes: [{under: "%s", match: "{asset}/{sensor}", exclude: ["_System/**", "*/_Hints/**"]}]
`, strings.Join(times.addrs, ", "), p.endpoint, tag("Line3")))
	out, err := exec.Command(binary, "check", "-c", config, "--online", "--for", "8s", "--json").Output()
	var r struct{ Online *gateway.Probed }
	if jerr := json.Unmarshal(out, &r); jerr != nil || r.Online == nil {
		t.Fatalf("%v, %v: %s", err, jerr, out)
	}
	in := r.Online.Inputs[0]
	if err != nil || !in.OK || in.Readings["ACCEPT"]+in.Readings["FLAG"] == 0 || in.Readings["QUARANTINE"] > 0 {
		t.Errorf("%v: %+v, reader %+v", err, in, in.Reader)
	}
	measured := false
	for _, s := range r.Online.Clock.Sources {
		if s.Server {
			measured = s.Samples > 3 && s.OffsetLoNS > -2e9 && s.OffsetLoNS <= 1e6 && s.OffsetHiNS < 1e9 && s.OffsetHiNS >= -1e6 && s.Verdict == "OK"
			t.Logf("the server: %d to %d ns by %d samples", s.OffsetLoNS, s.OffsetHiNS, s.Samples)
		}
	}
	if !measured {
		t.Errorf("the server's clock: %+v", r.Online.Clock.Sources)
	}
	var count struct{ Sessions int }
	p.do(map[string]any{"do": "count"}, &count)
	if count.Sessions != 0 {
		t.Errorf("%d sessions are left", count.Sessions)
	}
}
