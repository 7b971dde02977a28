package opcua

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"tidemark/reading"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is the host's clock.
type host struct{ began time.Time }

func (h host) Now() reading.Instant {
	n := time.Now()
	return reading.Instant{WallNS: n.UnixNano(), BootNS: int64(n.Sub(h.began)), BoundNS: 1e6}
}
func (host) ObserveServer(reading.ServerExchange) {}

// gateway is a sink that a test looks into, with a disk that it can hold up.
type gateway struct {
	mu       sync.Mutex
	readings []reading.Reading
	marks    []reading.MarkKind
	gaps     []reading.Gap
	rejects  []reading.Reject
	memory   []byte
	open     []reading.Parcel // not committed
	held     bool             // nothing is committed
}

func (g *gateway) Deliver(_ context.Context, p reading.Parcel) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readings, g.gaps, g.rejects = append(g.readings, p.Readings...), append(g.gaps, p.Gaps...), append(g.rejects, p.Rejects...)
	for _, m := range p.Marks {
		if m.Kind != reading.MarkActive {
			g.marks = append(g.marks, m.Kind)
		}
	}
	g.open = append(g.open, p)
	if !g.held {
		g.commit()
	}
	return nil
}

// commit puts everything on disk. The lock is held.
func (g *gateway) commit() {
	for _, p := range g.open {
		if p.Memory != nil {
			g.memory = p.Memory
		}
		if p.Source != nil {
			p.Source.Committed(p.Token)
		}
	}
	g.open = nil
}

func (g *gateway) do(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// values lists what came of a sensor, initial values in brackets, and those that
// were sent again with a star.
func (g *gateway) values(sensor string) (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.readings {
		if r.Tag.Value().Sensor != sensor {
			continue
		}
		s := fmt.Sprint(r.Value.Float())
		if r.Delivery.Has(reading.Redelivered) {
			s += "*"
		}
		if r.Delivery.Has(reading.Initial) {
			s = "(" + s + ")"
		}
		list = append(list, s)
	}
	return list
}

func (g *gateway) reasons() (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, x := range g.gaps {
		list = append(list, x.Reason)
	}
	return list
}

// rejected lists why what came was no reading.
func (g *gateway) rejected() (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, x := range g.rejects {
		list = append(list, x.Reason)
	}
	return list
}

// until waits for something to become true.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// run runs a reader of nodes of p until the test stops it.
func run(t testing.TB, p *peer, g *gateway, change func(*Config), nodes ...string) (r *Reader, stop func()) {
	t.Helper()
	u, err := url.Parse(p.endpoint())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Input: "in", Endpoint: u, Security: "none", Nodes: []Nodes{{Tags: tagged(nodes...)}}, Memory: g.memory, CatchUpMax: time.Minute}
	if change != nil {
		change(&cfg)
	}
	r, err = New(cfg, g, host{time.Now()}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return r, stop
}

func connected(t *testing.T, r *Reader) {
	t.Helper()
	until(t, "the reader is connected", func() bool { return r.Status().State == Connected })
}

func got(t *testing.T, g *gateway, sensor string, want ...string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%s is %q", sensor, g.values(sensor))
		}
	}()
	until(t, fmt.Sprintf("%s is %q", sensor, want), func() bool { return slices.Equal(g.values(sensor), want) })
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// second is a moment that a test's values are measured at.
func second(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

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
	p.cut()
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

// asyncua has an empty message for each number that it is asked for.
func TestAnEmptyMessageAgainIsNone(t *testing.T) {
	p, g := newPeer(t), &gateway{}
	p.vague = true
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	p.cut()
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
	p.cut()
	got(t, g, "a", "(0)", "(0*)")
	stop()
	r, _ = run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	p.say(at(1, second(1)), "a")
	got(t, g, "a", "(0)", "(0*)", "(0)", "1")
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
		clear(p.sessions)
		p.started = p.started.Add(time.Hour)
		for _, sub := range p.subs {
			sub.owner, theirs = "another client", sub
		}
	})
	p.cut()
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
	p.cut()
	got(t, g, "a", "(0)", "1*") // the session is known, and the subscription ours
	var theirs *peerSub
	p.do(func() {
		clear(p.sessions)
		for _, sub := range p.subs {
			sub.owner, theirs = "another client", sub
		}
	})
	p.cut()
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
			p.cut()
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
