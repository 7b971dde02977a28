package mqtt

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/internal/broker"
)

// This file is the gateway as a Sparkplug host application (Eclipse Sparkplug 3.0, 4.2.3
// and 5.13). Edge nodes publish with QoS 0, which no broker keeps for a session: what
// they say while nobody reads is gone. One that has the gateway for its primary host
// looks at STATE and stores until somebody does.
//
// STATE has a connection of its own, since the standard wants one that starts clean. It
// stands while the input is read: from its subscriptions on until its connection ends.

// hostState is the payload of STATE.
type hostState struct {
	Online    bool  `json:"online"`
	Timestamp int64 `json:"timestamp"` // Unix milliseconds; nodes drop what is older than the last
}

// stateTimeout bounds the wait for a broker's answer to STATE; at the gateway's end, too.
const stateTimeout = 2 * time.Second

// announce says that the host application is online, and again when a connection is
// lost, until the connection of the input or the reader begins to end.
func (r *Reader) announce(up, run context.Context) {
	ctx, cancel := context.WithCancel(up)
	defer cancel()
	defer context.AfterFunc(run, cancel)()
	for attempt := 0; ; attempt++ {
		begun := r.clk.Now().BootNS
		err := r.online(ctx)
		if ctx.Err() != nil {
			r.setHost("")
			return
		}
		r.setHost(fmt.Sprintf("edge nodes are not told that host application %s is online: %v", r.cfg.SparkplugHost, err))
		if r.clk.Now().BootNS-begun >= int64(lasting) {
			attempt = 0
		}
		pause(ctx, min(retryFirst<<min(attempt, 10), retryMax))
	}
}

// online announces the host application over one connection, until that ends, which is
// an error, or ctx does. Then it says goodbye.
func (r *Reader) online(ctx context.Context) error {
	for r.clk.Now().BoundNS < 0 {
		r.setHost("edge nodes are told that host application " + r.cfg.SparkplugHost + " is online when the gateway's clock is trusted: they drop a STATE that is older than the last")
		if !pause(ctx, time.Second) {
			return nil
		}
	}
	h, err := r.connectHost(ctx)
	if err != nil {
		return err
	}
	defer h.close()
	for {
		if err := h.publish(ctx, hostState{true, h.since}); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the publication to %s: %w; allow the user to write it", h.topic, err)
		}
		r.setHost("")
		select {
		case <-h.doubted: // somebody says that we are not there: say it again, with the same time
		case err := <-h.down:
			return err
		case <-ctx.Done():
			if h.publish(context.WithoutCancel(ctx), hostState{false, max(h.since, r.clk.Now().WallNS/1e6)}) == nil {
				_ = h.client.Disconnect(&paho.Disconnect{}) // else the will says it
			}
			return nil
		}
	}
}

// hostLink is a connection of the host application.
type hostLink struct {
	client  *paho.Client
	sock    net.Conn
	topic   string
	since   int64         // Unix milliseconds: of the will and of the birth
	down    chan error    // why it ended
	doubted chan struct{} // a death came that is not ours
}

// connectHost connects with the will that says that the host application is gone, and
// hears what others say of it.
func (r *Reader) connectHost(ctx context.Context) (*hostLink, error) {
	h := &hostLink{
		topic: "spBv1.0/STATE/" + r.cfg.SparkplugHost, since: r.clk.Now().WallNS / 1e6,
		down: make(chan error, 1), doubted: make(chan struct{}, 1),
	}
	hello := &paho.Connect{ClientID: r.cfg.ClientID + "-state", CleanStart: true, KeepAlive: uint16(r.cfg.KeepAlive / time.Second)}
	hello.WillMessage = &paho.WillMessage{Topic: h.topic, QoS: 1, Retain: true, Payload: hostState{false, h.since}.encode()}
	if err := r.login(hello); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var err error
	if h.sock, err = r.peer.Dial(ctx); err != nil {
		return nil, r.peer.Unreachable(err)
	}
	h.client = paho.NewClient(paho.ClientConfig{
		ClientID: hello.ClientID, Conn: h.sock, PacketTimeout: dialTimeout,
		OnPublishReceived:  []func(paho.PublishReceived) (bool, error){h.heard},
		OnClientError:      func(err error) { h.fail(r.peer.Broke(err)) },
		OnServerDisconnect: func(d *paho.Disconnect) { h.fail(r.peer.Ended(broker.Code(d.ReasonCode), "")) },
	})
	ack, err := h.client.Connect(ctx, hello)
	switch {
	case err == nil:
	case ack != nil && broker.Code(ack.ReasonCode).Failed():
		return nil, r.peer.Refused(broker.Code(ack.ReasonCode), "")
	default:
		return nil, r.peer.Unreachable(err)
	}
	// First of all its own topic: the will of an earlier connection may still come.
	if _, err := h.client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: h.topic, QoS: 1}}}); err != nil {
		h.close()
		return nil, fmt.Errorf("the subscription to %s: %w; allow the user to read it", h.topic, err)
	}
	return h, nil
}

func (h *hostLink) heard(p paho.PublishReceived) (bool, error) {
	if s := (hostState{}); json.Unmarshal(p.Packet.Payload, &s) != nil || !s.Online { // empty: it was taken away
		signal(h.doubted)
	}
	return true, nil
}

func (h *hostLink) fail(err error) {
	select {
	case h.down <- err:
	default:
	}
}

func (h *hostLink) close() {
	h.sock.Close()
	<-h.client.Done()
}

func (h *hostLink) publish(ctx context.Context, s hostState) error {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	_, err := h.client.Publish(ctx, &paho.Publish{Topic: h.topic, QoS: 1, Retain: true, Payload: s.encode()})
	return err
}

func (s hostState) encode() []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic("mqtt: " + err.Error()) // plain data
	}
	return data
}

// setHost notes what is wrong with the announcement; empty: nothing.
func (r *Reader) setHost(problem string) {
	r.mu.Lock()
	r.host = problem
	r.mu.Unlock()
}

// pause reports whether d has passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
