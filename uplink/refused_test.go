package uplink_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"tidemark/uplink"
)

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
