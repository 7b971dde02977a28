package mqtt

import (
	"context"
	"encoding/json"
	"fmt"
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
		err := r.online(ctx)
		if ctx.Err() != nil {
			r.setHost("")
			return
		}
		r.setHost(fmt.Sprintf("edge nodes are not told that host application %s is online: %v", r.cfg.SparkplugHost, err))
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
	topic := "spBv1.0/STATE/" + r.cfg.SparkplugHost
	since := r.clk.Now().WallNS / 1e6
	down, doubted := make(chan error, 1), make(chan struct{}, 1)
	fail := func(err error) {
		select {
		case down <- err:
		default:
		}
	}
	dialled, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	sock, err := r.peer.Dial(dialled)
	if err != nil {
		return r.peer.Unreachable(err)
	}
	client := paho.NewClient(paho.ClientConfig{
		ClientID: r.cfg.ClientID + "-state", Conn: sock, PacketTimeout: dialTimeout,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			if s := (hostState{Online: true}); json.Unmarshal(p.Packet.Payload, &s) == nil && !s.Online {
				signal(doubted)
			}
			return true, nil
		}},
		OnClientError:      func(err error) { fail(r.peer.Broke(err)) },
		OnServerDisconnect: func(d *paho.Disconnect) { fail(r.peer.Ended(broker.Code(d.ReasonCode), "")) },
	})
	defer func() { sock.Close(); <-client.Done() }()
	if err := r.connectHost(dialled, client, topic, since); err != nil {
		return err
	}
	// First of all its own topic: the will of an earlier connection may still come.
	if _, err := client.Subscribe(dialled, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: topic, QoS: 1}}}); err != nil {
		return fmt.Errorf("the subscription to %s: %w; allow the user to read it", topic, err)
	}
	for {
		if err := publishState(ctx, client, topic, hostState{true, since}); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the publication to %s: %w; allow the user to write it", topic, err)
		}
		r.setHost("")
		select {
		case <-doubted: // somebody says that we are not there: say it again, with the same time
		case err := <-down:
			return err
		case <-ctx.Done():
			if publishState(context.WithoutCancel(ctx), client, topic, hostState{false, max(since, r.clk.Now().WallNS/1e6)}) == nil {
				_ = client.Disconnect(&paho.Disconnect{}) // else the will says it
			}
			return nil
		}
	}
}

// connectHost connects with the will that says that the host application is gone.
func (r *Reader) connectHost(ctx context.Context, client *paho.Client, topic string, since int64) error {
	c := &paho.Connect{ClientID: client.ClientID(), CleanStart: true, KeepAlive: uint16(r.cfg.KeepAlive / time.Second)}
	c.WillMessage = &paho.WillMessage{Topic: topic, QoS: 1, Retain: true, Payload: hostState{false, since}.encode()}
	if r.cfg.Login != nil {
		user, password, err := r.cfg.Login()
		if err != nil {
			return fmt.Errorf("login: %w", err)
		}
		c.Username, c.UsernameFlag = user, user != ""
		c.Password, c.PasswordFlag = password, len(password) > 0
	}
	ack, err := client.Connect(ctx, c)
	switch {
	case err == nil:
		return nil
	case ack != nil && broker.Code(ack.ReasonCode).Failed():
		return r.peer.Refused(broker.Code(ack.ReasonCode), "")
	}
	return r.peer.Unreachable(err)
}

func publishState(ctx context.Context, client *paho.Client, topic string, s hostState) error {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	_, err := client.Publish(ctx, &paho.Publish{Topic: topic, QoS: 1, Retain: true, Payload: s.encode()})
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
