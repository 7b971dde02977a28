package mqtt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
)

// connection is the MQTT client, which keeps connecting until its context ends.
type connection struct {
	manager *autopaho.ConnectionManager
	subs    sync.WaitGroup
	// unsubscribe ends the subscribing of the connection that is up. Only the
	// manager's goroutine touches it.
	unsubscribe context.CancelFunc
}

// wait returns when everything that the connection started has ended.
func (c *connection) wait() {
	<-c.manager.Done()
	c.subs.Wait()
}

func (r *Reader) connect(ctx context.Context) (*connection, error) {
	c := &connection{unsubscribe: func() {}}
	cfg := autopaho.ClientConfig{
		ServerUrls:            []*url.URL{r.url},
		KeepAlive:             uint16(r.cfg.KeepAlive / time.Second),
		SessionExpiryInterval: uint32(r.cfg.SessionExpiry / time.Second),
		ConnectTimeout:        dialTimeout,
		ReconnectBackoff:      r.backoff,
		AttemptConnection:     r.attempt,
		ConnectPacketBuilder:  r.connectPacket,
		OnConnectError:        r.failed,
		OnConnectionUp: func(m *autopaho.ConnectionManager, _ *paho.Connack) {
			r.mu.Lock()
			r.setState(Connected, "")
			r.mu.Unlock()
			var up context.Context
			up, c.unsubscribe = context.WithCancel(ctx)
			c.subs.Go(func() { r.subscribe(up, m) })
		},
		OnConnectionDown: func() bool {
			c.unsubscribe()
			r.lost()
			return true
		},
		ClientConfig: paho.ClientConfig{
			ClientID:      r.cfg.ClientID,
			PingHandler:   r.pinger,
			PacketTimeout: dialTimeout,
			// The wire takes every publish; without a handler paho makes a router.
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){
				func(paho.PublishReceived) (bool, error) { return true, nil },
			},
		},
	}
	m, err := autopaho.NewConnection(ctx, cfg)
	c.manager = m
	return c, err
}

func (r *Reader) backoff(attempt int) time.Duration {
	now := r.clk.Now().BootNS
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.retry.delay(attempt, now, rand.Float64())
}

func (r *Reader) attempt(ctx context.Context, _ autopaho.ClientConfig, u *url.URL) (net.Conn, error) {
	c, err := dial(ctx, u, r.cfg.TLS)
	if err != nil {
		return nil, err
	}
	l := &link{r: r}
	l.wire = newWire(c, l, r.cfg.MaxPayload)
	return l.wire, nil
}

func (r *Reader) connectPacket(p *paho.Connect, _ *url.URL) (*paho.Connect, error) {
	p.Properties.ReceiveMaximum = &r.cfg.ReceiveMaximum
	if r.cfg.Login == nil {
		return p, nil
	}
	user, password, err := r.cfg.Login()
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	p.Username, p.UsernameFlag = user, user != ""
	p.Password, p.PasswordFlag = password, len(password) > 0
	return p, nil
}

// refusal says what a broker's refusal means (MQTT 5 §3.2.2.2) and what to do.
var refusal = map[byte]string{
	0x80: "unspecified error",
	0x84: "it does not speak MQTT 5; use a broker that does (mosquitto from 1.6)",
	0x85: "it does not accept client id; set client_id",
	0x86: "user or password are wrong; set login",
	0x87: "not authorised; allow the user to connect",
	0x88: "unavailable",
	0x89: "busy",
	0x8A: "banned",
	0x8C: "it wants another authentication method",
	0x97: "quota exceeded",
	0x9F: "too many connections at once",
}

// failed notes an attempt that did not succeed.
func (r *Reader) failed(err error) {
	now := r.clk.Now().BootNS
	r.mu.Lock()
	defer r.mu.Unlock()
	var no *autopaho.ConnackError
	if errors.As(err, &no) {
		why, ok := refusal[no.ReasonCode]
		if !ok {
			why = fmt.Sprintf("reason code 0x%02X", no.ReasonCode)
		}
		if no.Reason != "" {
			why += " (" + no.Reason + ")"
		}
		r.setState(Refused, "the broker refuses the connection: "+why)
		return
	}
	if r.retry.contended(now) {
		return
	}
	hint := "; the gateway keeps trying"
	if network := new(net.OpError); errors.As(err, &network) {
		hint = "; is the broker there? The gateway keeps trying"
	}
	r.setState(Waiting, err.Error()+hint)
}

// dismissed notes a DISCONNECT from the broker.
func (r *Reader) dismissed(reason byte) {
	const takenOver = 0x8E
	now := r.clk.Now().BootNS
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dismissal = fmt.Sprintf("the broker ended the connection, reason code 0x%02X", reason)
	if reason == takenOver {
		r.dismissal = "another client took the session of client id " + r.cfg.ClientID
		r.retry.takenOver(now)
	}
}

// lost notes the end of a connection that was up.
func (r *Reader) lost() {
	now := r.clk.Now().BootNS
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retry.lost(now, r.cur != nil && r.cur.useful)
	if r.retry.contended(now) {
		r.setState(Contended, "two gateways share client id "+r.cfg.ClientID+": they take the session from each other; give each its own gateway.id or client_id")
		return
	}
	why := "the connection broke"
	if r.dismissal != "" {
		why, r.dismissal = r.dismissal, ""
	}
	r.setState(Waiting, why+"; the gateway reconnects")
}

// subscribeAgain is after how long a refused subscription is tried again.
const subscribeAgain = 30 * time.Second

// subscribe makes the session's subscriptions those of the configuration, and
// keeps trying while the connection is up.
func (r *Reader) subscribe(ctx context.Context, m *autopaho.ConnectionManager) {
	var stale []string
	for _, f := range r.cfg.StaleFilters {
		if !slices.Contains(r.Filters(), f) {
			stale = append(stale, f)
		}
	}
	for {
		var err error
		if len(stale) > 0 {
			if _, err = m.Unsubscribe(ctx, &paho.Unsubscribe{Topics: stale}); err == nil {
				r.log.Info().Strs("filters", stale).Msg("unsubscribed what is no longer configured")
				stale = nil
			}
		}
		if r.subscribeOnce(ctx, m) && err == nil {
			return
		}
		timer := time.NewTimer(subscribeAgain)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

const packetIDInUse = 0x91

// subscribeOnce reports whether every subscription stands.
func (r *Reader) subscribeOnce(ctx context.Context, m *autopaho.ConnectionManager) bool {
	var s paho.Subscribe
	for _, sub := range r.decoder.router.subs {
		s.Subscriptions = append(s.Subscriptions, paho.SubscribeOptions{
			Topic: sub.filter, QoS: sub.QoS,
			RetainHandling: 1, // what is retained comes with a new subscription, not with each connection
		})
	}
	ack, err := m.Subscribe(ctx, &s)
	if ack == nil {
		if ctx.Err() == nil {
			r.log.Warn().Err(err).Msg("cannot subscribe; trying again")
		}
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.refusals)
	for i, code := range ack.Reasons {
		if i >= len(s.Subscriptions) {
			break
		}
		asked := s.Subscriptions[i]
		switch {
		case code == packetIDInUse && r.status.Resumed:
			// mochi mixes our packet ids up with its own. The session has the
			// subscription; trying again soon makes sure.
		case code == 0x87:
			r.refusals[asked.Topic] = fmt.Sprintf("the broker does not authorise the subscription to %s; allow the user to read it", asked.Topic)
		case code >= 0x80:
			r.refusals[asked.Topic] = fmt.Sprintf("the broker refuses the subscription to %s: reason code 0x%02X", asked.Topic, code)
		case code < asked.QoS:
			r.refusals[asked.Topic] = fmt.Sprintf("the broker grants only QoS %d for %s: messages can be lost; let it grant %d", code, asked.Topic, asked.QoS)
		}
	}
	for _, why := range r.refusals {
		r.log.Warn().Str("problem", why).Msg("subscription")
	}
	return err == nil
}
