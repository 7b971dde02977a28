package mqtt_test

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

// Law 1: the acknowledgement comes after the commit, and in order (MQTT 5 §4.6).
func TestAcknowledgesAfterCommitInOrder(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), nil)
	p := b.accept(false)
	for id := range uint16(4) {
		p.publish(qos1, 10-id, fmt.Sprint(id))
		s.collect(t, 1)
	}
	p.silent()
	r.Committed(2)
	if got := p.acks(2); !slices.Equal(got, []uint16{10, 9}) {
		t.Errorf("acknowledged %v", got)
	}
	r.Committed(1) // says nothing new
	p.silent()
	r.Committed(4)
	if got := p.acks(2); !slices.Equal(got, []uint16{8, 7}) {
		t.Errorf("acknowledged %v", got)
	}
	if st := r.Status(); st.Outstanding != 0 || st.Limit != 0 {
		t.Errorf("got %+v", st)
	}
}

func TestConnectPacketAndSubscription(t *testing.T) {
	b := newBroker(t)
	start(t, b.url(), func(c *mqtt.Config) {
		c.ReceiveMaximum = 513
		c.Login = func() (string, []byte, error) { return "me", []byte("secret"), nil }
		c.StaleFilters = []string{"in/+", "old/#"}
		c.Subscriptions = []mqtt.Subscription{plainValue, {Topic: "s/{asset}/#", Share: "g", QoS: 2, Sensor: mqtt.Origin{Text: "x"}}}
	})
	p := b.greet([]byte{0x20, 3, 1, 0, 0})
	if flags := p.connect[7]; flags != 0xC0 {
		t.Errorf("flags %x: want user and password, and no clean start", flags)
	}
	for _, part := range []string{"tidemark-a", "me", "secret", "\x21\x02\x01", "\x11\x00\x01\x51\x80"} {
		if !strings.Contains(string(p.connect), part) {
			t.Errorf("CONNECT lacks %q", part)
		}
	}
	_, body := p.expect(10)
	if !strings.HasSuffix(string(body), "\x00\x05old/#") {
		t.Errorf("UNSUBSCRIBE %q", body)
	}
	p.send([]byte{0xB0, 4, body[0], body[1], 0, 0})
	if _, body = p.expect(8); !strings.HasSuffix(string(body), "\x00\x04in/+\x11\x00\x0e$share/g/s/+/#\x12") {
		t.Errorf("SUBSCRIBE %q", body)
	}
}

// The connection breaks twenty times under traffic, with acknowledgements on
// their way. What was not acknowledged comes again, in order and under its packet
// id; nothing is lost, and twice comes only what had its acknowledgement lost.
func TestNothingIsLostOverBrokenConnections(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), nil)
	const total, window = 2000, 50
	seen := map[int64]int{}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for len(seen) < total {
			p := s.take(t)
			for _, rd := range p.Readings {
				v, _ := rd.Value.Int()
				seen[v]++
			}
			time.AfterFunc(3*time.Millisecond, func() { r.Committed(p.Token) })
		}
	}()
	var open []int // unacknowledged at the broker
	sent, lost := 0, 0
	for drop := range 21 {
		p := b.accept(drop > 0)
		for _, v := range open {
			p.publish(qos1|dup, uint16(v+1), fmt.Sprint(v))
		}
		until := min(total, sent+97)
		for sent < until || drop == 20 && len(open) > 0 {
			if len(open) < window && sent < total {
				p.publish(qos1, uint16(sent+1), fmt.Sprint(sent))
				open = append(open, sent)
				sent++
				continue
			}
			if got := p.acks(1)[0]; int(got) != open[0]+1 {
				t.Fatalf("acknowledged %d, want %d", got, open[0]+1)
			}
			open = open[1:]
			if len(open) == 0 && sent == total {
				break
			}
		}
		if drop < 20 {
			p.Conn.(*net.TCPConn).SetLinger(0) // a broken connection, not one that the broker closes
			p.Close()
			lost += len(open) // at most: acknowledged, and we do not know
		}
	}
	<-finished
	twice := 0
	for _, n := range seen {
		twice += n - 1
	}
	if len(seen) != total || twice > lost {
		t.Errorf("%d values, %d twice, %d acknowledgements lost", len(seen), twice, lost)
	}
}

// What an earlier connection left unacknowledged comes again; as long as it is on
// its way to the disk it is not delivered twice, and its commit acknowledges it.
func TestRedeliveryIsRecognised(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), nil)
	p := b.accept(false)
	for id := range uint16(4) {
		p.publish(qos1, id+1, fmt.Sprint(id))
	}
	s.collect(t, 4)
	r.Committed(0)
	p.Close()

	p = b.accept(true)
	p.publish(qos1|dup, 1, "0")
	p.publish(qos1|dup, 2, "99") // not what it was: the broker counts anew
	p.publish(qos1|dup, 3, "2")
	p.publish(qos1, 5, "4")
	values, token := s.collect(t, 2)
	if !slices.Equal(values, []int64{99, 4}) {
		t.Errorf("delivered %v", values)
	}
	p.silent()
	p.Close()

	p = b.accept(true) // and once more
	p.publish(qos1|dup, 4, "3")
	p.publish(qos1|dup, 1, "0")
	p.publish(qos1|dup, 2, "99")
	p.publish(qos1|dup, 3, "2")
	p.publish(qos1|dup, 5, "4")
	s.empty(t)
	r.Committed(token)
	if got := p.acks(5); !slices.Equal(got, []uint16{4, 1, 2, 3, 5}) {
		t.Errorf("acknowledged %v", got)
	}
	if st := r.Status(); st.Redelivered != 7 || st.Messages != 13 || st.Readings != 6 {
		t.Errorf("got %+v", st)
	}
}

func TestCommittedWhileAwayIsAcknowledgedAtOnce(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), nil)
	p := b.accept(false)
	p.publish(qos1, 1, "0")
	_, token := s.collect(t, 1)
	p.Close()
	eventually(t, "waiting", func() bool {
		st := r.Status()
		return st.State == mqtt.Waiting && strings.HasPrefix(st.Problem, "the connection to "+b.ln.Addr().String()+" broke: ")
	})
	r.Committed(token)
	p = b.accept(true)
	p.publish(qos1|dup, 1, "0")
	if got := p.acks(1); got[0] != 1 {
		t.Errorf("acknowledged %v", got)
	}
	s.empty(t)
}

func TestLostSessionDeliversAgain(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), nil)
	p := b.accept(false)
	p.publish(qos1, 1, "0")
	s.collect(t, 1)
	p.Close()
	p = b.accept(false)
	p.publish(qos1, 1, "0")
	if got, _ := s.collect(t, 1); got[0] != 0 {
		t.Errorf("got %v", got)
	}
	if n := r.Status().Reconnects; n != 1 {
		t.Errorf("%d reconnects", n)
	}
}

func TestQoS0And2(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), nil)
	p := b.accept(false)
	p.publish(0x30, 0, "1")
	_, token := s.collect(t, 1)
	r.Committed(token)
	p.silent()
	p.publish(qos2, 7, "2")
	_, token = s.collect(t, 1)
	p.silent()
	r.Committed(token)
	if _, body := p.expect(5); body[1] != 7 { // PUBREC
		t.Errorf("got %x", body)
	}
	p.send([]byte{0x62, 2, 0, 7}) // PUBREL
	if _, body := p.expect(7); body[1] != 7 {
		t.Errorf("got %x", body)
	}
}

func TestRejectsAreAcknowledgedToo(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), func(c *mqtt.Config) { c.MaxPayload = 1000 })
	p := b.accept(false)
	p.publish(qos1, 1, "no JSON")
	p.send(packet(qos1, 2, "elsewhere/d", "1"))
	p.publish(qos1, 3, strings.Repeat("9", 1001))
	p.publish(qos1, 4, "["+strings.Repeat("9", 10<<20))
	p.publish(qos1, 5, "5")
	var reasons []string
	var last reading.Parcel
	for n := 0; n < 5; n += len(last.Readings) + len(last.Rejects) {
		last = s.take(t)
		for _, j := range last.Rejects {
			reasons = append(reasons, j.Reason)
		}
	}
	if want := []string{"not_json", "topic_unmatched", "too_large", "too_large"}; !slices.Equal(reasons, want) {
		t.Errorf("got %v", reasons)
	}
	r.Committed(last.Token)
	if got := p.acks(5); !slices.Equal(got, []uint16{1, 2, 3, 4, 5}) {
		t.Errorf("acknowledged %v", got)
	}
}

func TestMessageWithoutReadingsIsAcknowledged(t *testing.T) {
	b := newBroker(t)
	_, _, _ = start(t, b.url(), func(c *mqtt.Config) { c.Subscriptions[0].Each = "@this" })
	p := b.accept(false)
	p.publish(qos1, 1, "[]")
	if got := p.acks(1); got[0] != 1 {
		t.Errorf("acknowledged %v", got)
	}
}

func TestShutdownWaitsForCommits(t *testing.T) {
	b := newBroker(t)
	asked := make(chan struct{}, 1)
	r, s, stop := start(t, b.url(), func(c *mqtt.Config) { c.OnStall = func() { asked <- struct{}{} } })
	p := b.accept(false)
	p.publish(qos1, 1, "1")
	_, token := s.collect(t, 1)
	go func() {
		<-asked
		r.Committed(token)
	}()
	stop()
	p.acks(1)
	p.expect(14) // DISCONNECT
	if st := r.Status(); st.State != mqtt.Stopped {
		t.Errorf("state %v", st.State)
	}
}

func TestBrokerAwayAtStart(t *testing.T) {
	b := newBroker(t)
	addr := b.ln.Addr().String()
	b.ln.Close()
	r, _, _ := start(t, b.url(), nil)
	eventually(t, "waiting", func() bool {
		st := r.Status()
		return st.State == mqtt.Waiting && strings.Contains(st.Problem, "is the broker there?")
	})
	var err error
	if b.ln, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	defer b.ln.Close()
	b.accept(false)
	eventually(t, "connected", func() bool { st := r.Status(); return st.State == mqtt.Connected && st.Problem == "" })
}

func TestRefusedConnection(t *testing.T) {
	b := newBroker(t)
	r, _, _ := start(t, b.url(), nil)
	b.greet([]byte{0x20, 3, 0, 0x86, 0})
	eventually(t, "refused", func() bool {
		st := r.Status()
		return st.State == mqtt.Refused && strings.Contains(st.Problem, "set login")
	})
	b.accept(false)
	eventually(t, "connected", func() bool { return r.Status().State == mqtt.Connected })
}

func TestRefusedSubscription(t *testing.T) {
	b := newBroker(t)
	r, _, _ := start(t, b.url(), nil)
	p := b.greet([]byte{0x20, 3, 0, 0, 0})
	_, body := p.expect(8)
	p.send([]byte{0x90, 4, body[0], body[1], 0, 0x87})
	eventually(t, "said", func() bool {
		return strings.Contains(r.Status().Problem, "refuses the subscription to in/+: not authorized (0x87); allow the user to read it")
	})
}

func TestTwoGatewaysWithOneName(t *testing.T) {
	b := newBroker(t)
	r, _, _ := start(t, b.url(), nil)
	for range 3 {
		p := b.accept(true)
		p.send([]byte{0xE0, 1, 0x8E})
		p.Close()
	}
	eventually(t, "contended", func() bool {
		st := r.Status()
		return st.State == mqtt.Contended && strings.Contains(st.Problem, "two gateways are named tidemark-a")
	})
}

// A broker that holds back after five messages: noticed, asked a commit for, and
// named with its remedy.
func TestStallIsLearnt(t *testing.T) {
	b := newBroker(t)
	stalls := make(chan struct{}, 100)
	clk := newHandClock()
	r, s, _ := startAt(t, b.url(), clk, func(c *mqtt.Config) { c.OnStall = func() { stalls <- struct{}{} } })
	p := b.accept(false)
	id := uint16(0)
	window := func() uint64 {
		for range 5 {
			id++
			p.publish(qos1, id, "1")
		}
		_, token := s.collect(t, 5)
		return token
	}
	for range 3 {
		token := window()
		clk.advance(60 * time.Millisecond) // of quiet
		r.Committed(token)
		p.acks(5)
	}
	for range 17 {
		token := window() // the first message shows that the broker had waited
		select {
		case <-stalls:
		case <-time.After(patience):
			t.Fatal("no commit asked for")
		}
		clk.advance(200 * time.Millisecond) // and still nothing more came
		r.Committed(token)
		p.acks(5)
	}
	if st := r.Status(); st.Limit != 5 || !strings.Contains(st.Problem, "max_inflight_messages") {
		t.Errorf("got %+v", st)
	}
}

// What a hostile or mistaken topic brings is refused, and shown for a while.
func TestTooManySeriesAreShown(t *testing.T) {
	b := newBroker(t)
	clk := newHandClock()
	r, s, _ := startAt(t, b.url(), clk, func(c *mqtt.Config) {
		c.MaxSeries, c.Subscriptions = 1, []mqtt.Subscription{{Topic: "in/{sensor}", Format: mqtt.Plain}}
	})
	p := b.accept(false)
	p.publish(qos1, 1, "1")
	p.send(packet(qos1, 2, "in/e", "1"))
	s.collect(t, 1)
	eventually(t, "shown", func() bool { return strings.Contains(r.Status().Problem, "beyond 1 are refused") })
	if clk.advance(10*time.Minute + 1); r.Status().Problem != "" {
		t.Errorf("still %q", r.Status().Problem)
	}
}

func TestReceiveMaximumIsAStall(t *testing.T) {
	b := newBroker(t)
	var stalls atomic.Int32
	r, s, _ := start(t, b.url(), func(c *mqtt.Config) { c.ReceiveMaximum = 3; c.OnStall = func() { stalls.Add(1) } })
	p := b.accept(false)
	for id := range uint16(3) {
		p.publish(qos1, id+1, "1")
	}
	_, token := s.collect(t, 3)
	eventually(t, "asked", func() bool { return stalls.Load() == 1 })
	r.Committed(token)
	p.acks(3)
}

func marks(p reading.Parcel) (s string) {
	for _, m := range p.Marks {
		s += fmt.Sprintf("%d@%d ", m.Kind, m.At)
	}
	return s
}

// SEMANTICS G4, DESIGN "Catching up".
func TestCatchUp(t *testing.T) {
	b := newBroker(t)
	clk := newHandClock()
	r, s, _ := startAt(t, b.url(), clk, func(c *mqtt.Config) {
		c.Subscriptions[0].TimePath, c.Subscriptions[0].TimeUnit, c.Subscriptions[0].Value.Path = "t", reading.UnitMillis, "v"
	})
	p := b.accept(true)
	ms := func(ago time.Duration) string {
		return fmt.Sprintf(`{"v":1,"t":%d}`, time.Unix(0, clk.wall.Load()).Add(-ago).UnixMilli())
	}
	p.publish(qos1, 1, ms(time.Hour))
	if got := marks(s.take(t)); got != fmt.Sprintf("%d@0 ", reading.MarkCatchUpBegin) {
		t.Errorf("first parcel: %s", got)
	}
	p.publish(qos1, 2, ms(time.Minute))
	if got := marks(s.take(t)); got != "" {
		t.Errorf("second parcel: %s", got)
	}
	p.publish(qos1, 3, ms(0))
	last := s.take(t)
	if got := marks(last); got != fmt.Sprintf("%d@1 ", reading.MarkCatchUpEnd) || r.Status().CatchingUp {
		t.Errorf("third parcel: %s", got)
	}
	r.Committed(last.Token)
	p.acks(3)
	p.Close()

	p = b.accept(true)
	p.publish(qos1, 4, ms(time.Hour))
	last = s.take(t)
	clk.advance(time.Minute)
	looked := clk.asked.Load() + 2 // the second time, the first has been decided on
	eventually(t, "looked", func() bool { return clk.asked.Load() >= looked })
	if !r.Status().CatchingUp {
		t.Error("a broker that waits for us is not drained")
	}
	r.Committed(last.Token)
	p.acks(1)
	clk.advance(time.Minute)
	end := s.take(t)
	if got := marks(end); got != fmt.Sprintf("%d@0 ", reading.MarkCatchUpEnd) || len(end.Readings) > 0 {
		t.Errorf("end: %s", got)
	}
	r.Committed(end.Token)
}

// The gateway is full for longer than two keep-alives: the connection is held,
// reading stops, and nothing is lost or doubled.
func TestBlockedSinkKeepsTheConnection(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), func(c *mqtt.Config) {
		c.KeepAlive = time.Second
		c.Subscriptions[0].Each = "@this"
	})
	p := b.accept(false)
	const messages, each = 100, 1000
	go func() {
		body := packet(qos1, 1, "in/d", "["+strings.TrimSuffix(strings.Repeat("1,", each), ",")+"]")
		for id := range uint16(messages) {
			body[9], body[10] = byte((id+1)>>8), byte(id+1)
			if _, err := p.Write(body); err != nil {
				t.Errorf("the connection broke: %v", err)
				return
			}
		}
	}()
	pings := 0
	for deadline := time.Now().Add(patience); pings < 3 && time.Now().Before(deadline); {
		p.SetReadDeadline(deadline)
		if head, err := p.in.ReadByte(); err == nil {
			if p.in.ReadByte(); head>>4 == 12 {
				pings++
				go p.Write([]byte{0xD0, 0}) // stands behind all that is not read
			}
		}
	}
	if st := r.Status(); st.State != mqtt.Connected || st.Queued > 40_000 || pings < 3 {
		t.Errorf("%d pings, %+v", pings, st)
	}
	acked := make(chan []uint16, 1)
	go func() {
		defer close(acked)
		acked <- p.acks(messages)
	}()
	n := 0
	for n < messages*each {
		last := s.take(t)
		n += len(last.Readings)
		r.Committed(last.Token)
	}
	ids := <-acked
	if n != messages*each || ids[0] != 1 || ids[messages-1] != messages {
		t.Errorf("%d readings, acknowledged %d to %d", n, ids[0], ids[messages-1])
	}
}

func TestNewRefusesConfiguration(t *testing.T) {
	at := func(text string) *url.URL { u, _ := url.Parse(text); return u }
	good := mqtt.Config{Input: "a", URL: at("mqtt://h"), ClientID: "c", Subscriptions: []mqtt.Subscription{plainValue}}
	f := func(want string, change func(*mqtt.Config)) {
		t.Helper()
		c := good
		change(&c)
		_, err := mqtt.New(c, nil, nil, zerolog.Nop())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "input a: mqtt: ") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("scheme", func(c *mqtt.Config) { c.URL = at("http://h") })
	f("url", func(c *mqtt.Config) { c.URL = nil })
	f("client_id", func(c *mqtt.Config) { c.ClientID = "" })
	f("subscribe", func(c *mqtt.Config) { c.Subscriptions = nil })
	f("keep_alive", func(c *mqtt.Config) { c.KeepAlive = time.Millisecond })
	f("session_expiry", func(c *mqtt.Config) { c.SessionExpiry = time.Millisecond })
	f("max_payload", func(c *mqtt.Config) { c.MaxPayload = 1 << 30 })
	f("topic", func(c *mqtt.Config) { c.Subscriptions = []mqtt.Subscription{{Topic: "a/#/b"}} })
}
