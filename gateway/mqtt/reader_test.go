package mqtt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
