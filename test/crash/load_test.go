package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/test/process"
)

// Windows and budgets of the gateway under test.
const (
	windowMS = 4000                    // more than twice what an unmeasured source clock may be off
	order    = 1500 * time.Millisecond // out-of-orderness
	lateness = 15 * time.Second
)

// cell is a window of a sensor.
type cell struct {
	sensor  string
	startMS int64
}

// sums is what a window must say; the values are whole numbers, so that no order
// of adding them up gives another sum.
type sums struct{ Count, Sum, Min, Max int64 }

func (s *sums) add(v int64) {
	if s.Count == 0 {
		s.Min, s.Max = v, v
	}
	s.Count++
	s.Sum += v
	s.Min, s.Max = min(s.Min, v), max(s.Max, v)
}

// What the devices send: each so many messages a second with so many samples.
const (
	deviceCount = 8
	sensorCount = 10 // of each
	samples     = 50
	every       = 200 * time.Millisecond
)

// devices are MQTT devices that publish with QoS 1 and repeat what they publish
// now and then, with samples out of order, some within the budget and some so late
// that they correct a window.
type devices struct {
	t       *testing.T
	broker  *process.Mosquitto
	resting chan struct{}
	over    chan struct{}
	work    sync.WaitGroup
	dice    []*rand.Rand
	firstMS int64 // no reading is older: a store's first windows begin after its birth

	mu     sync.Mutex
	truth  map[cell]sums // under mu
	sent   int           // under mu; distinct readings
	lastMS int64         // under mu; of the readings before rest
}

func newDevices(t *testing.T, seed uint64) *devices {
	d := &devices{t: t, broker: process.NewMosquitto(t), resting: make(chan struct{}), over: make(chan struct{}), truth: map[cell]sums{}}
	for i := range deviceCount {
		d.dice = append(d.dice, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	return d
}

// config is the entry of inputs: that reads them.
func (d *devices) config() string {
	return fmt.Sprintf(`  - name: line
    mqtt:
      url: %s
      receive_maximum: 1000
      subscribe:
        - topic: line/{asset}/{device}
          each: samples
          time: {path: ts, unit: ms}
          id: {path: id}
          sensor: {path: s}
          value: {path: v, type: number, unit: Cel}
`, d.broker.URL())
}

// begin has readings flow from here on.
func (d *devices) begin() {
	now := time.Now().UnixMilli()
	d.firstMS = now - now%windowMS + windowMS
	time.Sleep(time.Until(time.UnixMilli(d.firstMS)))
	for i := range deviceCount {
		d.work.Go(func() { d.play(i) })
	}
}

// rest leaves just enough of them that time goes on.
func (d *devices) rest() { close(d.resting) }

func (d *devices) end() {
	close(d.over)
	d.work.Wait()
}

// sample is one reading of a message.
type sample struct {
	TS int64  `json:"ts"`
	ID string `json:"id"`
	S  string `json:"s"`
	V  int64  `json:"v"`
}

// play is the life of one device.
func (d *devices) play(i int) {
	id := fmt.Sprintf("d%d", i)
	client, err := connect(d.broker.Addr, id)
	if err != nil {
		d.t.Error(err)
		return
	}
	defer func() { _ = client.Disconnect(&paho.Disconnect{}) }()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 0; ; n++ {
		resting := false
		select {
		case <-d.over:
			return
		case <-ticker.C:
		}
		select {
		case <-d.resting:
			resting = true
		default:
		}
		if !d.publish(client, d.message(i, n, resting), d.dice[i].IntN(50) == 0) {
			return
		}
	}
}

// message makes message n of device i and counts its readings into the truth.
func (d *devices) message(i, n int, resting bool) []byte {
	dice, now := d.dice[i], time.Now().UnixMilli()
	list := []sample{{TS: now, ID: fmt.Sprintf("d%d-%d-tick", i, n), S: fmt.Sprintf("d%d-tick", i)}}
	for k := 0; k < samples && !resting; k++ {
		s := sample{TS: now - int64(k)*every.Milliseconds()/samples, ID: fmt.Sprintf("d%d-%d-%d", i, n, k), S: fmt.Sprintf("d%d-s%d", i, k%sensorCount), V: dice.Int64N(2001) - 1000}
		switch {
		case dice.IntN(100) == 0:
			s.TS -= windowMS + dice.Int64N(lateness.Milliseconds()/2)
		case dice.IntN(20) == 0:
			s.TS -= dice.Int64N(order.Milliseconds() * 2 / 3)
		}
		s.TS = max(s.TS, d.firstMS)
		list = append(list, s)
	}
	dice.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	d.count(list, resting)
	payload, err := json.Marshal(map[string]any{"samples": list})
	if err != nil {
		panic(err)
	}
	return payload
}

func (d *devices) count(list []sample, resting bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent += len(list)
	for _, s := range list {
		if resting {
			continue // its window is still open at the end
		}
		key := cell{s.S, s.TS - s.TS%windowMS}
		c := d.truth[key]
		c.add(s.V)
		d.truth[key] = c
		d.lastMS = max(d.lastMS, s.TS)
	}
}

// publish sends a message, twice if so wanted, and returns when the broker has it:
// from then on it must not be lost.
func (d *devices) publish(client *paho.Client, payload []byte, twice bool) bool {
	for range map[bool]int{false: 1, true: 2}[twice] {
		_, err := client.Publish(d.t.Context(), &paho.Publish{Topic: "line/press-1/" + client.ClientID(), QoS: 1, Payload: payload})
		if err != nil {
			d.t.Errorf("device %s: %v", client.ClientID(), err)
			return false
		}
	}
	return true
}

// known is the truth of every window that is complete, and how many distinct readings
// there were; it is called after rest. It leaves out the ticks' own windows from the
// last reading's on: they go on while the gateway is asked.
func (d *devices) known() (map[cell]sums, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := map[cell]sums{}
	for key, s := range d.truth {
		if key.startMS+windowMS <= d.lastMS || key.sensor[len(key.sensor)-4:] != "tick" {
			known[key] = s
		}
	}
	return known, d.sent
}

func connect(addr, id string) (*paho.Client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := paho.NewClient(paho.ClientConfig{ClientID: id, Conn: conn})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err = c.Connect(ctx, &paho.Connect{ClientID: id, CleanStart: true, KeepAlive: 60})
	return c, err
}
