package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/test/process"
)

// consumer is what the contract asks of one: it keeps the highest (generation,
// revision) of each key. It also checks law 4 on everything that it hears: no
// (key, generation, revision) has two contents.
type consumer struct {
	mu       sync.Mutex
	best     map[recordKey]record
	contents map[version]string
	closed   map[recordKey]record
	late     []string
	set      []string // aside: quarantine records
	events   []string
	faults   []string
	heard    int
	repeats  int
}

type recordKey struct {
	sensor  string
	startMS int64
}

// version is what names one immutable value.
type version struct {
	kind string
	recordKey
	generation uint64
	revision   int
}

type record struct {
	Type          string
	Generation    uint64
	Revision      int
	Sensor        string
	Status, Cause string
	WindowStart   time.Time `json:"window_start"`
	PartialStart  bool      `json:"partial_start"`
	Values        struct{ Count, Sum, Min, Max int64 }
	Clock         struct {
		State string
		Flags []string
	}
}

func (r *record) newer(o record) bool {
	return r.Generation > o.Generation || r.Generation == o.Generation && r.Revision > o.Revision
}

// newConsumer hears everything that the uplink publishes.
func newConsumer(t *testing.T, b *process.Mosquitto) *consumer {
	t.Helper()
	c := &consumer{best: map[recordKey]record{}, contents: map[version]string{}, closed: map[recordKey]record{}}
	hear(t, b, "consumer", "tidemark/v1/interop/#", func(p paho.PublishReceived) (bool, error) {
		c.take(p.Packet.Topic, p.Packet.Payload)
		return true, nil
	})
	return c
}

func (c *consumer) take(topic string, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var r record
	if err := json.Unmarshal(payload, &r); err != nil {
		c.faults = append(c.faults, fmt.Sprintf("%s: %v: %s", topic, err, payload))
		return
	}
	c.heard++
	key := recordKey{r.Sensor, r.WindowStart.UnixMilli()}
	switch r.Type {
	case "late":
		c.late = append(c.late, string(payload))
		return
	case "quarantine":
		c.set = append(c.set, string(payload))
		return
	case "event":
		c.events = append(c.events, string(payload))
		return
	case "feature", "closed":
	default:
		return
	}
	v := version{r.Type, key, r.Generation, r.Revision}
	switch old, known := c.contents[v]; {
	case known && old != string(payload):
		c.faults = append(c.faults, fmt.Sprintf("two contents for one revision:\n%s\n%s", old, payload))
	case known:
		c.repeats++
	}
	c.contents[v] = string(payload)
	into := c.best
	if r.Type == "closed" {
		into = c.closed
	}
	if old, ok := into[key]; !ok || r.newer(old) {
		into[key] = r
	}
}

// right checks that each window of the plan stands with the sums of its truth,
// and with the wanted revision where revision is not 0.
func (c *consumer) right(p *plan, start time.Time, revision func(cell) int) func() error {
	return func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		wrong, missing, first := 0, 0, ""
		for key, want := range p.truth {
			r, ok := c.best[recordKey{key.sensor, start.UnixMilli() + key.startMS}]
			got := sums{r.Values.Count, r.Values.Sum, r.Values.Min, r.Values.Max}
			switch rev := revision(key); {
			case !ok:
				missing++
			case got != *want || rev != 0 && r.Revision != rev:
				wrong++
				first = fmt.Sprintf("; for example %s at %d ms: %+v revision %d (%s), want %+v revision %d", key.sensor, key.startMS, got, r.Revision, r.Cause, *want, rev)
			}
		}
		if wrong+missing > 0 {
			return fmt.Errorf("of %d windows %d are missing and %d wrong%s", len(p.truth), missing, wrong, first)
		}
		return nil
	}
}

// wrong is a window of the plan that does not stand with the sums of its truth.
func (c *consumer) wrong(p *plan, start time.Time) (cell, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, want := range p.truth {
		r := c.best[recordKey{key.sensor, start.UnixMilli() + key.startMS}]
		if (sums{r.Values.Count, r.Values.Sum, r.Values.Min, r.Values.Max}) != *want {
			return key, true
		}
	}
	return cell{}, false
}

// allClosed checks that each window of the plan is closed with the last revision
// that was heard of it.
func (c *consumer) allClosed(p *plan, start time.Time) func() error {
	return func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		open := 0
		for key := range p.truth {
			k := recordKey{key.sensor, start.UnixMilli() + key.startMS}
			r, ok := c.closed[k]
			if !ok {
				open++
			} else if last := c.best[k]; r.Revision != last.Revision || r.Generation != last.Generation {
				return fmt.Errorf("%v was closed at (%d, %d), but (%d, %d) stands", k, r.Generation, r.Revision, last.Generation, last.Revision)
			}
		}
		if open > 0 {
			return fmt.Errorf("of %d windows %d are not closed", len(p.truth), open)
		}
		return nil
	}
}

// sound checks what must never be, whatever was heard.
func (c *consumer) sound() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	if len(c.faults) > 0 {
		errs = append(errs, fmt.Errorf("%d faults, the first: %s", len(c.faults), c.faults[0]))
	}
	if len(c.late) > 0 {
		errs = append(errs, fmt.Errorf("%d readings came too late, the first: %s", len(c.late), c.late[0]))
	}
	if len(c.set) > 0 {
		errs = append(errs, fmt.Errorf("%d readings were set aside, the first: %s", len(c.set), c.set[0]))
	}
	generations := map[uint64]int{}
	for v := range c.contents {
		generations[v.generation]++
	}
	if len(generations) > 1 {
		errs = append(errs, fmt.Errorf("one store had %d generations: %v", len(generations), generations))
	}
	return errors.Join(errs...)
}

// report says what was heard, for the log of a passing test.
func (c *consumer) report() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d records heard, %d of them again; %d windows, %d closed", c.heard, c.repeats, len(c.best), len(c.closed))
}
