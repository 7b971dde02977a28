package mqtt_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/gateway/mqtt"
	"tidemark/reading"
)

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
// reading stops, and nothing is lost or doubled. The keep-alive is ours, or what the
// broker says instead (MQTT 5, 3.2.2.3.14).
func TestBlockedSinkKeepsTheConnection(t *testing.T) {
	t.Run("ours", func(t *testing.T) { blockedSink(t, time.Second, connack(0, 0)) })
	t.Run("the broker's", func(t *testing.T) { blockedSink(t, time.Minute, connack(0, 0, "\x13\x00\x01")) })
}

func blockedSink(t *testing.T, keepAlive time.Duration, answer []byte) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), func(c *mqtt.Config) {
		c.KeepAlive = keepAlive
		c.Subscriptions[0].Each = "@this"
	})
	p := b.greet(answer)
	p.subscribe()
	const messages, each = 400, 1000 // the store takes a hundred parcels of two messages
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
	if st := r.Status(); st.State != mqtt.Connected || st.Queued < 8<<10 || st.Queued > 40_000 || pings < 3 {
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
