package interop

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"

	"tidemark/test/process"
)

// listener keeps everything that is published under a filter, in a session that
// outlives a stop of the broker.
type listener struct {
	mu  sync.Mutex
	all []message
}

type message struct {
	topic    string
	payload  []byte
	retained bool // kept by the broker from before
	replayed bool
	dup      bool // the broker sent it before, and was not answered
}

func newListener(t *testing.T, b *process.Mosquitto, id, filter string) *listener {
	t.Helper()
	l := &listener{}
	hear(t, b, id, filter, l.take)
	return l
}

// hear has everything that is published under a filter brought to take, in a session
// that outlives a stop of the broker.
func hear(t *testing.T, b *process.Mosquitto, id, filter string, take func(paho.PublishReceived) (bool, error)) {
	t.Helper()
	server, err := url.Parse(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	subscribed := make(chan struct{})
	var once sync.Once
	most := uint16(1024)
	cm, err := autopaho.NewConnection(ctx, autopaho.ClientConfig{
		ServerUrls: []*url.URL{server}, KeepAlive: 20, SessionExpiryInterval: 3600,
		ReconnectBackoff: func(int) time.Duration { return 100 * time.Millisecond },
		ConnectPacketBuilder: func(p *paho.Connect, _ *url.URL) (*paho.Connect, error) {
			p.Properties.ReceiveMaximum = &most
			return p, nil
		},
		OnConnectionUp: func(cm *autopaho.ConnectionManager, ack *paho.Connack) {
			if ack.SessionPresent {
				return
			}
			go func() { // the handler must not block
				_, err := cm.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: filter, QoS: 1}}})
				if err == nil {
					once.Do(func() { close(subscribed) })
				}
			}()
		},
		ClientConfig: paho.ClientConfig{ClientID: id, OnPublishReceived: []func(paho.PublishReceived) (bool, error){take}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-cm.Done()
	})
	select {
	case <-subscribed:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s could not subscribe", id)
	}
}

func (l *listener) take(p paho.PublishReceived) (bool, error) {
	m := message{topic: p.Packet.Topic, payload: p.Packet.Payload, retained: p.Packet.Retain, dup: p.Packet.Duplicate()}
	m.replayed = p.Packet.Properties.User.Get("replayed") == "true"
	l.mu.Lock()
	l.all = append(l.all, m)
	l.mu.Unlock()
	return true, nil
}

func (l *listener) heard() []message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}
