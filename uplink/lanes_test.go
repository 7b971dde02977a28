package uplink_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	wire "github.com/eclipse/paho.golang/packets"
	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"tidemark/uplink"
	"tidemark/windowing"
)

// laned is a Source with lanes of its own making.
type laned [3]*outbox

func newLaned() *laned { return &laned{newOutbox(), newOutbox(), newOutbox()} }

func (l *laned) Begin() {
	for _, o := range l {
		o.Begin()
	}
}

func (l *laned) Rewind() {
	for _, o := range l {
		o.Rewind()
	}
}

func (l *laned) Next(lane uplink.Lane, dst []uplink.Record, most, bytes int) ([]uplink.Record, uint64, error) {
	recs, upTo, err := l[lane].Next(uplink.Live, dst, most, bytes)
	for i := range recs {
		recs[i].Waited = lane == uplink.Backlog
	}
	return recs, upTo, err
}

func (l *laned) Wait(ctx context.Context) error         { return l[uplink.Live].Wait(ctx) }
func (l *laned) Delivered(lane uplink.Lane, seq uint64) { l[lane].Delivered(uplink.Live, seq) }
func (l *laned) Waiting() (n int64) {
	for _, o := range l {
		n += o.Waiting()
	}
	return n
}

// event is an event that names itself.
func event(kind string, n int) uplink.Record {
	return uplink.Record{Kind: uplink.KindEvent, Data: uplink.NewEvent(kind, at("2026-01-01T12:00:00Z"), 0).Int("n", int64(n)).Record()}
}

func events(kind string, n int) (rs []uplink.Record) {
	for i := range n {
		rs = append(rs, event(kind, i+1))
	}
	return rs
}

// Live records do not wait for those that waited, nor these for readings; a lane
// keeps its order.
func TestLanesByPriority(t *testing.T) {
	b := startBroker(t, func(c *mqtt.Capabilities) { c.ReceiveMaximum = 20 })
	src := newLaned()
	src[uplink.Backlog].add(events("old", 3000)...)
	src[uplink.Raw].add(events("raw", 100)...)
	cfg := quick()
	cfg.URL = b.url()
	_, stop := run(t, cfg, src, nil)
	eventually(t, "some of the backlog", func() bool { return src[uplink.Backlog].delivered() > 100 })
	src[uplink.Live].add(events("live", 5)...)
	eventually(t, "the live ones", func() bool { return src[uplink.Live].Waiting() == 0 })
	if src[uplink.Backlog].Waiting() == 0 {
		t.Error("they waited for the backlog")
	}
	eventually(t, "everything", func() bool { return src.Waiting() == 0 })
	stop()
	last := map[string]int{}
	for _, p := range b.records() {
		kind := p.topic[strings.LastIndexByte(p.topic, '/')+1:]
		if kind == "raw" && last["old"] != 3000 {
			t.Fatalf("a reading came before record %d that waited", last["old"]+1)
		}
		if p.n != last[kind]+1 {
			t.Fatalf("%s %d came after %d", kind, p.n, last[kind])
		}
		if want := fmt.Sprint(kind == "old"); p.replayed != want {
			t.Fatalf("%s %d says replayed: %s", kind, p.n, p.replayed)
		}
		last[kind] = p.n
	}
	if last["old"] != 3000 || last["live"] != 5 || last["raw"] != 100 {
		t.Errorf("arrived: %v", last)
	}
}

// What waited goes no faster than it may; what is live goes at once.
func TestBacklogRate(t *testing.T) {
	b := startBroker(t, nil)
	src := newLaned()
	src[uplink.Backlog].add(events("old", 10_000)...)
	cfg := quick()
	cfg.URL, cfg.BacklogRate = b.url(), 200
	begin := time.Now()
	_, stop := run(t, cfg, src, nil)
	for i := range 10 {
		time.Sleep(30 * time.Millisecond)
		src[uplink.Live].add(event("live", i+1))
		sent := time.Now()
		eventually(t, "a live one", func() bool { return src[uplink.Live].Waiting() == 0 })
		if d := time.Since(sent); d > time.Second {
			t.Errorf("a live record took %v", d)
		}
	}
	stop()
	most := int(time.Since(begin).Seconds()*200) + 16
	if n := len(b.filter(func(p published) bool { return strings.HasSuffix(p.topic, "/old") })); n > most || n < 20 {
		t.Errorf("%d records of the backlog, at most %d", n, most)
	}
}

// A slow rate still lets one record go, a second at most after the other.
func TestSlowestBacklogRate(t *testing.T) {
	b := startBroker(t, nil)
	src := newLaned()
	src[uplink.Backlog].add(events("old", 2)...)
	cfg := quick()
	cfg.URL, cfg.BacklogRate = b.url(), 1
	run(t, cfg, src, nil)
	eventually(t, "both", func() bool { return src.Waiting() == 0 })
}

// Records of types that are not wanted are passed over, and count as delivered.
func TestTypes(t *testing.T) {
	all := records()
	types := map[string]string{}
	for _, c := range []struct {
		types  []string
		finals bool
		want   []string
	}{
		{nil, false, []string{"closed", "definition", "event", "feature", "late", "quarantine"}},
		{[]string{"feature"}, false, []string{"feature"}},
		{[]string{"event", "definition"}, false, []string{"definition", "event"}},
		{nil, true, []string{"closed", "definition", "event", "late", "quarantine"}}, // of a window without a result
		{[]string{"late"}, true, []string{"late"}},
	} {
		b := startBroker(t, nil)
		src := newOutbox()
		for name, r := range all {
			if name != "raw" {
				src.add(r)
			}
		}
		cfg := quick()
		cfg.URL, cfg.Types = b.url(), c.types
		e := enc
		e.Finals = c.finals
		_, stop := runAs(t, cfg, e, src, nil)
		eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
		stop()
		clear(types)
		for _, p := range b.filter(func(p published) bool { return p.topic != enc.StatusTopic() }) {
			checkRecord(t, p.payload)
			types[strings.Split(p.topic, "/")[3]] = p.topic
		}
		var got []string
		for k := range types {
			got = append(got, k)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("of %q (finals %t) came %q, want %q", c.types, c.finals, got, c.want)
		}
	}
}

// Records share messages where that is wanted: in order, no more than may be, and
// none larger than the broker takes. Definitions stay retained on their own topic.
func TestBatches(t *testing.T) {
	const limit = 5000
	b := startScripted(t, func(_ *wire.Connect, a *wire.Connack) {
		a.Properties.ReceiveMaximum, a.Properties.MaximumPacketSize = ptr(uint16(1)), ptr(uint32(limit))
	})
	src := newOutbox()
	src.numbered(50)
	src.add(stored["definition"])
	src.numbered(50)
	src.add(uplink.Record{Kind: uplink.KindEvent, Data: uplink.NewEvent(uplink.EventLoss, 0, 0).Str("detail", strings.Repeat("x", limit-600)).Record()})
	src.add(uplink.Record{Kind: uplink.KindEvent, Data: uplink.NewEvent(uplink.EventClock, 0, 0).Str("detail", strings.Repeat("x", limit)).Record()})
	src.numbered(3)
	cfg := quick()
	cfg.URL, cfg.Batch = b.url(), 20
	var aside func() []uplink.SetAside
	cfg.SetAside, aside = collect(t, src)
	u, stop := run(t, cfg, src, nil)
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	if got := aside(); len(got) != 1 || !strings.HasSuffix(got[0].Topic, "/clock") {
		t.Errorf("set aside: %d", len(got))
	}
	if s := u.Status(); s.Connects != 1 || s.Acked != 105 || s.SetAside != 1 {
		t.Errorf("status: %+v", s)
	}
	n, batches, alone := 0, 0, []string{}
	for _, p := range b.published() {
		checkRecord(t, p.Payload)
		if size(p) > limit {
			t.Errorf("a packet of %d bytes", size(p))
		}
		if !strings.HasSuffix(p.Topic, "/batch") {
			alone = append(alone, strings.Split(p.Topic, "/")[3])
			continue
		}
		batches++
		var all []struct{ N int }
		if err := json.Unmarshal(p.Payload, &all); err != nil {
			t.Fatal(err)
		}
		if len(all) > 20 {
			t.Errorf("a batch of %d records", len(all))
		}
		for _, r := range all {
			if r.N > 0 && r.N <= n {
				t.Fatalf("record %d came after %d", r.N, n)
			}
			n = max(n, r.N)
		}
	}
	if n != 107-1 || batches < 6 || batches > 12 || !slices.Contains(alone, "definition") {
		t.Errorf("up to record %d in %d batches; alone came %q", n, batches, alone)
	}
}

// A broker that ends the connection over a batch, without a word, gets its records
// one by one until the one that is meant is found.
func TestBatchThatEndsTheConnection(t *testing.T) {
	b := startBroker(t, func(c *mqtt.Capabilities) { c.MaximumPacketSize = 5000 })
	src := newOutbox()
	src.numbered(5)
	src.add(uplink.Record{Kind: uplink.KindEvent, Data: uplink.NewEvent(uplink.EventClock, 0, 0).Str("detail", strings.Repeat("x", 5000)).Record()})
	src.numbered(5)
	cfg := quick()
	cfg.URL, cfg.Batch = b.url(), 20
	var aside func() []uplink.SetAside
	cfg.SetAside, aside = collect(t, src)
	_, stop := run(t, cfg, src, nil)
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	if got := aside(); len(got) != 1 || got[0].Record.Seq != 6 {
		t.Errorf("set aside: %d records", len(got))
	}
}

// A batch that the broker will not take is taken apart: the record that is meant
// is set aside, the others arrive.
func TestBatchIsTakenApart(t *testing.T) {
	for _, code := range []packets.Code{packets.ErrPayloadFormatInvalid, packets.ErrUnspecifiedError} {
		b := startBroker(t, nil)
		b.refuse = func(_ string, payload []byte) error {
			if strings.Contains(string(payload), `"n":57}`) {
				return code
			}
			return nil
		}
		src := newOutbox()
		src.numbered(100)
		cfg := quick()
		cfg.URL, cfg.Batch = b.url(), 10
		var aside func() []uplink.SetAside
		cfg.SetAside, aside = collect(t, src)
		_, stop := run(t, cfg, src, nil)
		eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
		stop()
		if got := aside(); len(got) != 1 || got[0].Record.Seq != 57 {
			t.Errorf("set aside: %d records", len(got))
		}
		seen := map[int]bool{}
		for _, p := range b.filter(func(p published) bool { return p.topic != enc.StatusTopic() }) {
			for i := range 100 {
				if strings.Contains(string(p.payload), fmt.Sprintf(`"n":%d}`, i+1)) {
					seen[i+1] = true
				}
			}
		}
		if len(seen) != 99 {
			t.Errorf("%d records arrived", len(seen))
		}
	}
}

// The broker keeps the newest window's feature, whatever comes after it of an
// older one.
func TestRetainedFeatures(t *testing.T) {
	b := startBroker(t, nil)
	src := newOutbox()
	for _, start := range []string{"12:00", "12:05", "12:00", "12:05", "12:10"} {
		e := feature()
		e.StartMS = atMS("2026-01-01T" + start + ":00Z")
		src.add(uplink.Record{Kind: uplink.KindEmission, Data: windowing.AppendEmission(nil, &e)})
	}
	src.add(event("gap", 1))
	cfg := quick()
	cfg.URL, cfg.RetainFeatures = b.url(), true
	_, stop := run(t, cfg, src, nil)
	eventually(t, "delivered", func() bool { return src.Waiting() == 0 })
	stop()
	var retained []bool
	for _, p := range b.filter(func(p published) bool { return p.topic != enc.StatusTopic() }) {
		retained = append(retained, p.retain)
	}
	if want := []bool{true, true, false, true, true, false}; !slices.Equal(retained, want) {
		t.Errorf("retained: %v, want %v", retained, want)
	}
}
