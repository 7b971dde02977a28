package interop

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"github.com/google/go-cmp/cmp"

	"tidemark/test/process"
)

// TestDevicesAsTheySpeak has mqtt.js and paho-mqtt publish what public reports say
// that gateways get wrong.
func TestDevicesAsTheySpeak(t *testing.T) {
	begin(t)
	s := newSite(t, process.NewMosquitto(t), `
      subscribe:
        - {topic: "json/{asset}/{sensor}", time: {path: ts, unit: ms}, id: {path: id}, value: {path: v}}
        - {topic: "seq/{asset}/{sensor}", time: {path: ts, unit: ms}, seq: {path: n}, value: {path: v}}
        - {topic: "array/{asset}/{sensor}", each: "@this", time: {path: ts, unit: ms}, value: {path: v, type: number}}
        - {topic: "plain/{asset}/{sensor}", format: plain, value: {map: {ON: 1}}}
        - {topic: "csv/{asset}", format: csv, csv: {columns: [ts, a, b]}, time: {path: ts, unit: ms}}
        - {topic: "influx/{asset}", format: influx, time: {unit: ms}}
        - {topic: "senml/{asset}", format: senml}
        - {topic: "wave/{asset}/{sensor}", time: {path: t0, unit: ms}, waveform: {rate: 1000}, value: {path: y}}`,
		`  - {name: all, window: 4s, functions: [count], `+isolated+`}`)
	now := time.Now()
	ms, zoned := now.UnixMilli(), now.UTC().Truncate(time.Millisecond)
	here := zoned.In(time.FixedZone("", 3600))
	js, py := newJSDevice(t, s.broker, "js", nil), newPahoDevice(t, s.broker, "py", nil)
	js.publish(
		publish{Topic: "json/a/beyond", Payload: fmt.Sprintf(`{"ts":%d,"v":9007199254740993}`, ms)},
		publish{Topic: "json/a/most", Payload: fmt.Sprintf(`{"ts":%d,"v":18446744073709551615}`, ms)},
		publish{Topic: "json/a/instant", Payload: `{"ts":"` + zoned.Format("2006-01-02T15:04:05.000Z07:00") + `","v":1}`},
		publish{Topic: "json/a/instant", Payload: `{"ts":"` + here.Format("2006-01-02T15:04:05.000Z07:00") + `","v":1}`}, // the same
		publish{Topic: "array/a/nan", Payload: fmt.Sprintf(`[{"ts":%d,"v":1},{"ts":%d,"v":NaN},{"ts":%d,"v":3}]`, ms, ms+1, ms+2)},
		publish{Topic: "json/a/huge", Size: 10 << 20},
	)
	py.publish(
		publish{Topic: "json/a/seconds", Payload: fmt.Sprintf(`{"ts":%d,"v":1}`, ms/1000)}, // declared as ms
		publish{Topic: "plain/a/valve", Payload: "ON"},
		publish{Topic: "csv/a", Payload: fmt.Sprintf("%d,1.5,2\n%d,2.5,3\n", ms, ms+1)},
		publish{Topic: "influx/a", Payload: fmt.Sprintf("m,host=x f=-12i %d", ms)},
		publish{Topic: "senml/a", Payload: fmt.Sprintf(`[{"bn":"s:","bt":%d.%03d,"n":"t","v":20,"u":"Cel"},{"n":"h","v":50,"u":"%%RH"}]`, ms/1000, ms%1000)},
		publish{Topic: "wave/a/accel", Payload: fmt.Sprintf(`{"t0":%d,"y":[0.5,-0.5,1e-3]}`, ms)},
	)
	// A sequence of 8 bits that wraps, repeats one message as it was, and begins
	// again at 0 after a restart of the device; and a value without a time that is the
	// same as before and counts again.
	for i, n := range []int{254, 255, 0, 0, 1, 0, 1} {
		at := i
		if i >= 3 {
			at-- // the second 0 is the first one again
		}
		py.publish(publish{Topic: "seq/a/wraps", Payload: fmt.Sprintf(`{"ts":%d,"n":%d,"v":5}`, ms+int64(at), n)})
	}
	py.publish(publish{Topic: "plain/a/valve", Payload: "ON"})
	// One of the two instants is a repetition; the seconds go into quarantine, the
	// 10 MB are refused unread.
	s.counts(t, map[string]int{"accepted": 3 + 3 + 2 + 4 + 1 + 2 + 3 + 6, "duplicate": 2, "quarantined": 1, "malformed": 1})
	got := s.tags(t)
	for name, want := range map[string]string{"a/beyond": "9007199254740993", "a/most": "18446744073709551615", "a/nan": "3", "a/valve": "1",
		"a/a": "2.5", "a/f": "-12", "a/s:t": "20", "a/accel": "0.001"} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
	s.gateway.stop()
}

// TestSparkplugEdgeNode has an encoder that is not ours play an edge node: births,
// aliases, history, a gap that is answered with a request, and a death.
func TestSparkplugEdgeNode(t *testing.T) {
	begin(t)
	s := newSite(t, process.NewMosquitto(t), `
      subscribe: [{topic: "spBv1.0/#", format: sparkplug, qos: 1}]`,
		`  - {name: grouped, scope: device, group: line, select: {sensor: [level]}, window: 4s, idle_after: 1h, functions: [count, sum], `+isolated+`}`)
	at := func(ahead time.Duration) int64 { return time.Now().Add(ahead).UnixMilli() }
	seq := func(n int) *int { return &n }
	death := sparkplug{Timestamp: at(0), Metrics: []metric{{Name: "bdSeq", Type: "UInt64", Value: 7}}}
	node := newJSDevice(t, s.broker, "edge", map[string]any{"will": map[string]any{"topic": "spBv1.0/g/NDEATH/edge", "sparkplug": death}})
	node.do("subscribe", "spBv1.0/g/NCMD/edge")
	births := []publish{
		{Topic: "spBv1.0/g/NBIRTH/edge", Sparkplug: &sparkplug{at(0), seq(0), []metric{
			{Name: "bdSeq", Type: "UInt64", Value: 7}, {Name: "Node Control/Rebirth", Type: "Boolean", Value: false},
			{Name: "i8", Alias: 1, Type: "Int8", Value: -12}, {Name: "i16", Alias: 2, Type: "Int16", Value: -12}, {Name: "i32", Alias: 3, Type: "Int32", Value: -12},
			{Name: "i64", Alias: 4, Type: "Int64", Value: "-12"}, {Name: "u64", Alias: 5, Type: "UInt64", Value: "18446744073709551615"}, {Name: "u32", Alias: 6, Type: "UInt32", Value: uint32(4294967295)},
			{Name: "f", Alias: 7, Type: "Float", Value: 1.5}, {Name: "d", Alias: 8, Type: "Double", Value: -0.1}, {Name: "b", Alias: 9, Type: "Boolean", Value: true},
			{Name: "s", Alias: 10, Type: "String", Value: "on"}, {Name: "level", Alias: 11, Type: "Double", Value: 1}}}},
		{Topic: "spBv1.0/g/DBIRTH/edge/tank", Sparkplug: &sparkplug{at(0), seq(1), []metric{{Name: "level", Alias: 12, Type: "Double", Value: 5}}}},
	}
	for _, b := range births {
		node.publish(b)
	}
	s.counts(t, map[string]int{"accepted": 12})
	want := map[string]string{"edge/i8": "-12", "edge/i16": "-12", "edge/i32": "-12", "edge/i64": "-12", "edge/u64": "18446744073709551615", "edge/u32": "4294967295",
		"edge/f": "1.5", "edge/d": "-0.1", "edge/b": "true", "edge/s": `"on"`, "edge/level": "1", "tank/level": "5"}
	if diff := cmp.Diff(want, s.tags(t)); diff != "" {
		t.Error(diff)
	}

	data := func(n int, metrics ...metric) publish {
		return publish{Topic: "spBv1.0/g/DDATA/edge/tank", Sparkplug: &sparkplug{at(0), seq(n), metrics}}
	}
	node.publish(data(2, metric{Alias: 12, Type: "Double", Value: 6.5}, metric{Alias: 12, Type: "Double", Value: 4, Timestamp: at(-2 * time.Second), IsHistorical: true}))
	s.counts(t, map[string]int{"accepted": 14})
	if l := node.message(time.Second); l != nil {
		t.Errorf("asked without a reason: %v", l)
	}
	node.publish(data(9, metric{Alias: 12, Type: "Double", Value: 7})) // 3 to 8 are missing
	request := node.message(20 * time.Second)
	if request == nil || request["topic"] != "spBv1.0/g/NCMD/edge" || !strings.Contains(fmt.Sprint(request["metrics"]), "Node Control/Rebirth type:Boolean value:true") {
		t.Fatalf("after a gap the node heard %v", request)
	}

	// A restart knows the aliases still.
	s.gateway.End(syscall.SIGKILL)
	s.gateway.Start()
	process.Eventually(t, 20*time.Second, s.gateway.clockIs("synchronized"))
	node.publish(data(10, metric{Alias: 12, Type: "Double", Value: 8}))
	s.counts(t, map[string]int{"accepted": 16})
	if got := s.tags(t)["tank/level"]; got != "8" {
		t.Errorf("after a restart the tank's level is %s, want 8", got)
	}

	// The node dies, and with it its tank.
	other := newJSDevice(t, s.broker, "other", nil)
	node.kill()
	process.Eventually(t, 20*time.Second, func() error {
		other.publish(publish{Topic: "spBv1.0/g/NDATA/other", Sparkplug: &sparkplug{at(0), nil, []metric{{Name: "level", Type: "Double", Value: 1}}}})
		st, err := s.gateway.status()
		if err != nil {
			return err
		}
		if f := st.Features[0]; !slices.Contains(f.Idle, "in/g/edge/tank") {
			return fmt.Errorf("idle are %v, want the tank of the node that died", f.Idle)
		}
		return nil
	})
	s.gateway.stop()
}

// TestLastWill: a device that loses its power no longer holds open the windows of
// the group that it is in; a heartbeat of another keeps that one active.
func TestLastWill(t *testing.T) {
	begin(t)
	s := newSite(t, process.NewMosquitto(t), `
      subscribe: [{topic: "d/{asset}/{device}/{sensor}", time: {path: ts, unit: ms}, value: {path: v, type: number}}]
      presence: [{topic: "d/{asset}/{device}/status/state"}]`,
		`  - {name: grouped, scope: device, group: line, window: 4s, idle_after: 1h, functions: [count, sum], `+isolated+`}`)
	will := map[string]any{"will": map[string]any{"topic": "d/a/one/status/state", "payload": "offline", "retain": true}}
	one, two := newPahoDevice(t, s.broker, "one", will), newPahoDevice(t, s.broker, "two", nil)
	say := func(d *device, id string) {
		d.publish(publish{Topic: "d/a/" + id + "/x", Payload: fmt.Sprintf(`{"ts":%d,"v":1}`, time.Now().UnixMilli())})
	}
	one.publish(publish{Topic: "d/a/one/status/state", Payload: "online", Retain: true})
	say(one, "one")
	for range 30 { // the windows of the two end
		say(two, "two")
		time.Sleep(200 * time.Millisecond)
	}
	if n := s.out.windows(); n != 0 {
		t.Errorf("%d windows are out while one device is silent and not known to be gone", n)
	}
	one.kill()
	process.Eventually(t, 20*time.Second, func() error {
		say(two, "two")
		if s.out.windows() == 0 {
			return fmt.Errorf("the windows still wait for the device that is gone")
		}
		return nil
	})
	s.gateway.stop()
}

// TestRetainedAtRestart: retained messages are the state of things when the
// subscription begins, nothing new; a restart does not hear them again, and
// 100,000 of them are no more than the input may have.
func TestRetainedAtRestart(t *testing.T) {
	begin(t)
	b := process.NewMosquitto(t)
	py := newPahoDevice(t, b, "py", nil)
	var old []publish
	for i := range 20 {
		old = append(old, publish{Topic: fmt.Sprintf("r/a/s%02d", i), Payload: "7", Retain: true})
	}
	py.publish(old...)
	s := newSite(t, b, `
      subscribe: [{topic: "r/{asset}/{sensor}", format: plain}]
      max_series: 1000`,
		`  - {name: all, window: 4s, functions: [count], `+isolated+`}`)
	s.counts(t, map[string]int{"accepted": 20})
	s.gateway.stop()
	s.gateway.ready()
	py.publish(publish{Topic: "r/a/s00", Payload: "8"})
	s.counts(t, map[string]int{"accepted": 21})
	time.Sleep(6 * time.Second) // a window
	py.publish(publish{Topic: "r/a/s00", Payload: "9"})
	process.Eventually(t, 20*time.Second, func() error {
		if n := s.out.windows(); n != 1 {
			return fmt.Errorf("%d windows, want the one with the reading that was new", n)
		}
		return nil
	})
	s.gateway.stop()

	flood(t, b, 100_000)
	s.configure(t, `
      subscribe: [{topic: "r/{asset}/{sensor}", format: plain}, {topic: "flood/{asset}/{sensor}", format: plain}]
      max_series: 1000`, `  - {name: all, window: 4s, functions: [count], `+isolated+`}`)
	s.gateway.ready()
	s.counts(t, map[string]int{"accepted": 22 + 1000, "unmatched": 99_000})
	if mb := s.gateway.peakMB(t); mb > 100 {
		t.Errorf("peak memory %d MB", mb)
	}
	s.gateway.stop()
}

// flood leaves n retained messages of as many topics.
func flood(t *testing.T, b *process.Mosquitto, n int) {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	c := paho.NewClient(paho.ClientConfig{ClientID: "flood", Conn: conn})
	if _, err := c.Connect(t.Context(), &paho.Connect{ClientID: "flood", CleanStart: true, KeepAlive: 60}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		qos := byte(0)
		if i == n-1 {
			qos = 1 // then the broker has all
		}
		if _, err := c.Publish(t.Context(), &paho.Publish{Topic: "flood/a/" + strconv.Itoa(i), Payload: []byte("1"), QoS: qos, Retain: true}); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Disconnect(&paho.Disconnect{})
}

// TestTopicsChangedUnderASession: what the broker kept for a topic that is no
// longer configured is counted and named, and the session is rid of the topic.
func TestTopicsChangedUnderASession(t *testing.T) {
	begin(t)
	const both = `
      subscribe: [{topic: "a/{sensor}", format: plain}, {topic: "b/{sensor}", format: plain}]`
	const feature = `  - {name: all, window: 4s, functions: [count], ` + isolated + `}`
	s := newSite(t, process.NewMosquitto(t), both, feature)
	py := newPahoDevice(t, s.broker, "py", nil)
	say := func(n int) {
		for i := range n {
			py.publish(publish{Topic: "a/x", Payload: strconv.Itoa(i)}, publish{Topic: "b/x", Payload: strconv.Itoa(i)})
		}
	}
	say(5)
	s.counts(t, map[string]int{"accepted": 10})
	s.gateway.stop()
	say(5) // while we are down
	s.configure(t, strings.Replace(both, `, {topic: "b/{sensor}", format: plain}`, "", 1), feature)
	// At the first start with the change the broker is away: what is to be
	// unsubscribed must not be forgotten.
	s.broker.End(syscall.SIGTERM)
	s.gateway.ready()
	time.Sleep(time.Second)
	s.gateway.End(syscall.SIGKILL)
	s.broker.Start()
	py = newPahoDevice(t, s.broker, "py", nil)
	s.gateway.ready()
	s.counts(t, map[string]int{"accepted": 15, "unmatched": 5})
	process.Eventually(t, 20*time.Second, func() error {
		log, err := os.ReadFile(s.gateway.Log)
		if err == nil && !strings.Contains(string(log), "the session no longer has the topic filters") {
			err = fmt.Errorf("the session still has the topic that is gone")
		}
		return err
	})
	say(5)
	s.counts(t, map[string]int{"accepted": 20, "unmatched": 5})
	s.gateway.stop()
}

// TestBacklogOfADevice: a device that comes back with 3,600 stored readings is in
// order by its own clock: nothing of it is late, though no lateness is allowed and
// another device was live all the time, and that one does not wait for it. The
// gateway is killed meanwhile.
func TestBacklogOfADevice(t *testing.T) {
	begin(t)
	s := newSite(t, process.NewMosquitto(t), `
      subscribe: [{topic: "h/{asset}/{device}/{sensor}", each: "@this", time: {path: ts, unit: ms}, seq: {path: n}, value: {path: v, type: number}}]`,
		`  - {name: windows, scope: device, window: 6s, idle_after: 1h, functions: [count, sum], out_of_orderness: 1s, allowed_lateness: 0s, correct_every: 0s, flush_after: 0s}`)
	live, back := newJSDevice(t, s.broker, "live", nil), newPahoDevice(t, s.broker, "back", nil)
	start := nextWindow(0)
	beats := 0
	beat := func() {
		live.publish(publish{Topic: "h/a/live/y", Payload: fmt.Sprintf(`[{"ts":%d,"n":%d,"v":1}]`, time.Now().UnixMilli(), beats)})
		beats++
	}
	for time.Since(start) < 14*time.Second { // 200 readings a second are stored by the one that is away
		beat()
		time.Sleep(250 * time.Millisecond)
	}
	if n := s.out.windows(); n < 1 {
		t.Errorf("%d windows of the live device are out after 14 s", n)
	}
	var batches []publish
	for from := 0; from < 3600; from += 20 {
		var rows []string
		for n := from; n < from+20; n++ {
			rows = append(rows, fmt.Sprintf(`{"ts":%d,"n":%d,"v":1}`, start.UnixMilli()+int64(n)*4, n))
		}
		batches = append(batches, publish{Topic: "h/a/back/x", Payload: "[" + strings.Join(rows, ",") + "]"})
	}
	back.publish(batches[:60]...)
	beat()
	s.gateway.End(syscall.SIGKILL)
	back.publish(batches[60:120]...)
	s.gateway.Start()
	process.Eventually(t, 20*time.Second, s.gateway.clockIs("synchronized"))
	back.publish(batches[120:]...)
	beat()
	process.Eventually(t, 40*time.Second, func() error {
		beat()
		st, err := s.gateway.status()
		if err != nil {
			return err
		}
		switch f, c := st.Features[0], st.Inputs[0].Counts; {
		case f.Late != 0:
			return fmt.Errorf("%d readings were late", f.Late)
		case int(c.Accepted) != 3600+beats || int(f.Windowed) != 3600+beats:
			return fmt.Errorf("%d of %d readings accepted, %+v", c.Accepted, 3600+beats, f)
		}
		return nil
	})
	if count := s.out.counted("x"); count < 1500 { // all but the last window of it
		t.Errorf("%d of the stored readings are in windows that are out", count)
	}
	s.gateway.stop()
}

// TestTwoGatewaysOneName: what happens is named, not only that the connection ends.
func TestTwoGatewaysOneName(t *testing.T) {
	begin(t)
	b := process.NewMosquitto(t)
	const mqtt = `
      subscribe: [{topic: "a/{sensor}", format: plain}]`
	const feature = `  - {name: all, window: 4s, functions: [count], ` + isolated + `}`
	first, second := newSite(t, b, mqtt, feature), newGatewayAt(t, b, mqtt, feature)
	second.gateway.ready()
	process.Eventually(t, 60*time.Second, func() error {
		said := ""
		for _, s := range []*site{first, second} {
			st, err := s.gateway.status()
			if err != nil {
				return err
			}
			said += st.Inputs[0].Reader.Problem + "\n"
		}
		if !strings.Contains(said, "two gateways are named gateway-in") {
			return fmt.Errorf("the two say: %s", said)
		}
		return nil
	})
	first.gateway.stop()
	second.gateway.stop()
}

// windows is how many windows have a result.
func (c *consumer) windows() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.best)
}

// counted is how many readings of a sensor are in windows that are out.
func (c *consumer) counted(sensor string) (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, r := range c.best {
		if key.sensor == sensor {
			n += r.Values.Count
		}
	}
	return n
}

// peakMB is the gateway's greatest resident size so far.
func (s *service) peakMB(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}
