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

	"tidemark/internal/broker"
)

// dialTimeout bounds an attempt up to the broker's answer.
const dialTimeout = 10 * time.Second

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

// connect begins to connect, and goes on until ctx ends, which is after run does.
func (r *Reader) connect(ctx, run context.Context) (*connection, error) {
	c := &connection{unsubscribe: func() {}}
	cfg := autopaho.ClientConfig{
		ServerUrls:            []*url.URL{r.peer.URL()},
		KeepAlive:             uint16(r.cfg.KeepAlive / time.Second),
		SessionExpiryInterval: uint32(r.cfg.SessionExpiry / time.Second),
		ConnectTimeout:        dialTimeout,
		ReconnectBackoff:      r.backoff,
		AttemptConnection:     r.attempt,
		ConnectPacketBuilder:  r.connectPacket,
		OnConnectError:        r.failed,
		OnConnectionUp: func(m *autopaho.ConnectionManager, ack *paho.Connack) {
			r.granted(ack)
			var up context.Context
			up, c.unsubscribe = context.WithCancel(ctx)
			c.subs.Go(func() {
				if r.subscribe(up, m) && r.cfg.SparkplugHost != "" {
					r.announce(up, run)
				}
			})
			c.subs.Go(func() { r.askRebirths(up, m) })
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

func (r *Reader) attempt(ctx context.Context, _ autopaho.ClientConfig, _ *url.URL) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := r.peer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{r: r}
	l.wire = newWire(c, l, r.cfg.MaxPayload)
	return l.wire, nil
}

func (r *Reader) connectPacket(p *paho.Connect, _ *url.URL) (*paho.Connect, error) {
	p.Properties.ReceiveMaximum = &r.cfg.ReceiveMaximum
	return p, r.login(p)
}

// login puts the user and the password, as they are now, into a CONNECT.
func (r *Reader) login(p *paho.Connect) error {
	if r.cfg.Login == nil {
		return nil
	}
	user, password, err := r.cfg.Login()
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	p.Username, p.UsernameFlag = user, user != ""
	p.Password, p.PasswordFlag = password, len(password) > 0
	return nil
}

// failed notes an attempt that did not succeed.
func (r *Reader) failed(err error) {
	now := r.clk.Now().BootNS
	r.mu.Lock()
	defer r.mu.Unlock()
	var no *autopaho.ConnackError
	if errors.As(err, &no) {
		r.setState(Refused, r.peer.Refused(broker.Code(no.ReasonCode), r.words).Error())
		return
	}
	r.retry.unreachable()
	if r.retry.contended(now) {
		return
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // autopaho says in front of it what Unreachable says too
	}
	r.setState(Waiting, r.peer.Unreachable(err).Error())
}

// granted notes a connection that is up, and what of it is less than was asked for.
func (r *Reader) granted(ack *paho.Connack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setState(Connected, "")
	r.session = ""
	r.keepAlive.Store(int64(r.cfg.KeepAlive))
	p := ack.Properties
	if p == nil {
		return
	}
	if p.ServerKeepAlive != nil && *p.ServerKeepAlive > 0 {
		r.keepAlive.Store(int64(*p.ServerKeepAlive) * int64(time.Second))
	}
	asked := uint32(r.cfg.SessionExpiry / time.Second)
	switch {
	case p.AssignedClientID != "" && p.AssignedClientID != r.cfg.ClientID:
		r.session = fmt.Sprintf("the broker at %s gave the session the name %s instead of %s and will not find it again: what comes while the gateway is away is lost; set a client_id that it accepts", r.peer.Addr(), p.AssignedClientID, r.cfg.ClientID)
	case p.SessionExpiryInterval != nil && *p.SessionExpiryInterval < asked:
		r.session = fmt.Sprintf("the broker at %s keeps the session for %v without a connection, not for %v: what comes later is lost; let it keep sessions longer (mosquitto: persistent_client_expiration), or lower session_expiry to what it allows", r.peer.Addr(), time.Duration(*p.SessionExpiryInterval)*time.Second, r.cfg.SessionExpiry)
	}
}

// pinger keeps the connection alive, and says when the broker no longer answers.
type pinger struct{ *paho.DefaultPinger }

// Run implements paho.Pinger.
func (p pinger) Run(ctx context.Context, conn net.Conn, keepAlive uint16) error {
	err := p.DefaultPinger.Run(ctx, conn, keepAlive)
	if w, ok := conn.(*wire); ok {
		w.failed(err)
	}
	return err
}

// dismissed notes a DISCONNECT from the broker.
func (r *Reader) dismissed(l *link, code broker.Code, words string) {
	now := r.clk.Now().BootNS
	r.mu.Lock()
	defer r.mu.Unlock()
	l.ending = r.peer.Ended(code, words).Error()
	if code == broker.TakenOver {
		r.retry.takenOver(now)
	}
}

// lost notes the end of a connection that was up.
func (r *Reader) lost() {
	now := r.clk.Now().BootNS
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retry.lost(now, r.cur.useful)
	if r.cur.hungUp {
		r.retry.hungUp(now)
	}
	switch why := r.contention(now); {
	case why != "":
		r.setState(Contended, why)
	case r.cur.ending == "":
		r.setState(Waiting, "the gateway ended the connection to "+r.peer.Addr())
	default:
		r.setState(Waiting, r.cur.ending)
	}
}

// contention says that another gateway seems to have our session, empty if it does
// not. The lock is held.
func (r *Reader) contention(now int64) string {
	switch {
	case r.retry.contended(now):
		return fmt.Sprintf("two gateways are named %s: they take the session from each other; give each its own gateway.id or client_id (said until it has been quiet for %.0f minutes)",
			r.cfg.ClientID, takeoverQuiet.Minutes())
	case r.retry.suspicious(now):
		return fmt.Sprintf("the broker at %s accepted the last %d connections and closed each soon after, without saying why: either two gateways are named %s and take the session from each other (give each its own gateway.id or client_id), or the broker's log says what it will not have (said until it has been quiet for %.0f minutes)",
			r.peer.Addr(), r.retry.hangups, r.cfg.ClientID, hangupQuiet.Minutes())
	}
	return ""
}

// subscribeAgain is after how long a refused subscription is tried again.
const subscribeAgain = 30 * time.Second

// subscribe makes the session's subscriptions those of the configuration, and
// keeps trying while the connection is up. It reports whether they are.
func (r *Reader) subscribe(ctx context.Context, m *autopaho.ConnectionManager) bool {
	var stale []string
	for _, f := range r.cfg.StaleFilters {
		if !slices.Contains(r.Filters(), f) {
			stale = append(stale, f)
		}
	}
	for {
		whole := r.subscribeOnce(ctx, m)
		var err error
		// Not before: a filter that is dropped may be one that a new one covers.
		if whole && len(stale) > 0 {
			_, err = m.Unsubscribe(ctx, &paho.Unsubscribe{Topics: stale})
			switch {
			case err == nil:
				r.log.Info().Strs("filters", stale).Msg("the session no longer has the topic filters that the configuration dropped")
				stale = nil
				if r.cfg.OnReconciled != nil {
					r.cfg.OnReconciled(r.Filters())
				}
			case ctx.Err() == nil:
				r.log.Warn().Err(err).Strs("filters", stale).Msg("the session still has topic filters that the configuration dropped; the broker is asked again")
			}
		}
		if whole && err == nil {
			return true
		}
		if !pause(ctx, subscribeAgain) {
			return false
		}
	}
}

// subscribeOnce reports whether every subscription stands.
func (r *Reader) subscribeOnce(ctx context.Context, m *autopaho.ConnectionManager) bool {
	var s paho.Subscribe
	for _, f := range r.decoder.router.filters {
		s.Subscriptions = append(s.Subscriptions, paho.SubscribeOptions{
			Topic: f.text, QoS: f.qos,
			RetainHandling: 1, // what is retained comes with a new subscription, not with each connection
		})
	}
	ack, err := m.Subscribe(ctx, &s)
	if ctx.Err() != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.refusals)
	if ack == nil {
		for _, asked := range s.Subscriptions {
			r.refuse(asked.Topic, fmt.Sprintf("the broker does not answer the subscription to %s: %v", asked.Topic, err))
		}
		return false
	}
	for i, asked := range s.Subscriptions {
		if i >= len(ack.Reasons) {
			r.refuse(asked.Topic, fmt.Sprintf("the broker's answer leaves out whether the subscription to %s stands; it is at fault", asked.Topic))
			err = errShort
			continue
		}
		switch code := broker.Code(ack.Reasons[i]); {
		case code == broker.IdentifierInUse && r.status.Resumed:
			// mochi mixes our packet ids up with its own. The session has the
			// subscription; trying again soon makes sure.
		case code.Failed():
			r.refuse(asked.Topic, fmt.Sprintf("the broker refuses the subscription to %s: %s", asked.Topic, code.Refusal()))
		case ack.Reasons[i] < asked.QoS:
			r.refuse(asked.Topic, fmt.Sprintf("the broker grants only QoS %d for %s: messages can be lost; let it grant %d", code, asked.Topic, asked.QoS))
		}
	}
	return err == nil
}

var errShort = errors.New("a SUBACK with fewer reason codes than subscriptions")

// refuse notes why a subscription does not stand as asked. The lock is held.
func (r *Reader) refuse(filter, why string) {
	r.refusals[filter] = why
	r.log.Debug().Str("filter", filter).Str("problem", why).Msg("a subscription does not stand as asked")
}

// ask has edge nodes asked to be born again. What is one too many now is asked
// again later, since the decoder goes on asking.
func (r *Reader) ask(topics []string) {
	for _, topic := range topics {
		select {
		case r.asks <- topic:
		default:
		}
	}
}

// askRebirths publishes the requests to Sparkplug's edge nodes while the connection
// is up.
func (r *Reader) askRebirths(ctx context.Context, m *autopaho.ConnectionManager) {
	for {
		select {
		case <-ctx.Done():
			return
		case topic := <-r.asks:
			payload := AppendRebirth(nil, uint64(r.clk.Now().WallNS/1e6))
			if _, err := m.Publish(ctx, &paho.Publish{Topic: topic, Payload: payload}); err != nil {
				r.log.Debug().Err(err).Str("topic", topic).Msg("a rebirth could not be asked for")
				continue
			}
			r.log.Debug().Str("topic", topic).Msg("an edge node is asked to be born again")
		}
	}
}
