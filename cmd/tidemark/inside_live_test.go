package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
	"github.com/rs/zerolog"

	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/gateway/sim"
)

// plant is a whole gateway in this process with a broker on both sides, for the
// commands that look inside.
type plant struct {
	t      *testing.T
	file   string // the configuration
	store  string
	socket string
	dev    *autopaho.ConnectionManager
	stop   func()

	mu      sync.Mutex
	records []map[string]any // as they went upstream
}

// The source times of a plant's readings are what the test says: its input trusts
// them, so that a test tells the same story on every day.
const plantConfig = `
gateway: {id: plant}
clock: {trust: local}
store: {path: %s, quota: 64MiB, commit_interval: 20ms, commit_min_gap: 1ms}
web: {listen: ""}
inputs:
  - name: line
    timestamps: {use: source, when_wrong: trusted}
    mqtt:
      url: mqtt://%[2]s
      subscribe:
        - topic: "line/{asset}/{device}"
          format: json
          time: {path: ts}
          id: {path: id}
          quality: {path: q}
          sensors: {temp: {unit: Cel, path: v}}
        - {topic: "yard/scale", format: json, time: {path: ts}, asset: yard, sensors: {weight: {unit: kg}}}
features:
  - {name: minute, version: 1, select: {input: line, asset: "press-*"}, window: 1m, out_of_orderness: 5s, allowed_lateness: 1m, correct_every: 0s, flush_after: 0s, max_watermark_lag: 0s, functions: [count, sum, mean]}
uplinks:
  - {name: up, mqtt: {url: "mqtt://%[2]s", client_id: plant-up}}
`

func newPlant(t *testing.T) *plant {
	t.Helper()
	t.Parallel()                        // it mostly waits
	dir, err := os.MkdirTemp("", "tm-") // short enough for a Unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	broker, err := sim.NewBroker()
	if err != nil {
		t.Fatal(err)
	}
	p := &plant{t: t, file: filepath.Join(dir, "tidemark.yaml"), store: filepath.Join(dir, "t.db")}
	if err := broker.Watch("tidemark/v1/#", p.hear); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(plantConfig, p.store, broker.Addr())
	if err := os.WriteFile(p.file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(p.file)
	if err != nil {
		t.Fatal(err)
	}
	p.socket = cfg.Store.Path.Socket()
	g := gateway.New(cfg, gateway.Options{Log: zerolog.Nop(), Version: "test"})
	brokerCtx, stopBroker := context.WithCancel(context.Background())
	ctx, stopGateway := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = broker.Run(brokerCtx) })
	p.connect(broker.Addr())
	p.publish("yard/scale", "hello", true) // no JSON: it is counted, and leaves no reading
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		stopGateway()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		p.stop()
		stopBroker()
		served.Wait()
	})
	p.received(0) // what the broker retains comes once the subscriptions stand
	return p
}

func (p *plant) connect(addr string) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	target, _ := url.Parse("mqtt://" + addr)
	dev, err := autopaho.NewConnection(ctx, autopaho.ClientConfig{
		ServerUrls: []*url.URL{target}, KeepAlive: 20, ClientConfig: paho.ClientConfig{ClientID: "device"},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		cancel()
		<-dev.Done()
	})
	if err := dev.AwaitConnection(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.dev = dev
}

func (p *plant) hear(topic string, payload []byte) {
	var r map[string]any
	if json.Unmarshal(payload, &r) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records = append(p.records, r)
}

// sent returns the records of a type that went upstream.
func (p *plant) sent(kind string) (list []map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.records {
		if r["type"] == kind {
			list = append(list, r)
		}
	}
	return list
}

// minute is a moment of the plant's day: minutes and seconds after noon.
func minute(m int, s float64) string {
	return time.Date(2026, 1, 1, 12, m, 0, int(s*1e9), time.UTC).Format(time.RFC3339Nano)
}

// say publishes a reading of a press and returns when the broker has it.
func (p *plant) say(asset, id, ts string, value float64, quality string) {
	p.t.Helper()
	p.publish("line/"+asset+"/d1", fmt.Sprintf(`{"id":%q,"ts":%q,"v":%v,"q":%q}`, id, ts, value, quality), false)
}

func (p *plant) publish(topic, payload string, retain bool) {
	p.t.Helper()
	if _, err := p.dev.Publish(p.t.Context(), &paho.Publish{Topic: topic, QoS: 1, Retain: retain, Payload: []byte(payload)}); err != nil {
		p.t.Fatal(err)
	}
}

// received waits until the gateway has committed n readings. The hello counts as
// malformed: the broker may say it again, after a connection that was lost.
func (p *plant) received(n uint64) {
	p.t.Helper()
	p.until(fmt.Sprintf("%d readings", n), func() bool {
		st, err := gateway.AskStatus(p.t.Context(), p.socket)
		if err != nil {
			return false
		}
		c := st.Inputs[0].Counts
		return c.Malformed > 0 && c.Received-c.Malformed == n
	})
}

// patience is how long a test waits for what does come on a machine that is busy.
const patience = 2 * time.Minute

func (p *plant) until(what string, done func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("never: %s", what)
		}
	}
}

// story is a minute of one press with everything that can happen to a reading, of
// another press that says the time, and what follows until the minute is closed.
func (p *plant) story() {
	p.t.Helper()
	n := uint64(0)
	say := func(asset, id, ts string, value float64, quality string) {
		p.t.Helper()
		p.say(asset, id, ts, value, quality)
		n++
		p.received(n) // one after the other, so that the order is the story's
	}
	say("press-1", "a", minute(0, 10), 10, "good")
	say("press-1", "b", minute(0, 20), 20, "good")
	say("press-1", "b", minute(0, 20), 20, "good")  // once more
	say("press-1", "c", minute(0, 30), 99, "bad")   // counted, in no statistic
	say("press-2", "d", minute(1, 10), 1, "good")   // 12:00 fires
	say("press-1", "e", minute(0, 40), 30, "good")  // and is corrected
	say("press-2", "f", minute(2, 10), 1, "good")   // 12:00 is closed
	say("press-1", "g", minute(0, 50), 100, "good") // too late
	say("press-1", "h", "yesterday", 1, "good")     // no time
	p.until("what followed went upstream", func() bool {
		return len(p.sent("late")) == 1 && len(p.sent("quarantine")) == 1 && len(p.sent("closed")) == 1
	})
}

// ask runs a command as a user would, and returns what it printed.
func (p *plant) ask(args ...string) string {
	p.t.Helper()
	out, errOut, code := p.try(args...)
	if code != exitOK {
		p.t.Fatalf("tidemark %s: exit %d: %s", strings.Join(args, " "), code, errOut)
	}
	return out
}

func (p *plant) try(args ...string) (out, errOut string, code int) {
	var o, e bytes.Buffer
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	code = run(ctx, args, strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}
