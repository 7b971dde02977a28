package uplink_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"tidemark/reading"
	"tidemark/uplink"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// outbox is a Source in memory, of live records only. Nothing is removed from it.
type outbox struct {
	mu     sync.Mutex
	recs   []uplink.Record
	next   int
	waited int // of recs, when the connection began
	mark   uint64
	more   chan struct{}
}

func newOutbox() *outbox { return &outbox{more: make(chan struct{})} }

// numbered makes n records that tell their number, from the first one not there.
func (o *outbox) numbered(n int) {
	var recs []uplink.Record
	for i := range n {
		recs = append(recs, numbered(len(o.recs)+i+1))
	}
	o.add(recs...)
}

func numbered(n int) uplink.Record {
	e := uplink.NewEvent(uplink.EventGap, at("2026-01-01T12:00:00Z"), reading.ClockSynchronized).Int("n", int64(n))
	return uplink.Record{Kind: uplink.KindEvent, Data: e.Record()}
}

func (o *outbox) add(recs ...uplink.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range recs {
		r.Seq = uint64(len(o.recs) + 1)
		o.recs = append(o.recs, r)
	}
	close(o.more)
	o.more = make(chan struct{})
}

func (o *outbox) Begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waited = len(o.recs)
	o.next = int(o.mark)
}

func (o *outbox) Next(lane uplink.Lane, dst []uplink.Record, most, _ int) ([]uplink.Record, uint64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if lane != uplink.Live {
		return dst, 0, nil
	}
	for ; o.next < len(o.recs) && most > 0; most-- {
		r := o.recs[o.next]
		r.Waited = o.next < o.waited
		dst = append(dst, r)
		o.next++
	}
	return dst, uint64(o.next), nil
}

func (o *outbox) Wait(ctx context.Context) error {
	for {
		o.mu.Lock()
		there, more := o.next < len(o.recs), o.more
		o.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (o *outbox) Rewind() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = int(o.mark)
}

func (o *outbox) Delivered(lane uplink.Lane, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if lane == uplink.Live {
		o.mark = max(o.mark, seq)
	}
}

func (o *outbox) delivered() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mark
}

func (o *outbox) Waiting() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return int64(len(o.recs)) - int64(o.mark)
}

// quick is a configuration without long waits.
func quick() uplink.Config {
	return uplink.Config{
		Name: "plant", ClientID: "tidemark-line-3", ConnectTimeout: 5 * time.Second,
		BackoffMin: 5 * time.Millisecond, BackoffMax: 40 * time.Millisecond, DrainTimeout: 30 * time.Second,
		Clock: func() (int64, reading.ClockState) { return at("2026-01-01T12:00:00Z"), reading.ClockSynchronized },
	}
}

// run starts an uplink; the function that it returns stops it and waits.
func run(t *testing.T, cfg uplink.Config, src uplink.Source, logTo *bytes.Buffer) (*uplink.Uplink, func()) {
	t.Helper()
	return runAs(t, cfg, enc, src, logTo)
}

func runAs(t *testing.T, cfg uplink.Config, enc uplink.Encoder, src uplink.Source, logTo *bytes.Buffer) (*uplink.Uplink, func()) {
	t.Helper()
	log := zerolog.Nop()
	if logTo != nil {
		log = zerolog.New(zerolog.SyncWriter(logTo))
	}
	u, err := uplink.New(cfg, src, enc, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- u.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return u, stop
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// inOrder checks what an outbox promises: every record arrives, the first time
// in order, and what arrives again says so.
func inOrder(t *testing.T, ps []published, n int) (again int) {
	t.Helper()
	high := 0
	fresh := map[int]bool{} // said that it did not come again
	for i, p := range ps {
		if p.replayed != "true" {
			if fresh[p.n] {
				t.Errorf("record %d came again and does not say so", p.n)
			}
			fresh[p.n] = true
		}
		switch {
		case p.n == high+1:
			high++
		case p.n > high:
			t.Fatalf("record %d came after %d", p.n, high)
		default:
			again++
			if i > 0 && ps[i-1].n < high && ps[i-1].n != p.n-1 && p.n > ps[i-1].n {
				t.Errorf("record %d was sent again after %d", p.n, ps[i-1].n)
			}
		}
	}
	if high != n {
		t.Errorf("%d of %d records arrived", high, n)
	}
	return again
}

// The broker may be slow, go away and come back, drop connections and swallow
// what it is sent: nothing is missing and the order holds.
func TestChaos(t *testing.T) {
	const n = 12000
	b := startBroker(t, func(c *mqtt.Capabilities) { c.ReceiveMaximum = 200 })
	p := startProxy(t, b.addr)
	src := newOutbox()
	cfg := quick()
	cfg.URL, cfg.AckTimeout = p.url(), time.Second // a loaded machine answers later than a quiet one
	u, stop := run(t, cfg, src, nil)
	faults := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-faults:
				return
			case <-time.After(time.Duration(20+rand.IntN(60)) * time.Millisecond):
			}
			switch i % 5 {
			case 0, 1, 2:
				p.drop()
			case 3:
				p.setHole(true)
				time.Sleep(1200 * time.Millisecond)
				p.drop()
				p.setHole(false)
			case 4:
				b.stop()
				b.start()
			}
		}
	})
	for range n / 100 {
		src.numbered(100)
		time.Sleep(40 * time.Millisecond)
	}
	close(faults)
	wg.Wait()
	eventually(t, "everything delivered", func() bool { return src.Waiting() == 0 })
	stop()
	again := inOrder(t, b.records(), n)
	s := u.Status()
	t.Logf("%d records over %d connections, %d sent again, %d came again", n, s.Connects, s.Resent, again)
	if s.Connects < 5 || s.State != uplink.StateStopped || s.InFlight != 0 {
		t.Errorf("status: %+v", s)
	}
}

// The broker's Receive Maximum is kept: mochi ends a connection that exceeds it.
func TestReceiveMaximum(t *testing.T) {
	for _, most := range []uint16{1, 20} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			b := startBroker(t, func(c *mqtt.Capabilities) { c.ReceiveMaximum = most })
			src := newOutbox()
			src.numbered(1000)
			cfg := quick()
			cfg.URL = b.url()
			u, stop := run(t, cfg, src, nil)
			eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
			if s := u.Status(); s.Connects != 1 || s.ReceiveMax != int(most) || s.State != uplink.StateOnline || s.LastAckNS == 0 {
				t.Errorf("status: %+v", s)
			}
			stop()
			if again := inOrder(t, b.records(), 1000); again != 0 {
				t.Errorf("%d records came again", again)
			}
		})
	}
}

// What waited is marked as replayed, what comes live is not.
func TestReplayedSaysBacklog(t *testing.T) {
	b := startBroker(t, nil)
	src := newOutbox()
	src.numbered(300)
	cfg := quick()
	cfg.URL = b.url()
	run(t, cfg, src, nil)
	eventually(t, "backlog", func() bool { return src.Waiting() == 0 })
	src.numbered(10)
	eventually(t, "live", func() bool { return src.Waiting() == 0 })
	for _, p := range b.records() {
		if want := fmt.Sprint(p.n <= 300); p.replayed != want {
			t.Fatalf("record %d: replayed is %s", p.n, p.replayed)
		}
	}
}

// refusal answers the record with number n with an error.
func refusal(n int, code packets.Code) func(string, []byte) error {
	mark := fmt.Appendf(nil, `"n":%d}`, n)
	return func(_ string, payload []byte) error {
		if bytes.Contains(payload, mark) {
			return code
		}
		return nil
	}
}

// collect returns a callback and what it was called with. It checks that a record
// is handed over before it counts as delivered.
func collect(t *testing.T, src *outbox) (func(uplink.SetAside), func() []uplink.SetAside) {
	var mu sync.Mutex
	var all []uplink.SetAside
	return func(s uplink.SetAside) {
			mu.Lock()
			defer mu.Unlock()
			if src.delivered() >= s.Record.Seq {
				t.Errorf("record %d counted as delivered before it was set aside", s.Record.Seq)
			}
			all = append(all, s)
		}, func() []uplink.SetAside {
			mu.Lock()
			defer mu.Unlock()
			return all
		}
}

// A record that the broker can never take is handed over; the rest goes on.
func TestSetAside(t *testing.T) {
	for name, c := range map[string]struct {
		bad      uplink.Record // record 501, if it has a kind
		prepare  func(b *broker)
		seq      uint64
		reason   string
		connects uint64 // 0: any number
	}{
		"unreadable": {bad: uplink.Record{Kind: 77}, reason: "kind 77", seq: 501, connects: 1},
		"topic too long": {
			bad:    uplink.Record{Kind: uplink.KindEvent, Data: uplink.NewEvent(strings.Repeat("x", 70000), 0, 0).Record()},
			reason: "MQTT allows 65535", seq: 501, connects: 1,
		},
		"payload refused": {
			prepare: func(b *broker) { b.refuse = refusal(500, packets.ErrPayloadFormatInvalid) },
			reason:  "payload format invalid", seq: 500, connects: 1,
		},
		"refused again and again without a reason": {
			prepare: func(b *broker) { b.refuse = refusal(500, packets.ErrUnspecifiedError) },
			reason:  "unspecified error", seq: 500, connects: 1,
		},
		"broker ends the connection and says why": {
			prepare: func(b *broker) {
				b.refuse = func(_ string, payload []byte) error {
					err := refusal(500, packets.ErrPacketTooLarge)("", payload)
					if err == nil {
						return nil
					}
					for _, cl := range b.server.Clients.GetAll() {
						b.server.DisconnectClient(cl, packets.ErrPacketTooLarge)
					}
					return packets.ErrRejectPacket
				}
			},
			reason: "packet too large", seq: 500,
		},
		// mochi ends the connection over a packet larger than a limit that it
		// never told.
		"broker ends the connection without a word": {
			bad:     uplink.Record{Kind: uplink.KindEvent, Data: uplink.NewEvent(uplink.EventLoss, 0, 0).Str("detail", strings.Repeat("x", 3000)).Record()},
			prepare: func(b *broker) { b.change = func(c *mqtt.Capabilities) { c.MaximumPacketSize = 2000 } },
			reason:  "broke: ", seq: 501,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBroker(t, nil)
			if c.prepare != nil {
				b.stop()
				c.prepare(b)
				b.start()
			}
			src := newOutbox()
			src.numbered(500)
			if c.bad.Kind != 0 {
				src.add(c.bad)
			}
			src.numbered(500)
			cfg := quick()
			cfg.URL = b.url()
			var aside func() []uplink.SetAside
			cfg.SetAside, aside = collect(t, src)
			u, stop := run(t, cfg, src, nil)
			eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
			stop()
			if got := aside(); len(got) != 1 || got[0].Record.Seq != c.seq || !strings.Contains(got[0].Reason, c.reason) {
				t.Errorf("set aside: %d records", len(got))
				for _, s := range got {
					t.Errorf("record %d: %s", s.Record.Seq, s.Reason)
				}
			}
			if s := u.Status(); s.SetAside != 1 || c.connects != 0 && s.Connects != c.connects {
				t.Errorf("status: %+v", s)
			}
			seen := map[int]bool{}
			for _, p := range b.records() {
				seen[p.n] = true
			}
			if len(seen) != len(src.recs)-1 {
				t.Errorf("%d records of %d arrived", len(seen), len(src.recs)-1)
			}
		})
	}
}

// A refusal that may pass is a state that one can see; the connection stays, and
// when the broker is willing again nothing is missing.
func TestRefusedForNow(t *testing.T) {
	for _, c := range []struct {
		code  packets.Code
		state uplink.State
	}{{packets.ErrNotAuthorized, uplink.StateNotAuthorised}, {packets.ErrQuotaExceeded, uplink.StateQuota}} {
		t.Run(c.state.String(), func(t *testing.T) {
			b := startBroker(t, nil)
			var mu sync.Mutex
			var willing bool
			b.refuse = func(_ string, payload []byte) error {
				mu.Lock()
				defer mu.Unlock()
				if willing {
					return nil
				}
				return refusal(7, c.code)("", payload)
			}
			src := newOutbox()
			src.numbered(20)
			cfg := quick()
			cfg.URL = b.url()
			var log bytes.Buffer
			u, stop := run(t, cfg, src, &log)
			eventually(t, "refused", func() bool { return u.Status().State == c.state })
			time.Sleep(100 * time.Millisecond)
			if s := u.Status(); s.State != c.state || s.Connects != 1 || src.delivered() != 6 || !strings.Contains(s.Reason, "record 7") {
				t.Errorf("status: %+v", s)
			}
			mu.Lock()
			willing = true
			mu.Unlock()
			eventually(t, "delivered", func() bool { return src.Waiting() == 0 && u.Status().State == uplink.StateOnline })
			stop()
			if n := strings.Count(log.String(), fmt.Sprintf(`"state":"%v"`, c.state)); n != 1 {
				t.Errorf("said %d times that the broker is unwilling:\n%s", n, &log)
			}
			if got := b.records(); got[len(got)-1].n != 20 {
				t.Errorf("last came %d", got[len(got)-1].n)
			}
		})
	}
}

// A broker that refuses does not hold up the end.
func TestStopWhileRefused(t *testing.T) {
	b := startBroker(t, func(c *mqtt.Capabilities) { c.ReceiveMaximum = 2 })
	b.refuse = refusal(1, packets.ErrNotAuthorized)
	src := newOutbox()
	src.numbered(20)
	cfg := quick()
	cfg.URL, cfg.BackoffMin, cfg.BackoffMax, cfg.DrainTimeout = b.url(), time.Hour, time.Hour, time.Hour
	u, stop := run(t, cfg, src, nil)
	eventually(t, "refused", func() bool { return u.Status().State == uplink.StateNotAuthorised })
	stop()
	if got, want := b.states(), []string{"online ", "offline shutdown"}; !slices.Equal(got, want) {
		t.Errorf("states: %q", got)
	}
}

// A connection whose other end is gone without a word is given up and replaced.
func TestHalfOpenConnection(t *testing.T) {
	b := startBroker(t, nil)
	p := startProxy(t, b.addr)
	src := newOutbox()
	cfg := quick()
	cfg.URL, cfg.AckTimeout = p.url(), 300*time.Millisecond
	u, stop := run(t, cfg, src, nil)
	eventually(t, "online", func() bool { return u.Status().LastAckNS != 0 })
	p.setHole(true)
	src.numbered(50)
	eventually(t, "given up", func() bool { return u.Status().State == uplink.StateWaiting })
	if s := u.Status(); !strings.Contains(s.Reason, "PUBACK") && !strings.Contains(s.Reason, "cannot be made") {
		t.Errorf("reason: %s", s.Reason)
	}
	p.drop()
	p.setHole(false)
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	inOrder(t, b.records(), 50)
}

// At the end what is left is sent, the status says goodbye and no will is left.
func TestShutdownDrains(t *testing.T) {
	b := startBroker(t, func(c *mqtt.Capabilities) { c.ReceiveMaximum = 10 })
	src := newOutbox()
	cfg := quick()
	cfg.URL = b.url()
	u, stop := run(t, cfg, src, nil)
	eventually(t, "online", func() bool { return u.Status().State == uplink.StateOnline })
	src.numbered(2000)
	stop()
	inOrder(t, b.records(), 2000)
	if got, want := b.states(), []string{"online ", "offline shutdown"}; !slices.Equal(got, want) {
		t.Errorf("states: %q", got)
	}
	for _, p := range b.filter(func(p published) bool { return p.n < 0 }) {
		checkRecord(t, p.payload)
		if !p.retain {
			t.Errorf("%s is not retained", p.topic)
		}
	}
}

// lastMinute is an outbox that is given records at the very moment of the shutdown:
// the uplink has just seen that there are none.
type lastMinute struct {
	*outbox
	end context.CancelFunc // nil once it was called
}

func (o *lastMinute) Next(lane uplink.Lane, dst []uplink.Record, most, maxBytes int) ([]uplink.Record, uint64, error) {
	recs, upTo, err := o.outbox.Next(lane, dst, most, maxBytes)
	if lane == uplink.Raw && o.end != nil {
		o.numbered(20)
		o.end()
		o.end = nil
	}
	return recs, upTo, err
}

// What came before the end goes, however shortly before.
func TestShutdownDrainsTheLastMinute(t *testing.T) {
	b := startBroker(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := quick()
	cfg.URL = b.url()
	u, err := uplink.New(cfg, &lastMinute{newOutbox(), cancel}, enc, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Run(ctx); err != nil {
		t.Fatal(err)
	}
	inOrder(t, b.records(), 20)
}

// A shutdown while the broker is silent ends with the drain timeout, and the
// broker's will says offline.
func TestShutdownDeadline(t *testing.T) {
	b := startBroker(t, nil)
	p := startProxy(t, b.addr)
	src := newOutbox()
	cfg := quick()
	cfg.URL, cfg.DrainTimeout, cfg.AckTimeout = p.url(), 100*time.Millisecond, time.Minute
	u, stop := run(t, cfg, src, nil)
	eventually(t, "online", func() bool { return u.Status().LastAckNS != 0 })
	p.setHole(true)
	src.numbered(10)
	begin := time.Now()
	stop()
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("took %v", d)
	}
	p.setHole(false)
	eventually(t, "will", func() bool { return slices.Contains(b.states(), "offline connection_lost") })
}

// A broker that is away at the start is no error, and is logged once.
func TestBrokerAwayAtStart(t *testing.T) {
	b := startBroker(t, nil)
	b.stop()
	src := newOutbox()
	src.numbered(5)
	cfg := quick()
	cfg.URL = b.url()
	var log bytes.Buffer
	u, stop := run(t, cfg, src, &log)
	eventually(t, "some attempts", func() bool { return u.Status().Failures > 5 })
	if s := u.Status(); s.State != uplink.StateWaiting || !strings.Contains(s.Reason, "connection refused") {
		t.Errorf("status: %+v", s)
	}
	b.start()
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	if n := strings.Count(log.String(), `"state":"waiting"`); n != 1 {
		t.Errorf("said %d times that the broker is away:\n%s", n, &log)
	}
	if strings.Contains(log.String(), `"level":"warn"`) || strings.Count(log.String(), "the uplink is online") != 1 {
		t.Errorf("a state is for the status, but that it works is said once:\n%s", &log)
	}
}

func TestStopWhileBrokerIsAway(t *testing.T) {
	b := startBroker(t, nil)
	b.stop()
	cfg := quick()
	cfg.URL, cfg.BackoffMin, cfg.BackoffMax = b.url(), time.Hour, time.Hour
	u, stop := run(t, cfg, newOutbox(), nil)
	eventually(t, "an attempt", func() bool { return u.Status().Failures == 1 })
	stop()
}

func TestConfigurationRefused(t *testing.T) {
	for want, change := range map[string]func(*uplink.Config, *uplink.Encoder){
		"scheme":       func(c *uplink.Config, _ *uplink.Encoder) { c.URL.Scheme = "http" },
		"client_id":    func(c *uplink.Config, _ *uplink.Encoder) { c.ClientID = "" },
		"url":          func(c *uplink.Config, _ *uplink.Encoder) { c.URL = nil },
		"no clock":     func(c *uplink.Config, _ *uplink.Encoder) { c.Clock = nil },
		"wildcards":    func(_ *uplink.Config, e *uplink.Encoder) { e.Prefix = "a/+" },
		"begin or end": func(_ *uplink.Config, e *uplink.Encoder) { e.Prefix = "a/" },
	} {
		cfg, e := quick(), enc
		cfg.URL = (&broker{addr: "127.0.0.1:1"}).url()
		change(&cfg, &e)
		if _, err := uplink.New(cfg, newOutbox(), e, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
