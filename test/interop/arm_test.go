package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/gateway"
	"tidemark/test/process"
)

// TestARM: the programs for arm64 and ARMv7 do the main job, readings in and right
// features out, also over a restart. On ARMv7 an int has 32 bits, and a 64-bit
// atomic must lie at a multiple of 8.
func TestARM(t *testing.T) {
	for arch, emulator := range map[string]string{"arm64": "qemu-aarch64-static", "arm": "qemu-arm-static"} {
		t.Run(arch, func(t *testing.T) {
			begin(t)
			dir := process.Scratch(t)
			program := filepath.Join(dir, "tidemark-"+arch)
			build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "tidemark/cmd/tidemark")
			build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOARM=7")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			mainJob(t, dir, process.NewMosquitto(t), emulator, program)
		})
	}
}

// nextEightSeconds is when the next window of eight seconds begins. A clock that is
// taken as it is and a source that nobody has measured do not fit into a shorter one.
func nextEightSeconds() time.Time {
	const window = 8 * time.Second
	return time.Now().Truncate(window).Add(window)
}

// mainJob runs the command with a broker between the device and the consumer.
func mainJob(t *testing.T, dir string, b *process.Mosquitto, command ...string) {
	t.Helper()
	config := filepath.Join(dir, "tidemark.yaml")
	process.Write(t, config, fmt.Sprintf(`gateway: {id: arm}
clock: {trust: local}
store: {path: tidemark.db, quota: 64MiB}
web: {listen: ""}
inputs:
  - name: line
    mqtt:
      url: %[1]s
      subscribe:
        - topic: line/{asset}/{device}/{sensor}
          time: {path: ts, unit: ms}
          value: {path: v, type: number, unit: Cel}
features:
  - {name: four, version: 1, window: 8s, out_of_orderness: 500ms, allowed_lateness: 10s, flush_after: 0s, functions: [count, sum, mean, p95]}
uplinks:
  - {name: plant, mqtt: {url: "%[1]s"}}
`, b.URL()))
	gw := process.Prepare(t, dir, command[0], append(command[1:], "run", "-c", config)...)
	status := func() (*gateway.Status, error) {
		out, err := exec.Command(command[0], append(command[1:], "status", "-c", config, "--json")...).Output()
		if err != nil {
			return nil, err
		}
		st := &gateway.Status{}
		return st, json.Unmarshal(out, st)
	}
	connected := func() error {
		st, err := status()
		if err == nil && (st.Inputs[0].Reader.State != "connected" || st.Uplinks[0].State != "online") {
			err = fmt.Errorf("degraded: %+v", st.Because)
		}
		return err
	}
	gw.Start()
	process.Eventually(t, 60*time.Second, connected)

	out := newListener(t, b, "reader", "tidemark/#")
	p := newPublisher(t, b, "device")
	start := nextEightSeconds()
	send := func(ms int64, value int) {
		payload := fmt.Appendf(nil, `{"ts":%d,"v":%d}`, start.UnixMilli()+ms, value)
		if _, err := p.client.Publish(t.Context(), &paho.Publish{Topic: "line/press/d/temp", QoS: 1, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		time.Sleep(time.Until(start.Add(time.Duration(i) * 100 * time.Millisecond)))
		send(int64(i)*100, i)
	}
	process.Eventually(t, 30*time.Second, func() error {
		st, err := status()
		if err == nil && (st.Inputs[0].Counts.Accepted != 40 || !st.Conserved) {
			err = fmt.Errorf("accepted %+v", st.Inputs[0].Counts)
		}
		return err
	})
	if code := gw.End(15); code != 0 { // SIGTERM, with the window still open
		t.Errorf("exit code %d", code)
	}
	gw.Start()
	process.Eventually(t, 60*time.Second, connected)
	time.Sleep(time.Until(start.Add(8 * time.Second)))
	process.Eventually(t, 30*time.Second, func() error {
		send(time.Since(start).Milliseconds(), 0) // lets the watermark pass the window
		for _, m := range out.heard() {
			var r struct {
				Type        string
				WindowStart string `json:"window_start"`
				Values      map[string]any
			}
			if json.Unmarshal(m.payload, &r) == nil && r.Type == "feature" && strings.HasPrefix(r.WindowStart, start.UTC().Format("2006-01-02T15:04:05")) {
				if fmt.Sprint(r.Values["count"], r.Values["sum"], r.Values["mean"]) != "40 780 19.5" {
					t.Errorf("the feature is %s", m.payload)
				}
				return nil
			}
		}
		return fmt.Errorf("no feature of the window at %v yet", start)
	})
}
