package interop

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/gateway"
	"tidemark/test/process"
)

// paceReadings is how many readings, each in a message of its own, are waited for in a
// round of TestPace.
const paceReadings = 100_000

// TestPace compares how fast the gateway takes single readings from mosquitto, each
// stored before it is acknowledged, with a subscriber that only counts and
// acknowledges. Both are fed by the same publisher, in turn, so what the machine can
// do at that moment is the same for both. It asserts nothing: `make bench` shows the
// figures.
func TestPace(t *testing.T) {
	if os.Getenv("TIDEMARK_BENCH") == "" {
		t.Skip("make bench")
	}
	begin(t)
	var ratios []float64
	for round := range 5 {
		bare, stored := countingPace(t), gatewayPace(t)
		ratios = append(ratios, stored/bare)
		t.Logf("round %d: a counting subscriber %.0f readings/s, the gateway %.0f: %.0f %%", round+1, bare, stored, 100*stored/bare)
	}
	slices.Sort(ratios)
	t.Logf("singles: the gateway reaches %.0f %% of a counting subscriber (median of %d rounds)", 100*ratios[len(ratios)/2], len(ratios))
}

// countingPace is the readings a second of a subscriber that counts.
func countingPace(t *testing.T) float64 {
	t.Helper()
	b := process.NewMosquitto(t)
	defer b.End(syscall.SIGTERM)
	var taken atomic.Int64
	client := paceClient(t, b, "counting")
	client.AddOnPublishReceived(func(paho.PublishReceived) (bool, error) {
		taken.Add(1)
		return true, nil
	})
	if _, err := client.Subscribe(t.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: "pace/#", QoS: 1}}}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(&paho.Disconnect{}) }()
	return pace(t, b, func() (int64, error) { return taken.Load(), nil })
}

// gatewayPace is the readings a second that a gateway has on disk.
func gatewayPace(t *testing.T) float64 {
	t.Helper()
	b := process.NewMosquitto(t)
	defer b.End(syscall.SIGTERM)
	dir := process.Scratch(t)
	s := &service{config: filepath.Join(dir, "tidemark.yaml")}
	process.Write(t, s.config, fmt.Sprintf(`gateway: {id: pace}
clock: {trust: local}
store: {path: tidemark.db, quota: 1GiB}
web: {listen: ""}
inputs:
  - name: line
    timestamps: {when_wrong: trusted}
    mqtt:
      url: %s
      subscribe:
        - {topic: pace/+, time: {path: ts, unit: ms}, seq: {path: seq}, sensor: {path: sensor}, value: {path: v, type: number}}
features:
  - {name: minutes, version: 1, window: 1m, out_of_orderness: 5s, allowed_lateness: 1m, functions: [count, sum, mean, min, max]}
uplinks: []
`, b.URL()))
	s.Process = process.Prepare(t, dir, binary, "run", "-c", s.config)
	s.Start()
	defer s.End(syscall.SIGTERM)
	process.Eventually(t, 30*time.Second, func() error {
		st, err := s.status()
		if err != nil || st.Inputs[0].Reader == nil || st.Inputs[0].Reader.State != "connected" {
			return fmt.Errorf("the gateway is not connected: %v", err)
		}
		return nil
	})
	return pace(t, b, func() (int64, error) {
		st, err := gateway.AskStatus(t.Context(), filepath.Join(dir, "tidemark.sock"))
		if err != nil {
			return 0, err
		}
		return int64(st.Inputs[0].Counts.Accepted), nil
	})
}

// pace has readings published as fast as the broker takes them, and returns how many a
// second have been taken when there are paceReadings.
func pace(t *testing.T, b *process.Mosquitto, taken func() (int64, error)) float64 {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	start, over := time.Now(), make(chan error, 1)
	client := paceClient(t, b, "publisher")
	go func() { over <- publishSingles(ctx, client, start) }()
	defer func() {
		stop()
		if err := <-over; err != nil {
			t.Errorf("cannot publish: %v", err)
		}
		_ = client.Disconnect(&paho.Disconnect{})
	}()
	for {
		n, err := taken()
		switch {
		case err != nil:
			t.Fatal(err)
		case n >= paceReadings:
			return float64(n) / time.Since(start).Seconds()
		case time.Since(start) > 2*time.Minute:
			t.Fatalf("%d of %d readings were taken", n, paceReadings)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func publishSingles(ctx context.Context, client *paho.Client, start time.Time) error {
	for i := 0; ctx.Err() == nil; i++ {
		payload := fmt.Appendf(nil, `{"sensor":"s%d","ts":%d,"seq":%d,"v":%d.5}`, i%1000, start.UnixMilli()+int64(i/1000), i, 20+i%10)
		m := &paho.Publish{Topic: "pace/line", QoS: 1, Payload: payload}
		_, err := client.PublishWithOptions(ctx, m, paho.PublishOptions{Method: paho.PublishMethod_AsyncSend})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func paceClient(t *testing.T, b *process.Mosquitto, id string) *paho.Client {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	client := paho.NewClient(paho.ClientConfig{ClientID: id, Conn: conn})
	most := uint16(1000) // as the gateway's
	properties := &paho.ConnectProperties{ReceiveMaximum: &most}
	if _, err := client.Connect(t.Context(), &paho.Connect{ClientID: id, CleanStart: true, KeepAlive: 60, Properties: properties}); err != nil {
		t.Fatal(err)
	}
	return client
}
