package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/test/process"
)

// sent is what these tests look at of a record.
type sent struct {
	Type, Status, Sensor, ID string
	UpdateID                 string `json:"update_id"`
	Revision                 int
	WindowStart              time.Time `json:"window_start"`
	Values                   struct{ Count, Sum, Min, Max int64 }
}

// records takes messages apart, batches too. A record that comes again must be the
// same, and say so.
func records(t *testing.T, ms []message) (all []sent) {
	t.Helper()
	seen := map[string]string{}
	take := func(m message, data []byte) {
		var r sent
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v: %s", m.topic, err, data)
		}
		if r.Type == "status" {
			return
		}
		if old, again := seen[r.UpdateID]; again {
			if old != string(data) || !m.replayed && !m.dup {
				t.Errorf("%s came again (replayed: %t):\n%s\n%s", m.topic, m.replayed, old, data)
			}
			return
		}
		seen[r.UpdateID] = string(data)
		all = append(all, r)
	}
	for _, m := range ms {
		if m.payload[0] != '[' {
			take(m, m.payload)
			continue
		}
		var batch []json.RawMessage
		if err := json.Unmarshal(m.payload, &batch); err != nil {
			t.Fatal(err)
		}
		for _, data := range batch {
			take(m, data)
		}
	}
	return all
}

func count(all []sent, want string) (n int) {
	for _, r := range all {
		if r.Type == want {
			n++
		}
	}
	return n
}

// TestUplinksChoose: four uplinks to one broker that goes away twenty times, each
// with its own choice. Each gets all of what it wants and nothing else, and
// everything has the form of its schema.
func TestUplinksChoose(t *testing.T) {
	begin(t)
	w := newWorld(t)
	more := fmt.Sprintf(`
  - {name: final, mqtt: {url: %[1]q}, prefix: up/final, publish: final, records: [feature], retain: true}
  - {name: raw, mqtt: {url: %[1]q}, prefix: up/raw, records: [event], raw: [{sensor: s00}]}
  - {name: batched, mqtt: {url: %[1]q}, prefix: up/batched, batch: 50, backlog: {order: in_order}}
`, w.up.URL())
	text, err := os.ReadFile(w.gateway.config)
	if err != nil {
		t.Fatal(err)
	}
	process.Write(t, w.gateway.config, strings.TrimRight(string(text), "\n")+more)
	plain := newListener(t, w.up, "plain", "tidemark/#")
	final := newListener(t, w.up, "final", "up/final/#")
	raw := newListener(t, w.up, "raw", "up/raw/#")
	batched := newListener(t, w.up, "batched", "up/batched/#")
	w.times.start(t)
	w.gateway.ready()
	p := newPlan(6, 6, 10, 24*time.Second, true)
	start := nextWindow(0)
	device := newPublisher(t, w.in, "device")
	played := device.play(p, start)
	for range 20 {
		time.Sleep(400 * time.Millisecond)
		w.up.End(syscall.SIGTERM)
		time.Sleep(50 * time.Millisecond)
		w.up.Start()
	}
	<-played
	distinct := w.settled(t, p, start, device.tick(start), anyRevision)
	for _, r := range []send{{taken: -time.Hour, id: "late"}, {taken: 24 * time.Hour, id: "ahead"}} {
		r.sensor = "s01"
		if err := device.send(t.Context(), start, r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := device.client.Publish(t.Context(), &paho.Publish{Topic: "line/press-1/d1/s01", QoS: 1, Payload: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	process.Eventually(t, 20*time.Second, func() error {
		all := records(t, plain.heard())
		if count(all, "late") == 0 || count(all, "quarantine") == 0 {
			return errors.New("no late reading, or none in quarantine")
		}
		return nil
	})
	idle := func() error {
		st, err := w.gateway.status()
		if err != nil {
			return err
		}
		for _, u := range st.Uplinks {
			if u.Backlog > 0 || u.SetAside > 0 {
				return fmt.Errorf("uplink %s has a backlog of %d, %d set aside", u.Name, u.Backlog, u.SetAside)
			}
		}
		return nil
	}
	process.Eventually(t, 20*time.Second, idle)
	process.Eventually(t, 20*time.Second, func() error { // the last readings may still be on their way
		n := 0
		for _, s := range p.sends {
			if s.sensor == "s00" {
				n++
			}
		}
		if got := count(records(t, raw.heard()), "raw"); got < n {
			return fmt.Errorf("%d readings of %d", got, n)
		}
		return nil
	})
	kept := newListener(t, w.up, "later", "up/final/#")
	process.Eventually(t, 5*time.Second, func() error {
		if n := len(kept.heard()); n < 7 { // six sensors and the status
			return fmt.Errorf("%d messages are retained", n)
		}
		return nil
	})
	w.gateway.stop()

	finals := map[cell]sent{}
	for _, r := range records(t, final.heard()) {
		key := cell{r.Sensor, r.WindowStart.Sub(start).Milliseconds()}
		if _, twice := finals[key]; twice || r.Type != "feature" || r.Status != "final" {
			t.Errorf("the final result of %v is a %s (%s), and came twice: %t", key, r.Type, r.Status, twice)
		}
		finals[key] = r
	}
	for key, want := range p.truth {
		r, there := finals[key]
		if got := (sums{r.Values.Count, r.Values.Sum, r.Values.Min, r.Values.Max}); got != *want {
			t.Errorf("the final result of %v is %+v (%t), want %+v", key, got, there, *want)
		}
	}
	ids := map[string]bool{}
	for _, r := range records(t, raw.heard()) {
		if r.Type == "raw" {
			if r.Sensor != "s00" {
				t.Errorf("a reading of %s came", r.Sensor)
			}
			ids[r.ID] = true
		} else if r.Type != "event" {
			t.Errorf("a %s came", r.Type)
		}
	}
	for _, s := range p.sends {
		if s.sensor == "s00" && !ids[s.id] {
			t.Errorf("reading %s did not come", s.id)
		}
	}
	one, other := records(t, plain.heard()), records(t, batched.heard())
	for _, kind := range []string{"feature", "closed", "event", "definition"} {
		if a, b := count(one, kind), count(other, kind); a != b || a == 0 {
			t.Errorf("%d records of type %s came one by one, %d in batches", a, kind, b)
		}
	}
	newest := map[string]time.Time{}
	for _, r := range records(t, final.heard()) {
		if r.WindowStart.After(newest[r.Sensor]) {
			newest[r.Sensor] = r.WindowStart
		}
	}
	for _, m := range kept.heard() {
		var r sent
		if err := json.Unmarshal(m.payload, &r); err != nil {
			t.Fatal(err)
		}
		if r.Type == "feature" && (!m.retained || !r.WindowStart.Equal(newest[r.Sensor])) {
			t.Errorf("retained of %s (%t): window %v, the newest is %v", r.Sensor, m.retained, r.WindowStart, newest[r.Sensor])
		}
	}
	valid := satisfySchemas(t, plain, final, raw, batched)
	t.Logf("%d readings; valid: %v", distinct, valid)
	for _, kind := range []string{"feature", "closed", "late", "quarantine", "definition", "raw", "batch", "status", "event/config"} {
		if valid[kind] == 0 {
			t.Errorf("no record of type %s came", kind)
		}
	}
}

// satisfySchemas holds everything that was heard to the shipped schemas, with a
// validator that is not ours.
func satisfySchemas(t *testing.T, ls ...*listener) (valid map[string]int) {
	t.Helper()
	var lines bytes.Buffer
	for _, l := range ls {
		for _, m := range l.heard() {
			lines.Write(m.payload)
			lines.WriteByte('\n')
		}
	}
	schemas, err := filepath.Abs("../../uplink/schema")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", filepath.Join("peers", "schema", "check.py"), schemas)
	cmd.Stdin = &lines
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	if err := json.Unmarshal(out, &valid); err != nil {
		t.Fatal(err)
	}
	return valid
}
