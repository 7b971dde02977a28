package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/test/process"
)

// witness hears everything that the uplink publishes, and does what the contract
// asks of a consumer: the highest (generation, revision) of a window counts.
type witness struct {
	mu       sync.Mutex
	best     map[cell]record
	closed   map[cell]record
	contents map[version]uint64 // hash of the payload
	seed     maphash.Seed
	faults   []string
	heard    int
	repeats  int
}

// version is what names one immutable value (law 4).
type version struct {
	kind string
	cell
	generation uint64
	revision   int
}

type record struct {
	Type        string
	Generation  uint64
	Revision    int
	Sensor      string
	WindowStart time.Time `json:"window_start"`
	Values      sums
}

func (r *record) newer(o record) bool {
	return r.Generation > o.Generation || r.Generation == o.Generation && r.Revision > o.Revision
}

func newWitness(t *testing.T, b *process.Mosquitto) *witness {
	t.Helper()
	w := &witness{best: map[cell]record{}, closed: map[cell]record{}, contents: map[version]uint64{}, seed: maphash.MakeSeed()}
	client, err := connect(b.Addr, "witness")
	if err != nil {
		t.Fatal(err)
	}
	client.AddOnPublishReceived(func(p paho.PublishReceived) (bool, error) {
		w.take(p.Packet.Payload)
		return true, nil
	})
	_, err = client.Subscribe(context.Background(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: "tidemark/#", QoS: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(&paho.Disconnect{}) })
	return w
}

func (w *witness) take(payload []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var r record
	if err := json.Unmarshal(payload, &r); err != nil {
		w.faults = append(w.faults, fmt.Sprintf("%v: %s", err, payload))
		return
	}
	w.heard++
	into := w.best
	switch r.Type {
	case "feature":
	case "closed":
		into = w.closed
	case "late", "quarantine":
		w.faults = append(w.faults, fmt.Sprintf("set aside though it came in time: %s", payload))
		return
	default:
		return
	}
	key := cell{r.Sensor, r.WindowStart.UnixMilli()}
	v, sum := version{r.Type, key, r.Generation, r.Revision}, maphash.Bytes(w.seed, payload)
	switch old, known := w.contents[v]; {
	case known && old != sum:
		w.faults = append(w.faults, fmt.Sprintf("a second content of one revision: %s", payload))
	case known:
		w.repeats++
	}
	w.contents[v] = sum
	if old, known := into[key]; !known || r.newer(old) {
		into[key] = r
	}
}

// right checks that every window that is complete has the sums of its truth and is
// closed with the revision that stands.
func (w *witness) right(d *devices) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	missing, wrong, open, first := 0, 0, 0, ""
	truth, _ := d.known()
	for key, want := range truth {
		r, heard := w.best[key]
		c, closed := w.closed[key]
		switch {
		case !heard:
			missing++
		case r.Values != want:
			wrong++
			first = fmt.Sprintf("; for example %v: %+v, want %+v", key, r, want)
		case !closed:
			open++
		case c.Revision != r.Revision || c.Generation != r.Generation:
			return fmt.Errorf("%v was closed at revision %d, but %d stands", key, c.Revision, r.Revision)
		}
	}
	if missing+wrong+open > 0 {
		for _, fault := range w.faults[:min(1, len(w.faults))] {
			first += "; heard: " + fault
		}
		return fmt.Errorf("of %d windows %d are missing, %d wrong, %d not closed%s", len(truth), missing, wrong, open, first)
	}
	return nil
}

// sound checks what must never be, whatever was heard.
func (w *witness) sound() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	if n := len(w.faults); n > 0 {
		errs = append(errs, fmt.Errorf("%d faults, the first: %s", n, w.faults[0]))
	}
	generations := map[uint64]int{}
	for v := range w.contents {
		generations[v.generation]++
	}
	if len(generations) != 1 {
		errs = append(errs, fmt.Errorf("one store had the generations %v", generations))
	}
	return errors.Join(errs...)
}

func (w *witness) report(d *devices) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	truth, sent := d.known()
	return fmt.Sprintf("%d readings, %d windows; %d records heard, %d of them again", sent, len(truth), w.heard, w.repeats)
}
