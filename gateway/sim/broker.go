package sim

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Broker is an MQTT broker (3.1.1 and 5) in memory on a loopback port. It lets
// everybody in and forgets everything when it ends.
type Broker struct {
	server   *mqtt.Server
	listener net.Listener
	watchers int
}

// NewBroker binds a loopback port. Clients are served once Run is called.
//
// A client's receive maximum should be at least 1024: with smaller ones this
// broker stalls instead of queueing.
func NewBroker() (*Broker, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot bind a port for the broker: %w", err)
	}
	b := &Broker{listener: l, server: mqtt.New(&mqtt.Options{
		InlineClient: true,
		Logger:       slog.New(slog.DiscardHandler), // what matters shows at its clients
	})}
	if err := b.server.AddHook(new(openDoor), nil); err != nil {
		return nil, fmt.Errorf("cannot set up the broker: %w", err)
	}
	if err := b.server.AddListener(&port{Net: listeners.NewNet("loopback", l), guests: &b.server.Listeners.ClientsWg}); err != nil {
		return nil, fmt.Errorf("cannot set up the broker: %w", err)
	}
	return b, nil
}

// port lets nobody in once it is closed. The server waits for its guests then, and
// counts one that comes at that moment in a way that sync.WaitGroup does not allow; so
// who comes is counted here, before.
type port struct {
	*listeners.Net
	guests *sync.WaitGroup
	mu     sync.Mutex
	closed bool // under mu
}

// Serve implements listeners.Listener.
func (p *port) Serve(establish listeners.EstablishFn) {
	p.Net.Serve(func(id string, c net.Conn) error {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return c.Close()
		}
		p.guests.Add(1)
		p.mu.Unlock()
		defer p.guests.Done()
		return establish(id, c)
	})
}

// Close implements listeners.Listener.
func (p *port) Close(closeClients listeners.CloseFn) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Net.Close(closeClients)
}

// openDoor lets every client in and on every topic.
type openDoor struct{ mqtt.HookBase }

func (*openDoor) Provides(b byte) bool {
	return b == mqtt.OnConnectAuthenticate || b == mqtt.OnACLCheck
}

func (*openDoor) OnConnectAuthenticate(*mqtt.Client, packets.Packet) bool { return true }

func (*openDoor) OnACLCheck(*mqtt.Client, string, bool) bool { return true }

// Addr is host:port of the broker.
func (b *Broker) Addr() string { return b.listener.Addr().String() }

// Watch calls fn with every message on topics that match the filter, in order of
// each publisher, on the publisher's goroutine: fn must not block. The payload is
// fn's to keep. Call it before Run.
func (b *Broker) Watch(filter string, fn func(topic string, payload []byte)) error {
	b.watchers++
	err := b.server.Subscribe(filter, b.watchers, func(_ *mqtt.Client, _ packets.Subscription, pk packets.Packet) {
		fn(pk.TopicName, pk.Payload)
	})
	if err != nil {
		return fmt.Errorf("cannot watch %q: %w", filter, err)
	}
	return nil
}

// Run serves until ctx ends.
func (b *Broker) Run(ctx context.Context) error {
	if err := b.server.Serve(); err != nil {
		return fmt.Errorf("broker on %s: %w", b.Addr(), err)
	}
	<-ctx.Done()
	b.seeOff()
	if err := b.server.Close(); err != nil {
		return fmt.Errorf("broker on %s: %w", b.Addr(), err)
	}
	return nil
}

// seeOff waits a moment for clients whose goodbye is still on its way: a broker
// that goes first would publish their wills.
func (b *Broker) seeOff() {
	const patience, glance = 250 * time.Millisecond, 5 * time.Millisecond
	for waited := time.Duration(0); waited < patience && b.server.Info.Clone().ClientsConnected > 0; waited += glance {
		time.Sleep(glance)
	}
}

// close frees the port of a broker that never ran.
func (b *Broker) close() { b.listener.Close() }
