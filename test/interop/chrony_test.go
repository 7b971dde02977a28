package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"tidemark/gateway"
	"tidemark/test/process"
)

// hostDaemon runs chronyd as a host's own daemon, on its command port, in a network
// of its own, and asks it there.
const hostDaemon = `set -e
ip link set lo up
chronyd -x -d -u root -f root.conf >root.log 2>&1 & a=$!
chronyd -x -d -u root -f host.conf >host.log 2>&1 & b=$!
trap 'kill $a $b; wait' EXIT
for n in $(seq 1 100); do
	chronyc -n tracking 2>/dev/null | grep -q 'Reference ID *: 7F' && break
	sleep 0.1
done
"$TIDEMARK" check -c tidemark.yaml --online --for 5s --json || true
`

// TestHostDaemon: without servers, chronyd alone vouches for the clock by its
// tracking report, as far as it has a source itself.
func TestHostDaemon(t *testing.T) {
	for name, tc := range map[string]struct{ source, state, method, advice string }{
		"with a source": {"server 127.0.0.1 port 11123 iburst minpoll -2 maxpoll -2\nacquisitionport 0", "synchronized", "chrony", ""},
		"alone":         {"local stratum 10", "unknown", "chrony", "the time sources have nothing but their own clocks to go by (a local reference): readings wait"},
	} {
		t.Run(name, func(t *testing.T) {
			begin(t)
			dir := process.Scratch(t)
			conf := func(file, text string) {
				process.Write(t, filepath.Join(dir, file), fmt.Sprintf("bindcmdaddress 127.0.0.1\npidfile %s/%s.pid\n%s\n", dir, file, text))
			}
			// The ports are fixed: nobody else is in this network.
			conf("root.conf", "port 11123\nallow 127.0.0.1\ncmdport 0\nlocal stratum 2")
			conf("host.conf", "port 0\ncmdport 323\n"+tc.source)
			process.Write(t, filepath.Join(dir, "tidemark.yaml"), fmt.Sprintf(`gateway: {id: host}
store: {path: %s/t.db}
web: {listen: ""}
inputs:
  - name: line
    mqtt: {url: "mqtt://127.0.0.1:1", subscribe: [{topic: "line/{asset}", sensors: {s: {}}}]}
`, dir))
			cmd := exec.Command("unshare", "--net", "sh", "-c", hostDaemon)
			cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "TIDEMARK="+binary)
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			out, err := cmd.Output()
			var r struct{ Online *gateway.Probed }
			if err == nil {
				err = json.Unmarshal(out, &r)
			}
			if err != nil || r.Online == nil {
				t.Fatalf("%v: %s%s", err, out, &errOut)
			}
			c := r.Online.Clock
			if c.State != tc.state || c.HostMethod != tc.method || c.Advice != tc.advice || (c.BoundNS > 0) != (tc.state == "synchronized") {
				t.Errorf("%+v, want %+v", c, tc)
			}
		})
	}
}
