package interop

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/test/process"
)

// newMember is one of several gateways that read a broker together and pass their
// readings on, one started.
func newMember(t *testing.T, b *process.Mosquitto, id, mqtt string) *service {
	t.Helper()
	dir := process.Scratch(t)
	s := &service{config: filepath.Join(dir, "tidemark.yaml")}
	process.Write(t, s.config, fmt.Sprintf(`gateway: {id: %s}
clock: {trust: local}
store: {path: tidemark.db, quota: 64MiB, commit_interval: 100ms}
web: {listen: ""}
inputs:
  - name: in
    mqtt:
      url: %s
%s
features: []
uplinks:
  - {name: plant, mqtt: {url: "%s"}, raw: [{input: in}]}
`, id, b.URL(), mqtt, b.URL()))
	s.Process = process.Prepare(t, dir, binary, "run", "-c", s.config)
	s.Start()
	process.Eventually(t, 20*time.Second, func() error {
		st, err := s.status()
		if err == nil && (st.Inputs[0].Reader.State != "connected" || st.Uplinks[0].State != "online") {
			err = fmt.Errorf("%+v", st.Because)
		}
		return err
	})
	return s
}

// TestSharedSubscription: two gateways of a group take every reading once between
// them, also while one of them is killed: its session keeps its part.
func TestSharedSubscription(t *testing.T) {
	begin(t)
	b := process.NewMosquitto(t)
	out := newListener(t, b, "reader", "tidemark/v1/+/raw/#")
	const mqtt = `
      subscribe: [{topic: "line/{asset}/{sensor}", share: line, id: {path: id}, time: {path: ts, unit: ms}, value: {path: v}}]`
	first, second := newMember(t, b, "first", mqtt), newMember(t, b, "second", mqtt)
	device := newPublisher(t, b, "device")
	const readings = 600
	for n := range readings {
		payload := fmt.Appendf(nil, `{"ts":%d,"id":"r%d","v":%d}`, time.Now().UnixMilli(), n, n)
		if _, err := device.client.Publish(t.Context(), &paho.Publish{Topic: "line/a/s", QoS: 1, Payload: payload}); err != nil {
			t.Fatal(err)
		}
		if n == readings/3 {
			first.End(syscall.SIGKILL)
		}
	}
	parts := func(services ...*service) (taken []uint64, err error) {
		for _, s := range services {
			st, err := s.status()
			if err != nil {
				return nil, err
			}
			taken = append(taken, st.Inputs[0].Counts.Accepted)
		}
		return taken, nil
	}
	if taken, err := parts(second); err != nil || taken[0] == readings {
		t.Errorf("the second took %v alone: %v", taken, err)
	}
	first.Start()
	process.Eventually(t, 40*time.Second, func() error {
		taken, err := parts(first, second)
		if err == nil && (taken[0]+taken[1] != readings || taken[0] == 0 || taken[1] == 0) {
			err = fmt.Errorf("the two have taken %v of %d", taken, readings)
		}
		return err
	})
	process.Eventually(t, 20*time.Second, func() error {
		seen := map[string]string{}
		for _, m := range out.heard() {
			var r struct{ ID, Gateway string }
			if err := json.Unmarshal(m.payload, &r); err != nil {
				return err
			}
			if by := seen[r.ID]; by != "" && by != r.Gateway {
				t.Fatalf("%s comes from %s and from %s", r.ID, by, r.Gateway)
			}
			seen[r.ID] = r.Gateway
		}
		if len(seen) != readings {
			return fmt.Errorf("%d readings came upstream, want %d", len(seen), readings)
		}
		return nil
	})
	first.stop()
	second.stop()
}

// TestFiltersThatMeet: a broker that sends a message once for each filter that it
// matches is asked for it once. The readings have neither id nor time.
func TestFiltersThatMeet(t *testing.T) {
	begin(t)
	b := process.NewMosquitto(t)
	const both = `
      subscribe:
        - {topic: "v/boiler/{sensor}", format: plain, asset: boiler, value: {unit: Cel}}
        - {topic: "v/{asset}/{sensor}", format: plain}`
	s := newMember(t, b, "both", both)
	device := newPublisher(t, b, "device")
	for n := range 50 {
		for _, asset := range []string{"boiler", "press"} {
			if _, err := device.client.Publish(t.Context(), &paho.Publish{Topic: "v/" + asset + "/t", QoS: 1, Payload: fmt.Append(nil, n)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	process.Eventually(t, 20*time.Second, func() error {
		st, err := s.status()
		if c := st.Inputs[0].Counts; err == nil && (c.Received != 100 || c.Accepted != 100) {
			err = fmt.Errorf("%+v", c)
		}
		return err
	})
	out := newListener(t, b, "reader", "tidemark/v1/both/raw/boiler/t")
	if _, err := device.client.Publish(t.Context(), &paho.Publish{Topic: "v/boiler/t", QoS: 1, Payload: []byte("7")}); err != nil {
		t.Fatal(err)
	}
	process.Eventually(t, 10*time.Second, func() error {
		if all := out.heard(); len(all) != 1 || !strings.Contains(string(all[0].payload), `"unit":"Cel"`) {
			return fmt.Errorf("heard %d: the first subscription has the topic", len(all))
		}
		return nil
	})
	s.stop()
}

// TestSparkplugHostState: an edge node that has the gateway for its primary host loses
// nothing that it says with QoS 0 while the gateway is killed: it stores what it cannot
// tell until STATE says that somebody reads.
func TestSparkplugHostState(t *testing.T) {
	begin(t)
	b := process.NewMosquitto(t)
	gw := newMember(t, b, "host", `
      sparkplug_host: plant
      subscribe: [{topic: "spBv1.0/#", format: sparkplug}]`)
	node := newJSDevice(t, b, "node", nil)
	node.do("subscribe", "spBv1.0/STATE/plant")
	none, last := 0, int64(0)
	online := func(want bool) {
		t.Helper()
		for {
			m := node.message(20 * time.Second)
			if m == nil {
				t.Fatalf("STATE never says online: %v", want)
			}
			var s struct {
				Online    bool
				Timestamp int64
			}
			if err := json.Unmarshal([]byte(m["text"].(string)), &s); err != nil || s.Timestamp < last || time.Since(time.UnixMilli(s.Timestamp)).Abs() > time.Minute {
				t.Fatalf("STATE %v after time %d: %v", m, last, err)
			}
			if last = s.Timestamp; s.Online == want {
				return
			}
		}
	}
	seq := 0
	say := func(metrics ...metric) {
		seq++
		n := seq
		node.publish(publish{Topic: "spBv1.0/g/NDATA/node", QoS: &none, Sparkplug: &sparkplug{time.Now().UnixMilli(), &n, metrics}})
	}
	counts := func(want uint64) {
		t.Helper()
		process.Eventually(t, 20*time.Second, func() error {
			st, err := gw.status()
			if c := st.Inputs[0].Counts; err == nil && c.Accepted != want {
				err = fmt.Errorf("%d accepted, want %d: %+v %v", c.Accepted, want, c, st.Inputs[0].Rejects)
			}
			return err
		})
	}
	online(true)
	first := 0
	node.publish(publish{Topic: "spBv1.0/g/NBIRTH/node", QoS: &none, Sparkplug: &sparkplug{time.Now().UnixMilli(), &first, []metric{
		{Name: "bdSeq", Type: "UInt64", Value: 1}, {Name: "level", Alias: 1, Type: "Double", Value: 0}}}})
	say(metric{Alias: 1, Type: "Double", Value: 1})
	counts(2)
	gw.End(syscall.SIGKILL)
	online(false)
	var stored []metric
	for n := range 5 {
		stored = append(stored, metric{Alias: 1, Type: "Double", Value: 2 + n, Timestamp: time.Now().UnixMilli(), IsHistorical: true})
		time.Sleep(20 * time.Millisecond)
	}
	gw.Start()
	online(true)
	say(stored...)
	counts(7)
	gw.stop()
	online(false)
}

// TestCompressedPayloads: what Node's zlib and the Sparkplug client's way of packing
// make is read like what is not packed.
func TestCompressedPayloads(t *testing.T) {
	begin(t)
	b := process.NewMosquitto(t)
	gw := newMember(t, b, "packed", `
      subscribe:
        - {topic: "z/{asset}/{sensor}", gzip: true, each: "@this", time: {path: ts, unit: ms}, value: {path: v}}
        - {topic: "spBv1.0/#", format: sparkplug}`)
	node := newJSDevice(t, b, "node", nil)
	var rows []string
	for n := range 200 {
		rows = append(rows, fmt.Sprintf(`{"ts":%d,"v":%d}`, time.Now().UnixMilli()-int64(n), n))
	}
	array := "[" + strings.Join(rows, ",") + "]"
	seq := 0
	birth := &sparkplug{time.Now().UnixMilli(), &seq, []metric{{Name: "level", Type: "Double", Value: 5}}}
	node.publish(
		publish{Topic: "z/a/packed", Payload: array, Compress: "GZIP"},
		publish{Topic: "z/a/plain", Payload: array},
		publish{Topic: "z/a/wrong", Payload: array, Compress: "DEFLATE"},
		publish{Topic: "spBv1.0/g/NBIRTH/one", Sparkplug: birth, Compress: "GZIP"},
		publish{Topic: "spBv1.0/g/NBIRTH/two", Sparkplug: birth, Compress: "DEFLATE"},
	)
	process.Eventually(t, 20*time.Second, func() error {
		st, err := gw.status()
		if c := st.Inputs[0].Counts; err == nil && (c.Accepted != 402 || c.Malformed != 1) {
			err = fmt.Errorf("%+v %v", c, st.Inputs[0].Rejects)
		}
		return err
	})
	gw.stop()
}
