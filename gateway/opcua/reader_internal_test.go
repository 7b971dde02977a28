package opcua

import (
	"slices"
	"testing"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// Law 1: what is not on disk is not acknowledged.
func TestAcknowledgesWhatIsOnDisk(t *testing.T) {
	p, g := newPeer(t), &gateway{held: true}
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	for i := range 5 {
		p.say(at(float64(i), second(i)), "a")
		p.breathe() // requests go out again, and could carry acknowledgements
	}
	got(t, g, "a", "(0)", "1", "2", "3", "4")
	p.do(func() {
		if len(p.acked) > 0 {
			t.Errorf("%v acknowledged, and nothing is on disk", p.acked)
		}
	})
	g.do(func() { // up to the second of them
		n := 0
		for _, p := range g.open {
			if n += len(p.Readings); n == 2 {
				p.Source.Committed(p.Token)
				return
			}
		}
	})
	until(t, "two are acknowledged", func() (two bool) {
		p.breathe()
		p.do(func() { two = len(p.acked) == 2 })
		return two
	})
	p.breathe()
	p.patient()
	p.do(func() {
		if !slices.Equal(p.acked, []uint32{1, 2}) {
			t.Errorf("%v acknowledged, want 1 and 2", p.acked)
		}
	})
	g.do(func() { g.held = false; g.commit() })
	until(t, "all are acknowledged", func() (all bool) {
		p.breathe()
		p.do(func() { all = slices.Equal(p.acked, []uint32{1, 2, 3, 4, 5}) })
		return all
	})
}

// asyncua has an empty message for each number that it is asked for.
func TestAnEmptyMessageAgainIsNone(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.vague = true
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	p.Cut()
	until(t, "it asks what it missed", func() bool { return p.count("Republish") > 0 })
	connected(t, r)
	p.say(at(1, second(1)), "a")
	got(t, g, "a", "(0)", "1")
	if n := p.count("Republish"); n != 1 {
		t.Errorf("asked %d times for a message that is not there", n)
	}
	p.patient()
	p.do(func() { p.swallow = true })
	p.say(at(2, second(2)), "a")
	p.do(func() {
		p.swallow = false
		for _, sub := range p.subs {
			clear(sub.kept)
		}
	})
	p.say(at(3, second(3)), "a")
	got(t, g, "a", "(0)", "1", "3")
	until(t, "there is a gap", func() bool { return slices.Equal(g.reasons(), []string{"message_lost"}) })
}

// BadMessageNotAvailable: what the server no longer has is a gap, and what follows
// comes all the same.
func TestAForgottenMessageIsAGap(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	p.patient()
	p.do(func() { p.swallow = true })
	p.say(at(1, second(1)), "a")
	p.do(func() {
		p.swallow = false
		for _, sub := range p.subs {
			clear(sub.kept)
		}
	})
	p.say(at(2, second(2)), "a")
	got(t, g, "a", "(0)", "2")
	until(t, "there is a gap", func() bool { return slices.Equal(g.reasons(), []string{"message_lost"}) })
	g.do(func() {
		if x := g.gaps[0]; x.FromNS <= 0 || x.ToNS <= x.FromNS || x.Series != 1 {
			t.Errorf("gap %+v", x)
		}
	})
}

// A server that serves reads and publishes no more.
func TestASilentSubscriptionIsMadeAnew(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.keep, p.publish = 4, 50*time.Millisecond
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	until(t, "there is another subscription", func() bool { return p.count("CreateSubscription") >= 2 })
	if n := p.count("CreateSession"); n != 1 {
		t.Errorf("%d sessions: the session was not at fault", n)
	}
	until(t, "there is a gap", func() bool { return slices.Contains(g.reasons(), "subscription_lost") })
}

func TestANodeThatIsGoneStopsNoOther(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a", "gone")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	s := r.Status()
	if s.Monitored != 1 || len(s.Unread) != 1 || s.Problem == "" {
		t.Errorf("status %+v, want one node read and one named", s)
	}
}

// A server without room for us is asked rarely, and says so.
func TestTooManySessions(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.space.variable("a", id.Double)
	p.refuse["CreateSession"] = ua.StatusBadTooManySessions
	r, _ := run(t, p, g, nil, "a")
	until(t, "the reader is refused", func() bool { return r.Status().State == Refused })
	if s := r.Status(); s.Problem == "" {
		t.Errorf("status %+v has no reason", s)
	}
	if n := p.count("CreateSession"); n != 1 {
		t.Errorf("asked %d times at once", n)
	}
}

// A gateway that is full for a while takes the server's silence for its own.
func TestAFullGatewayLosesNoSubscription(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.keep, p.publish = 10, 20*time.Millisecond
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	g.mu.Lock() // Deliver waits
	p.say(at(0, second(0)), "a")
	time.Sleep(600 * time.Millisecond) // the dead-line of a silent subscription is 500 ms
	p.breathe()
	g.mu.Unlock()
	p.breathe()
	got(t, g, "a", "(0)")
	if n := p.count("CreateSubscription"); n != 1 {
		t.Errorf("%d subscriptions, want the first", n)
	}
}

func TestOverflowIsAGap(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	dv := at(5, second(5))
	dv.EncodingMask |= ua.DataValueStatusCode
	dv.Status = 0x480
	p.say(dv, "a")
	got(t, g, "a", "(0)", "5")
	until(t, "the overflow is a gap", func() bool { return slices.Equal(g.reasons(), []string{"overflow"}) })
	g.do(func() {
		if x := g.gaps[0]; x.FromNS != second(0).UnixNano() || x.ToNS != second(5).UnixNano() {
			t.Errorf("gap from %d to %d", x.FromNS, x.ToNS)
		}
		if last := g.readings[len(g.readings)-1]; last.Quality.Level != reading.Good || last.Quality.Status != 0x480 {
			t.Errorf("quality %+v, want good with its bits", last.Quality)
		}
	})
}
