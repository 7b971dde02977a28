package interop

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/gateway"
	"tidemark/test/process"
)

// line is a gateway that reads an OPC UA server, and a broker that gets its
// records.
type line struct {
	*service
	t      *testing.T
	heard  *listener
	broker *process.Mosquitto
}

// newLine does not start the gateway yet. server is YAML of the input, without the
// nodes; nodes are rules.
func newLine(t *testing.T, endpoint, server string, nodes ...string) *line {
	return newLineWith(t, "clock: {trust: local}\nfeatures: []", endpoint, server, nodes...)
}

// newLineWith has more of the configuration.
func newLineWith(t *testing.T, more, endpoint, server string, nodes ...string) *line {
	t.Helper()
	dir := process.Scratch(t)
	l := &line{t: t, broker: process.NewMosquitto(t)}
	l.heard = newListener(t, l.broker, "listener", "tidemark/v1/interop/#")
	l.service = &service{config: filepath.Join(dir, "tidemark.yaml")}
	process.Write(t, l.config, fmt.Sprintf(`gateway: {id: interop}
store: {path: tidemark.db, quota: 256MiB, commit_interval: 100ms}
web: {listen: ""}
pki: {dir: pki}
inputs:
  - name: plant
    opcua:
      endpoint: %s
      %s
      nodes:
        - %s
%s
uplinks:
  - name: plant
    mqtt: {url: "%s"}
`, endpoint, strings.ReplaceAll(server, "\n", "\n      "), strings.Join(nodes, "\n        - "), more, l.broker.URL()))
	l.Process = process.Prepare(t, dir, binary, "run", "-c", l.config)
	return l
}

// everyValue asks for each change: no value of a counter is left out between two
// looks of the server.
const everyValue = "security: none\nsampling: 0s\npublishing: 500ms"

const countersRule = `{under: /Objects/Counters, match: "{sensor}", asset: counters}`

// newCounters starts a gateway that reads three counters, and returns when it does.
func newCounters(t *testing.T) (*plant, *line) {
	t.Helper()
	p := newPlant(t, "--counters", "3", "--every", "100")
	return p, startCounters(t, p)
}

func startCounters(t *testing.T, p *plant) *line {
	t.Helper()
	l := newLine(t, p.endpoint, everyValue, countersRule)
	l.Start()
	l.counts(p)
	return l
}

// reader checks how the OPC UA input stands.
func (l *line) reader(check func(r *gateway.ReaderStatus) bool) func() error {
	return func() error {
		st, err := l.status()
		if err != nil {
			return err
		}
		if r := st.Inputs[0].Reader; r == nil || !check(r) {
			return fmt.Errorf("the reader stands at %+v", r)
		}
		return nil
	}
}

// awaits waits for the OPC UA input to stand as it should.
func (l *line) awaits(limit time.Duration, check func(r *gateway.ReaderStatus) bool) {
	l.t.Helper()
	process.Eventually(l.t, limit, l.reader(check))
}

func connected(r *gateway.ReaderStatus) bool { return r.State == "connected" && r.Problem == "" }

// says reports what is wrong with the input as a person would read it.
func says(words ...string) func(r *gateway.ReaderStatus) bool {
	return func(r *gateway.ReaderStatus) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(r.Problem, w) })
	}
}

// lasts returns the last value of each sensor.
func (l *line) lasts() (map[string]json.RawMessage, error) {
	tags, err := l.tagList()
	if err != nil {
		return nil, err
	}
	values := map[string]json.RawMessage{}
	for _, tag := range tags.Tags {
		if tag.Last != nil {
			values[tag.Sensor] = tag.Last.Value
		}
	}
	return values, nil
}

// counts waits until the gateway has what the first counter of the plant says now,
// or a later value.
func (l *line) counts(p *plant) {
	l.t.Helper()
	now := p.counter()
	process.Eventually(l.t, 60*time.Second, func() error {
		lasts, err := l.lasts()
		if err != nil {
			return err
		}
		var n int
		if err := json.Unmarshal(lasts["c0"], &n); err != nil || n < now {
			return fmt.Errorf("c0 is at %d, the gateway knows %s", now, lasts["c0"])
		}
		return nil
	})
}

func (p *plant) counter() int {
	p.t.Helper()
	var now struct{ Value int }
	p.do(map[string]any{"do": "read", "node": tag("Counters.c0")}, &now)
	return now.Value
}

// newer checks that the gateway has a reading of a sensor from after a moment.
func (l *line) newer(sensor string, than time.Time) error {
	tags, err := l.tagList()
	if err != nil {
		return err
	}
	for _, tag := range tags.Tags {
		if tag.Sensor == sensor && tag.Last != nil {
			if at, err := time.Parse(time.RFC3339Nano, tag.Last.SourceTime); err == nil && at.After(than) {
				return nil
			}
		}
	}
	return fmt.Errorf("nothing of %s from after %v", sensor, than)
}

// beside is a path next to the configuration.
func (l *line) beside(name string) string { return filepath.Join(filepath.Dir(l.config), name) }

// taken is a reading as the journal has it.
type taken struct {
	Sensor   string          `json:"sensor"`
	Source   *time.Time      `json:"source_time"`
	Value    json.RawMessage `json:"value"`
	Quality  string          `json:"quality"`
	Status   uint32          `json:"quality_status"`
	Delivery []string        `json:"delivery"`
	Stamp    stamp           `json:"stamp"`
}

type stamp struct {
	Disposition string   `json:"disposition"`
	Reason      string   `json:"reason"`
	Flags       []string `json:"flags"`
	Watermark   *int64   `json:"watermark"`
}

func (r *taken) initial() bool { return slices.Contains(r.Delivery, "initial") }

// gap is a record of what a source skipped.
type gap struct {
	Reason, Detail, Place string
	From, To              *time.Time
	Series                int
}

func (g *gap) covers(from, to time.Time) bool {
	return (g.From == nil || g.From.Before(to)) && (g.To == nil || g.To.After(from))
}

// ledger is everything that a gateway has taken, and said about what it could not.
type ledger struct {
	t        *testing.T
	readings map[string][]taken // by sensor, in the order in which they came
	gaps     []gap
	status   *gateway.Status
}

// finish waits until the gateway has the last values of the plant, which has none
// to follow, stops it and reads its journal.
func (l *line) finish(p *plant) *ledger {
	l.t.Helper()
	p.do(map[string]any{"do": "pause"}, nil)
	l.counts(p)
	return l.close()
}

// close waits until all that was received is judged and sent, stops the gateway and
// reads its journal.
func (l *line) close() *ledger {
	l.t.Helper()
	led := &ledger{t: l.t, readings: map[string][]taken{}}
	process.Eventually(l.t, 30*time.Second, func() (err error) {
		led.status, err = l.status()
		switch {
		case err != nil:
			return err
		case !led.status.Conserved:
			return errors.New("the sums do not hold")
		case led.status.Uplinks[0].Backlog != 0:
			return fmt.Errorf("%d records wait to be sent", led.status.Uplinks[0].Backlog)
		case led.status.Inputs[0].Reader.CatchingUp:
			return errors.New("still catching up")
		}
		return nil
	})
	l.stop()
	// A gap is told when the server's history has been read, maybe only now; the last
	// word of a gateway that stops in order is that it does.
	process.Eventually(l.t, 10*time.Second, func() error {
		if heard := l.heard.heard(); len(heard) == 0 || !bytes.Contains(heard[len(heard)-1].payload, []byte(`"shutdown"`)) {
			return errors.New("the listener has not heard the end")
		}
		return nil
	})
	for _, m := range l.heard.heard() {
		if !strings.HasSuffix(m.topic, "/event/gap") {
			continue
		}
		var g gap
		if err := json.Unmarshal(m.payload, &g); err != nil {
			l.t.Fatalf("%v: %s", err, m.payload)
		}
		led.gaps = append(led.gaps, g)
	}
	led.read(l.journal())
	return led
}

// journal returns the trace of a gateway that is stopped.
func (l *line) journal() []byte {
	l.t.Helper()
	out, err := command(l.t, "record", "-c", l.config, "--store", l.beside("tidemark.db"))
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

func (led *ledger) read(trace []byte) {
	led.t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(trace))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var batch struct{ Readings []taken }
		if err := json.Unmarshal(lines.Bytes(), &batch); err != nil {
			led.t.Fatalf("%v: %.300s", err, lines.Bytes())
		}
		for _, r := range batch.Readings {
			if r.Stamp.Disposition == "PENDING" {
				continue // it stands there again with its verdict
			}
			led.readings[r.Sensor] = append(led.readings[r.Sensor], r)
		}
	}
	if lines.Err() != nil {
		led.t.Fatal(lines.Err())
	}
}

// inOrder returns a sensor's readings by source time, each once however often it
// was delivered. What was an initial value and comes as a reading too is a reading.
func (led *ledger) inOrder(sensor string) []taken {
	all := slices.Clone(led.readings[sensor])
	slices.SortStableFunc(all, func(a, b taken) int {
		if c := cmp.Compare(a.Source.UnixNano(), b.Source.UnixNano()); c != 0 || a.initial() == b.initial() {
			return c
		}
		if b.initial() {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(all, func(a, b taken) bool {
		return a.Source.Equal(*b.Source) && bytes.Equal(a.Value, b.Value)
	})
}

// contiguous checks that a counter has every value, and that where some are missing
// a gap record says so. It returns how many stretches are missing.
func (led *ledger) contiguous(sensor string) (missing int) {
	led.t.Helper()
	rs := led.inOrder(sensor)
	for i := 1; i < len(rs); i++ {
		before, now := led.number(rs[i-1]), led.number(rs[i])
		if now == before+1 {
			continue
		}
		missing++
		if !slices.ContainsFunc(led.gaps, func(g gap) bool { return g.covers(*rs[i-1].Source, *rs[i].Source) }) {
			led.t.Errorf("%s goes from %d (%v) to %d (%v), and no record of %+v says so", sensor, before, rs[i-1].Source, now, rs[i].Source, led.gaps)
		}
	}
	return missing
}

func (led *ledger) number(r taken) int {
	led.t.Helper()
	var n float64
	if err := json.Unmarshal(r.Value, &n); err != nil {
		led.t.Fatalf("%s: %v: %s", r.Sensor, err, r.Value)
	}
	return int(n)
}

// sound checks what holds whatever happens: every counter's values are there or
// their absence is told, and what came twice counts once.
func (led *ledger) sound() (missing int) {
	led.t.Helper()
	distinct, again := 0, 0
	for sensor, rs := range led.readings {
		missing += led.contiguous(sensor)
		for _, r := range led.inOrder(sensor) {
			if !r.initial() {
				distinct++
			}
		}
		again += len(rs)
		for _, r := range rs {
			if r.initial() {
				distinct++ // sets the state of things, as often as it comes
			}
		}
	}
	again -= distinct
	if c := led.status.Inputs[0].Counts; int(c.Accepted+c.PendingAccepted) != distinct || int(c.Duplicate+c.PendingDuplicate) != again {
		led.t.Errorf("the journal has %d readings and %d of them again, the gateway counts %+v", distinct, again, c)
	}
	r := led.status.Inputs[0].Reader
	led.t.Logf("%d readings, %d came again, %d stretches missing, %d gap records; %d subscriptions made anew, %d messages of them %d fetched again",
		distinct, again, missing, len(led.gaps), r.Rebuilt, r.Messages, r.Redelivered)
	for _, g := range led.gaps {
		led.t.Logf("gap: %s %s: %s (%v to %v)", g.Reason, g.Place, g.Detail, g.From, g.To)
	}
	return missing
}

// lossless checks that nothing is missing, nor said to be.
func (led *ledger) lossless() {
	led.t.Helper()
	if missing := led.sound(); missing > 0 || len(led.gaps) > 0 {
		led.t.Errorf("%d stretches are missing, %d gap records", missing, len(led.gaps))
	}
}
