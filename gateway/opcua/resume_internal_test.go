package opcua

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

func TestFetchesAgainWhatABrokenConnectionLost(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	p.patient()
	p.do(func() { p.swallow = true })
	p.say(at(1, second(1)), "a")
	p.say(at(2, second(2)), "a")
	p.do(func() { p.swallow = false })
	p.Cut()
	got(t, g, "a", "(0)", "1*", "2*")
	p.say(at(2, second(2)), "a") // as servers do when a session is taken up
	p.say(at(3, second(3)), "a")
	got(t, g, "a", "(0)", "1*", "2*", "(2)", "3")
	if n := p.count("CreateSession"); n != 1 {
		t.Errorf("%d sessions made, want the first one taken up again", n)
	}
	if n := r.Status().Reconnects; n != 1 {
		t.Errorf("%d reconnects", n)
	}
	if r := g.reasons(); len(r) > 0 {
		t.Errorf("gaps %q where nothing is missing", r)
	}
	until(t, "it has caught up", func() bool { p.breathe(); return !r.Status().CatchingUp })
	g.do(func() {
		if !slices.Equal(g.marks, []reading.MarkKind{reading.MarkCatchUpBegin, reading.MarkCatchUpEnd}) {
			t.Errorf("marks %v", g.marks)
		}
	})
}

func TestARestartTakesSubscriptionsOver(t *testing.T) {
	for _, how := range []string{"stopped", "killed"} {
		t.Run(how, func(t *testing.T) {
			p, g := newPeer(t), &gateway{}
			p.space.variable("a", id.Double)
			r, stop := run(t, p, g, nil, "a")
			connected(t, r)
			p.say(at(0, second(0)), "a")
			p.say(at(1, second(1)), "a")
			got(t, g, "a", "(0)", "1")
			if how == "killed" {
				g.do(func() { g.held = true }) // what comes now is in memory only
				p.say(at(2, second(2)), "a")
				got(t, g, "a", "(0)", "1", "2")
				g.do(func() { g.readings, g.open, g.held = g.readings[:2], nil, false })
			}
			memory := g.memory
			stop()
			g = &gateway{memory: memory, readings: g.readings[:2]}
			if how == "stopped" {
				p.say(at(2, second(2)), "a")
			}
			r, _ = run(t, p, g, nil, "a")
			connected(t, r)
			p.say(at(3, second(3)), "a")
			until(t, "2 and 3 come", func() bool { v := g.values("a"); return len(v) == 4 && v[3] == "3" })
			if n := p.count("CreateSubscription"); n != 1 {
				t.Errorf("%d subscriptions made, want the first one taken over", n)
			}
			if r := g.reasons(); len(r) > 0 {
				t.Errorf("gaps %q where nothing is missing", r)
			}
		})
	}
}

// A setpoint that nobody has touched since is no new reading, whoever takes the
// subscription over and says it again.
func TestWhatWasSaidBeforeIsNotNew(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.space.variable("a", id.Double)
	r, stop := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	p.patient()
	p.do(func() { p.swallow = true }) // so that it is fetched again
	p.say(at(0, second(0)), "a")
	p.do(func() { p.swallow = false })
	p.Cut()
	got(t, g, "a", "(0)", "(0*)")
	stop()
	r, _ = run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	p.say(at(1, second(1)), "a")
	got(t, g, "a", "(0)", "(0*)", "(0)", "1")
}

func TestAServerRestartedWithItsNamespacesSwapped(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	p.do(func() {
		p.space.uris[1], p.space.uris[2] = p.space.uris[2], p.space.uris[1]
		n := p.space.nodes["ns=2;s=a"]
		n.id = ua.NewStringNodeID(1, "a")
		p.space.nodes = map[string]*spaceNode{"ns=1;s=a": n}
	})
	p.restart()
	until(t, "the node is watched where it is now", func() (ok bool) {
		p.do(func() {
			for _, sub := range p.subs {
				_, ok = sub.handles["ns=1;s=a"]
			}
		})
		return ok
	})
	p.do(func() {
		for _, sub := range p.subs {
			p.tell(sub, &ua.DataChangeNotification{MonitoredItems: []*ua.MonitoredItemNotification{{ClientHandle: 0, Value: at(7, second(9))}}})
		}
	})
	got(t, g, "a", "(0)", "(7)")
	if r := g.reasons(); !slices.Equal(r, []string{"subscription_lost"}) {
		t.Errorf("gaps %q, want the one of the restart", r)
	}
}

// A server gives its subscriptions' ids anew after each start.
func TestAnotherClientsSubscriptionIsLeftAlone(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	var theirs *peerSub
	p.do(func() {
		clear(p.Sessions)
		p.started = p.started.Add(time.Hour)
		for _, sub := range p.subs {
			sub.owner, theirs = "another client", sub
		}
	})
	p.Cut()
	until(t, "there is another subscription", func() bool { return p.count("CreateSubscription") == 2 })
	p.do(func() {
		if p.subs[theirs.id] != theirs || theirs.owner != "another client" {
			t.Error("the subscription of another client was taken")
		}
	})
}

// A server that does not tell its start may have begun anew whenever it does not know
// the session: then its subscriptions may be another client's, and values under our
// handles something else. While it knows the session, it is the same.
func TestAServerThatDoesNotTellItsStart(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.started = time.Time{}
	p.space.variable("a", id.Double)
	r, stop := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	p.patient()
	p.do(func() { p.swallow = true })
	p.say(at(1, second(1)), "a")
	p.do(func() { p.swallow = false })
	p.Cut()
	got(t, g, "a", "(0)", "1*") // the session is known, and the subscription ours
	var theirs *peerSub
	p.do(func() {
		clear(p.Sessions)
		for _, sub := range p.subs {
			sub.owner, theirs = "another client", sub
		}
	})
	p.Cut()
	gap := func() {
		t.Helper()
		until(t, "there is a gap", func() bool { return slices.Contains(g.reasons(), "subscription_lost") })
		g.do(func() {
			if d := g.gaps[len(g.gaps)-1].Detail; !strings.Contains(d, "does not tell when it was started") {
				t.Errorf("%q does not say what is not known", d)
			}
			g.gaps = nil
		})
		p.do(func() {
			if p.subs[theirs.id] != theirs || theirs.owner != "another client" {
				t.Error("the subscription of another client was taken")
			}
		})
	}
	gap()
	stop() // nor does a gateway that was stopped know
	p.do(func() {
		for _, sub := range p.subs {
			sub.owner = "another client"
		}
	})
	_, _ = run(t, p, g, nil, "a")
	gap()
}

// Law 1: a commit acknowledges nothing of another life of the server.
func TestAnEarlierStartsCommitAcknowledgesNothing(t *testing.T) {
	p, g := newPeer(t), &gateway{held: true}
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	p.do(func() {
		for n := range p.subs {
			p.reuse = n
		}
	})
	p.restart()
	until(t, "there is another subscription", func() bool { return p.count("CreateSubscription") == 2 })
	connected(t, r)
	p.say(at(1, second(1)), "a")
	got(t, g, "a", "(0)", "(1)")
	g.do(func() {
		first := g.open[slices.IndexFunc(g.open, func(p reading.Parcel) bool { return len(p.Readings) > 0 })]
		first.Source.Committed(first.Token)
	})
	for i := 2; i < 5; i++ { // requests that could carry the acknowledgement
		p.say(at(float64(i), second(i)), "a")
		until(t, "it is told", func() bool { return len(g.values("a")) == i+1 })
	}
	p.do(func() {
		if len(p.acked) > 0 {
			t.Errorf("message %d is acknowledged and not on disk", p.acked[0])
		}
	})
}

// What a queue dropped while nobody was there is a gap only where the history of that
// time cannot be had: an outage is told once, or not at all.
func TestOverflowInAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		archive *archive
		gaps    []string
	}{
		"with history":    {&archive{page: 100}, nil},
		"without history": {nil, []string{"outage"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, g := newPeer(t), &gateway{}
			p.archive = c.archive
			p.space.variable("a", id.Double).attributes[ua.AttributeIDUserAccessLevel] = valued(byte(canRead | canReadHistory))
			r, _ := run(t, p, g, func(c *Config) { c.Backfill = time.Hour }, "a")
			connected(t, r)
			p.say(at(0, time.Now()), "a")
			got(t, g, "a", "(0)")
			p.patient()
			p.do(func() { p.swallow, p.ahead = true, time.Minute })
			dv := at(5, time.Now().Add(30*time.Second))
			dv.EncodingMask |= ua.DataValueStatusCode
			dv.Status = 0x480
			p.say(dv, "a")
			p.do(func() { p.swallow = false })
			p.Cut()
			until(t, "the outage is over", func() bool {
				p.breathe()
				return len(g.values("a")) > 1 && r.Status().Reconnects > 0 && !r.Status().CatchingUp
			})
			if got := g.reasons(); !slices.Equal(got, c.gaps) {
				t.Errorf("gaps %q, want %q", got, c.gaps)
			}
			if n := r.Status().Historical; (n >= 60) != (c.archive != nil) {
				t.Errorf("%d values of the minute came from history", n)
			}
			late := at(6, time.Now().Add(2*time.Minute)) // beyond what history was asked for
			late.EncodingMask, late.Status = dv.EncodingMask, dv.Status
			p.say(late, "a")
			until(t, "it is a gap", func() bool { return slices.Equal(g.reasons(), append(c.gaps, "overflow")) })
		})
	}
}
