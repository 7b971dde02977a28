package sim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/eclipse/paho.golang/paho"
)

// device plays one machine over a real MQTT connection.
type device struct {
	Machine
	broker string
	start  time.Time
	now    func() time.Time
	dice   *rand.Rand
	told   func(Happening)

	next  int       // number of the next reading
	queue []message // by time of sending; in order of making where equal
}

// run publishes with QoS 1 until ctx ends.
func (d *device) run(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.broker)
	if err != nil {
		return d.failed(ctx, err)
	}
	client := paho.NewClient(paho.ClientConfig{ClientID: d.Device, Conn: conn})
	if _, err := client.Connect(ctx, &paho.Connect{ClientID: d.Device, CleanStart: true, KeepAlive: 30}); err != nil {
		conn.Close()
		return d.failed(ctx, err)
	}
	defer func() {
		// The broker may be gone already: then there is nobody to say goodbye to.
		_ = client.Disconnect(&paho.Disconnect{})
		<-client.Done()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		m := d.pop()
		timer.Reset(max(0, m.send-d.now().Sub(d.start)))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if m.note != "" && d.told != nil {
			d.told(Happening{At: d.start.Add(m.send), Machine: d.Machine, What: m.note})
		}
		if m.silent {
			continue
		}
		if _, err := client.Publish(ctx, &paho.Publish{Topic: d.Topic(), QoS: 1, Payload: d.payload(m, d.start)}); err != nil {
			return d.failed(ctx, err)
		}
	}
}

// failed is nil if the world is ending anyway.
func (d *device) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("machine %s: %w", d.Asset, err)
}

// pop returns the next message in order of sending. Nothing that a later reading
// gives is sent before that reading is taken.
func (d *device) pop() message {
	for len(d.queue) == 0 || d.queue[0].send >= time.Duration(d.next)*d.every {
		for _, m := range d.tick(d.next, d.dice) {
			at, _ := slices.BinarySearchFunc(d.queue, m.send+1, func(q message, t time.Duration) int { return cmp.Compare(q.send, t) })
			d.queue = slices.Insert(d.queue, at, m)
		}
		d.next++
	}
	m := d.queue[0]
	d.queue = slices.Delete(d.queue, 0, 1)
	return m
}
