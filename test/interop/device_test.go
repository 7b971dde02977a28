package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tidemark/test/process"
)

// device is a real MQTT client that a test steers: mqtt.js or paho-mqtt (peers/).
type device struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan map[string]any
	heard []map[string]any // messages that came before an answer
	cmd   *exec.Cmd
}

type publish struct {
	Topic     string     `json:"topic"`
	Payload   string     `json:"payload"`
	Size      int        `json:"size,omitempty"` // mqtt.js: of a payload of xs
	Sparkplug *sparkplug `json:"sparkplug,omitempty"`
	Compress  string     `json:"compress,omitempty"` // mqtt.js: GZIP or DEFLATE
	QoS       *int       `json:"qos,omitempty"`
	Retain    bool       `json:"retain,omitempty"`
}

// sparkplug is a payload as sparkplug-payload takes it.
type sparkplug struct {
	Timestamp int64    `json:"timestamp"`
	Seq       *int     `json:"seq,omitempty"`
	Metrics   []metric `json:"metrics"`
}

type metric struct {
	Name         string `json:"name,omitempty"`
	Alias        int    `json:"alias,omitempty"`
	Type         string `json:"type"`
	Value        any    `json:"value"`
	Timestamp    int64  `json:"timestamp,omitempty"`
	IsHistorical bool   `json:"isHistorical,omitempty"`
}

func newJSDevice(t *testing.T, b *process.Mosquitto, id string, more map[string]any) *device {
	t.Helper()
	return newDevice(t, "node", "peers/mqttjs/device.js", b.URL(), id, more)
}

func newPahoDevice(t *testing.T, b *process.Mosquitto, id string, more map[string]any) *device {
	t.Helper()
	return newDevice(t, "python3", "peers/paho/device.py", b.URL(), id, more)
}

// newDevice returns when the device is connected. more are further options of
// connecting.
func newDevice(t *testing.T, program, script, url, id string, more map[string]any) *device {
	t.Helper()
	found, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is needed for this suite: %v", program, err)
	}
	d := &device{t: t, cmd: exec.Command(found, script), lines: make(chan map[string]any, 1000)}
	log, err := os.Create(filepath.Join(process.Scratch(t), "device.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.cmd.Stderr = log
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(d.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			var line map[string]any
			if json.Unmarshal(s.Bytes(), &line) == nil {
				d.lines <- line
			}
		}
	}()
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("device %s said last:\n%s", id, process.Tail(log.Name(), 3000))
		}
	})
	connect := map[string]any{"url": url, "clientId": id}
	for k, v := range more {
		connect[k] = v
	}
	d.do("connect", connect)
	return d
}

// do has the device obey a command.
func (d *device) do(command string, argument any) {
	d.t.Helper()
	line, err := json.Marshal(map[string]any{command: argument})
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		d.t.Fatalf("device: %v", err)
	}
	for {
		answer := d.line(60 * time.Second)
		switch {
		case answer == nil:
			d.t.Fatalf("device: no answer to %s (was .ci/run peers run?)", command)
		case answer["failed"] != nil:
			d.t.Fatalf("device: %s: %v", command, answer["failed"])
		case answer["done"] == command:
			return
		}
		d.heard = append(d.heard, answer)
	}
}

// message is the next message on a subscription, nil if there is none in time.
func (d *device) message(within time.Duration) map[string]any {
	if len(d.heard) > 0 {
		m := d.heard[0]
		d.heard = d.heard[1:]
		return m
	}
	return d.line(within)
}

// line is the next line that the device says, nil if there is none in time.
func (d *device) line(within time.Duration) map[string]any {
	select {
	case l := <-d.lines:
		return l
	case <-time.After(within):
		return nil
	}
}

// publish returns when the broker has the messages.
func (d *device) publish(ps ...publish) { d.t.Helper(); d.do("publish", ps) }

// kill ends the device as a power cut would: the broker sends its will.
func (d *device) kill() {
	_ = d.cmd.Process.Kill() // gone already: as good
	_ = d.cmd.Wait()
}

// site is a gateway with a broker that is both its source and its uplink.
type site struct {
	broker  *process.Mosquitto
	times   *timeServers
	gateway *service
	out     *consumer
}

// newSite starts a gateway whose one input, named in, has these lines of
// configuration below mqtt, after its url.
func newSite(t *testing.T, b *process.Mosquitto, mqtt, features string) *site {
	t.Helper()
	s := newGatewayAt(t, b, mqtt, features)
	s.out = newConsumer(t, b)
	s.gateway.ready()
	return s
}

// newGatewayAt is a site that is not started yet and whose results nobody takes.
func newGatewayAt(t *testing.T, b *process.Mosquitto, mqtt, features string) *site {
	t.Helper()
	s := &site{broker: b, times: newTimeServers(t, 3)}
	s.times.start(t)
	dir := process.Scratch(t)
	s.gateway = &service{config: filepath.Join(dir, "tidemark.yaml")}
	s.configure(t, mqtt, features)
	s.gateway.Process = process.Prepare(t, dir, binary, "run", "-c", s.gateway.config)
	return s
}

func (s *site) configure(t *testing.T, mqtt, features string) {
	t.Helper()
	process.Write(t, s.gateway.config, fmt.Sprintf(`gateway: {id: interop}
clock: {servers: [%s, %s, %s], poll_min: 250ms, poll_max: 1s}
store: {path: tidemark.db, quota: 256MiB, commit_interval: 100ms}
web: {listen: ""}
inputs:
  - name: in
    mqtt:
      url: %s
      client_id: gateway-in
%s
features:
%s
uplinks:
  - name: plant
    mqtt: {url: "%s"}
`, s.times.addrs[0], s.times.addrs[1], s.times.addrs[2], s.broker.URL(), mqtt, features, s.broker.URL()))
}

// counts waits until the input's counts are these, by their names in the status;
// what is not named is 0.
func (s *site) counts(t *testing.T, want map[string]int) {
	t.Helper()
	process.Eventually(t, 40*time.Second, func() error {
		st, err := s.gateway.status()
		if err != nil {
			return err
		}
		c := st.Inputs[0].Counts
		got := map[string]int{"accepted": int(c.Accepted + c.PendingAccepted), "duplicate": int(c.Duplicate), "malformed": int(c.Malformed), "unmatched": int(c.Unmatched), "quarantined": int(c.Quarantined)}
		for name, n := range got {
			if n != want[name] {
				return fmt.Errorf("%s is %d, want %d: %+v, %v", name, n, want[name], c, st.Inputs[0].Rejects)
			}
		}
		return nil
	})
}

// tags asks the running gateway for its series: the last value by name, as JSON has
// it.
func (s *site) tags(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, "tags", "-c", s.gateway.config, "--json").Output()
	if err != nil {
		t.Fatalf("tidemark tags: %v", err)
	}
	var said struct {
		Tags []struct {
			Asset, Sensor string
			Last          *struct{ Value json.RawMessage }
		}
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	values := map[string]string{}
	for _, x := range said.Tags {
		if x.Last != nil {
			values[x.Asset+"/"+x.Sensor] = string(x.Last.Value)
		}
	}
	return values
}

// isolated are the settings of a feature that these tests have in common.
const isolated = "out_of_orderness: 1s, allowed_lateness: 10m, correct_every: 0s, flush_after: 0s"
