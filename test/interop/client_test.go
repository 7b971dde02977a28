package interop

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/test/process"
)

// publisher is a device that publishes with QoS 1, one message at a time.
type publisher struct {
	t      *testing.T
	client *paho.Client
}

func newPublisher(t *testing.T, b *process.Mosquitto, id string) *publisher {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	p := &publisher{t, paho.NewClient(paho.ClientConfig{ClientID: id, Conn: conn})}
	if _, err := p.client.Connect(t.Context(), &paho.Connect{ClientID: id, CleanStart: true, KeepAlive: 60}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.client.Disconnect(&paho.Disconnect{}) })
	return p
}

// send publishes a reading and returns when the broker has it.
func (p *publisher) send(ctx context.Context, start time.Time, r send) error {
	payload := fmt.Appendf(nil, `{"ts":%d,"id":%q,"v":%d}`, start.Add(r.taken).UnixMilli(), r.id, r.value)
	_, err := p.client.Publish(ctx, &paho.Publish{Topic: "line/press-1/d1/" + r.sensor, QoS: 1, Payload: payload})
	return err
}

// play publishes the whole plan at its times; what it returns is closed at the
// end.
func (p *publisher) play(plan *plan, start time.Time) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for _, r := range plan.sends {
			time.Sleep(time.Until(start.Add(r.at)))
			if err := p.send(p.t.Context(), start, r); err != nil {
				p.t.Errorf("reading %s: %v", r.id, err)
				return
			}
		}
	}()
	return over
}

// tick goes on with a sensor of its own, so that the input's watermark goes on,
// until stop is called; that returns how many readings there were.
func (p *publisher) tick(start time.Time) (stop func() int) {
	ctx, cancel := context.WithCancel(p.t.Context())
	count := make(chan int)
	go func() {
		n := 0
		for every := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; n++ {
			r := send{taken: time.Since(start).Truncate(time.Millisecond), sensor: "tick", id: "tick-" + strconv.Itoa(n)}
			if err := p.send(p.t.Context(), start, r); err != nil {
				p.t.Errorf("tick: %v", err)
				break
			}
			<-every.C
		}
		count <- n
	}()
	return func() int {
		cancel()
		return <-count
	}
}
