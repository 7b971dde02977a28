package interop

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/gateway"
	"tidemark/test/process"
)

// outage is longer than a switch takes to restart.
const outage = 5 * time.Second

// away takes the network away.
func (p *plant) away() {
	p.t.Helper()
	p.do(map[string]any{"do": "deafen"}, nil)
	p.do(map[string]any{"do": "cut"}, nil)
}

// back brings it back.
func (p *plant) back() {
	p.t.Helper()
	p.do(map[string]any{"do": "listen"}, nil)
}

// TestConnectionCut: a network that is away costs nothing while the server keeps the
// session.
func TestConnectionCut(t *testing.T) {
	begin(t)
	p, l := newCounters(t)
	p.away()
	l.awaits(10*time.Second, func(r *gateway.ReaderStatus) bool { return r.State == "waiting" })
	time.Sleep(outage)
	p.back()
	l.awaits(20*time.Second, connected)
	led := l.finish(p)
	led.lossless()
	if r := led.status.Inputs[0].Reader; r.Rebuilt != 0 {
		t.Errorf("%d subscriptions were made anew", r.Rebuilt)
	}
}

// TestKilledUnderOPCUA: SIGKILL again and again loses nothing that the server still
// holds, and counts nothing twice.
func TestKilledUnderOPCUA(t *testing.T) {
	begin(t)
	p, l := newCounters(t)
	for range 6 {
		l.counts(p)
		time.Sleep(rand.N(600 * time.Millisecond)) // at any place between two messages
		l.End(syscall.SIGKILL)
		l.Start()
	}
	l.finish(p).lossless()
}

// TestServerBreaksSubscriptions has a server do what ends the notifications one way
// or another.
func TestServerBreaksSubscriptions(t *testing.T) {
	for _, c := range []struct {
		name     string
		act      func(p *plant, l *line)
		rebuilt  bool // the subscription cannot go on
		lossless bool
	}{
		{
			name: "session closed, subscription kept",
			act: func(p *plant, _ *line) {
				p.do(map[string]any{"do": "closeSessions", "deleteSubscriptions": false}, nil)
			},
			lossless: true,
		},
		{
			name: "session closed, subscription deleted",
			act: func(p *plant, _ *line) {
				p.do(map[string]any{"do": "closeSessions", "deleteSubscriptions": true}, nil)
			},
			rebuilt: true,
		},
		{
			name:    "subscription deleted, session alive",
			act:     func(p *plant, _ *line) { p.do(map[string]any{"do": "deleteSubscriptions"}, nil) },
			rebuilt: true,
		},
		{
			name: "Publish answers lost, reads answered",
			act: func(p *plant, l *line) {
				p.do(map[string]any{"do": "mute", "service": "Publish"}, nil)
				began := time.Now()
				l.awaits(30*time.Second, func(r *gateway.ReaderStatus) bool { return r.Rebuilt > 0 })
				p.do(map[string]any{"do": "unmute", "service": "Publish"}, nil)
				took := time.Since(began)
				l.t.Logf("noticed and made anew after %v", took.Round(100*time.Millisecond))
				// Three intervals of 5 s, and what a machine under load takes to say so.
				if took > 20*time.Second {
					l.t.Errorf("noticed after %v only", took)
				}
			},
			rebuilt: true,
		},
		{
			name: "keep-alives withheld while data comes",
			act: func(p *plant, _ *line) {
				p.do(map[string]any{"do": "mute", "service": "Publish", "only": "keepAlives"}, nil)
				time.Sleep(16 * time.Second) // three intervals without one
			},
			lossless: true,
		},
		{
			name: "messages lost, and gone at Republish",
			act: func(p *plant, l *line) {
				p.do(map[string]any{"do": "refuse", "service": "Republish", "status": "BadMessageNotAvailable"}, nil)
				p.do(map[string]any{"do": "mute", "service": "Publish", "only": "data"}, nil)
				time.Sleep(1500 * time.Millisecond) // some messages
				p.do(map[string]any{"do": "unmute", "service": "Publish"}, nil)
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin(t)
			p, l := newCounters(t)
			c.act(p, l)
			l.counts(p)
			l.awaits(30*time.Second, connected)
			led := l.finish(p)
			if missing := led.sound(); c.lossless && missing+len(led.gaps) > 0 {
				t.Error("nothing had to be lost")
			}
			if !c.lossless && len(led.gaps) == 0 {
				t.Error("nothing tells of the loss")
			}
			if r := led.status.Inputs[0].Reader; c.rebuilt != (r.Rebuilt > 0) {
				t.Errorf("%d subscriptions were made anew", r.Rebuilt)
			}
		})
	}
}

// TestTooManySessions: a server without room is not pressed, and found again.
func TestTooManySessions(t *testing.T) {
	begin(t)
	p, l := newCounters(t)
	p.do(map[string]any{"do": "refuse", "service": "CreateSession", "status": "BadTooManySessions"}, nil)
	p.do(map[string]any{"do": "closeSessions", "deleteSubscriptions": false}, nil)
	l.awaits(20*time.Second, func(r *gateway.ReaderStatus) bool {
		return r.State == "refused" && says("no session left")(r)
	})
	time.Sleep(outage)
	var tried struct{ Refused int }
	p.do(map[string]any{"do": "admit", "service": "CreateSession"}, &tried)
	if tried.Refused > 2 {
		t.Errorf("tried %d times in %v", tried.Refused, outage)
	}
	l.awaits(40*time.Second, connected)
	l.finish(p).sound()
}

// TestServerRestarted: killed, and there again on the same port; its counters begin
// anew, so what follows is told from what was before, and counted once.
func TestServerRestarted(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		gone string // a sensor that is no longer there
	}{
		{"as it was", []string{"--counters", "3"}, ""},
		{"namespaces swapped", []string{"--counters", "3", "--swap"}, ""},
		{"one of three nodes gone", []string{"--counters", "2"}, "c2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin(t)
			// The rule of three tags goes on where one of them is no longer there.
			p := newPlant(t, "--counters", "3", "--every", "100")
			l := newLine(t, p.endpoint, everyValue, "tags: tags.csv")
			process.Write(t, l.beside("tags.csv"), "node,asset,sensor\n"+tag("Counters.c0")+",a,c0\n"+tag("Counters.c1")+",a,c1\n"+tag("Counters.c2")+",a,c2\n")
			l.Start()
			l.counts(p)
			p.kill()
			l.awaits(20*time.Second, func(r *gateway.ReaderStatus) bool { return r.State == "waiting" })
			p.restart(append(c.args, "--every", "100")...)
			l.awaits(60*time.Second, func(r *gateway.ReaderStatus) bool {
				if c.gone == "" {
					return connected(r) && r.Monitored == 3
				}
				return r.State == "connected" && r.Monitored == 2 && len(r.Unread) == 1 && strings.Contains(r.Unread[0].Place, c.gone) && says(c.gone)(r)
			})
			// The old c0 is ahead of the new one: wait for a source time, not a value.
			restarted := time.Now()
			process.Eventually(t, 30*time.Second, func() error { return l.newer("c0", restarted) })
			led := l.finish(p)
			led.sound()
			for sensor, rs := range led.readings {
				begins := 0
				for i := range rs {
					if rs[i].initial() {
						begins++
					}
				}
				if begins != 2 && sensor != c.gone {
					t.Errorf("%s began %d times, want with each start of the server", sensor, begins)
				}
			}
			if len(led.gaps) == 0 {
				t.Error("nothing tells of the outage")
			}
		})
	}
}

// A node that is deleted while the network is away is named, and the others go on.
func TestNodeDeletedDuringOutage(t *testing.T) {
	begin(t)
	p, l := newCounters(t)
	p.away()
	l.awaits(20*time.Second, func(r *gateway.ReaderStatus) bool { return r.State == "waiting" })
	p.do(map[string]any{"do": "deleteNode", "node": tag("Counters.c2")}, nil)
	p.back()
	l.awaits(20*time.Second, func(r *gateway.ReaderStatus) bool { return r.State == "connected" })
	l.counts(p)
	led := l.finish(p)
	for _, sensor := range []string{"c0", "c1"} {
		if led.contiguous(sensor) > 0 {
			t.Errorf("%s lost values", sensor)
		}
	}
	last := led.readings["c2"][len(led.readings["c2"])-1]
	if last.Quality != "bad" {
		t.Errorf("the deleted node said last %s, %q", last.Value, last.Quality)
	}
}

// TestStaticTag: what nobody has touched for months is no new reading, nor too old,
// however often the connection, the session or the subscription is new.
func TestStaticTag(t *testing.T) {
	begin(t)
	p := newPlant(t, "--counters", "1", "--every", "100")
	l := newLine(t, p.endpoint, everyValue, countersRule, `{under: /Objects/Line3/press-07, match: "{sensor}", asset: press-07, exclude: [temperature, pressure, state, "_Hints/**"]}`)
	long := time.Now().AddDate(0, -3, 0).Format(time.RFC3339)
	for node, value := range map[string]any{"setpoint": 55.5, "flow": 0.25} {
		p.do(map[string]any{"do": "set", "node": tag("Line3.press-07." + node), "value": value, "source": long}, nil)
	}
	l.Start()
	l.counts(p)
	for _, command := range []map[string]any{
		{"do": "cut"},
		{"do": "closeSessions", "deleteSubscriptions": false},
		{"do": "closeSessions", "deleteSubscriptions": true},
		{"do": "deleteSubscriptions"},
		{"do": "cut"},
	} {
		p.do(command, nil)
		l.counts(p)
	}
	l.End(syscall.SIGKILL)
	l.Start()
	l.counts(p)
	p.kill()
	p.restart("--counters", "1", "--every", "100")
	restarted := time.Now()
	process.Eventually(t, 60*time.Second, func() error { return l.newer("c0", restarted) })
	led := l.finish(p)
	for _, sensor := range []string{"setpoint", "flow"} {
		rs := led.readings[sensor]
		t.Logf("%s was said %d times", sensor, len(rs))
		if len(rs) == 0 {
			t.Errorf("%s was never said", sensor)
		}
		for _, r := range rs {
			if !r.initial() {
				t.Errorf("%s: a new reading, and nothing happened: %+v", sensor, r)
			}
		}
	}
}

// TestFastCounter: with 20 values between two notifications none is lost.
func TestFastCounter(t *testing.T) {
	begin(t)
	p := newPlant(t, "--counters", "5", "--every", "50")
	l := newLine(t, p.endpoint, "security: none\nsampling: 0s\npublishing: 1s", countersRule)
	l.Start()
	l.counts(p)
	time.Sleep(30 * time.Second)
	l.finish(p).lossless()
}
