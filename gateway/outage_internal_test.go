package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/rs/zerolog"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/uplink"
	"tidemark/windowing"
)

// plantBroker takes every record at once and notes when it came.
type plantBroker struct {
	addr string
	most uint16 // messages in flight
	wg   sync.WaitGroup

	mu    sync.Mutex
	ln    net.Listener
	conns []net.Conn
	got   []arrival
}

type arrival struct {
	at       time.Time
	place    int // among all
	replayed bool
	payload  []byte
}

func newPlantBroker(t *testing.T) *plantBroker {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &plantBroker{addr: ln.Addr().String(), most: 500}
	ln.Close()
	t.Cleanup(b.stop)
	return b
}

func (b *plantBroker) start(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.ln = ln
	b.mu.Unlock()
	b.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.conns = append(b.conns, c)
			b.mu.Unlock()
			b.wg.Go(func() { b.serve(c) })
		}
	})
}

// cut breaks every connection.
func (b *plantBroker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		c.Close()
	}
	b.conns = nil
}

func (b *plantBroker) stop() {
	b.mu.Lock()
	if b.ln != nil {
		b.ln.Close()
	}
	b.mu.Unlock()
	b.cut()
	b.wg.Wait()
}

func (b *plantBroker) serve(c net.Conn) {
	defer c.Close()
	for {
		p, err := packets.ReadPacket(c)
		if err != nil {
			return
		}
		answer := packets.NewControlPacket(packets.PUBACK)
		switch v := p.Content.(type) {
		case *packets.Connect:
			answer = packets.NewControlPacket(packets.CONNACK)
			answer.Content.(*packets.Connack).Properties.ReceiveMaximum = &b.most
		case *packets.Publish:
			b.take(v)
			answer.Content.(*packets.Puback).PacketID = v.PacketID
		case *packets.Pingreq:
			answer = packets.NewControlPacket(packets.PINGRESP)
		}
		if _, err := answer.WriteTo(c); err != nil {
			return
		}
	}
}

func (b *plantBroker) take(p *packets.Publish) {
	if p.Retain {
		return // the status
	}
	a := arrival{at: time.Now(), payload: p.Payload}
	for _, u := range p.Properties.User {
		a.replayed = a.replayed || u.Key == "replayed" && u.Value == "true"
	}
	b.mu.Lock()
	a.place = len(b.got)
	b.got = append(b.got, a)
	b.mu.Unlock()
}

func (b *plantBroker) arrived() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// count is how many records have arrived.
func (b *plantBroker) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got)
}

// outage is a store that features are committed to, and an uplink that sends them.
type outage struct {
	t      *testing.T
	store  *buffer.Store
	up     *uplink.Uplink
	stop   func()
	broker *plantBroker
	block  uint64
	made   map[string]time.Time // by sensor, window and revision
}

const fiveMinutes = 5 * 60 * 1000

func newOutage(t *testing.T, rate int) *outage {
	t.Helper()
	store, _, err := buffer.Open(filepath.Join(t.TempDir(), "t.db"), buffer.Options{Quota: buffer.MaxQuota32, Uplinks: []string{"up"}})
	if err != nil {
		t.Fatal(err)
	}
	o := &outage{t: t, store: store, broker: newPlantBroker(t), made: map[string]time.Time{}}
	cfg := uplink.Config{
		Name: "up", ClientID: "up", URL: &url.URL{Scheme: "mqtt", Host: o.broker.addr}, BacklogRate: rate,
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
		Clock: func() (int64, reading.ClockState) { return time.Now().UnixNano(), reading.ClockSynchronized },
	}
	f := &feed{outbox: store.Outbox("up"), generation: 1, log: zerolog.Nop()}
	if o.up, err = uplink.New(cfg, f, uplink.Encoder{Gateway: "g", Generation: 1, Prefix: "p"}, zerolog.Nop()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- o.up.Run(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { o.stop(); store.Close() })
	return o
}

// commit commits features: one of each sensor and revision for the window.
func (o *outage) commit(window int, since uint64, revision uint32, sensors ...string) {
	o.t.Helper()
	o.block++
	if since == 0 {
		since = o.block
	}
	c := &buffer.Commit{Block: &buffer.Block{Seq: o.block, Data: []byte("x")}, KeepFrom: o.block + 1}
	for _, s := range sensors {
		e := windowing.Emission{
			Kind: windowing.EmitFeature, Asset: "a", Sensor: s, Feature: windowing.FeatureID{Name: "f", Version: 1},
			StartMS: int64(window) * fiveMinutes, EndMS: int64(window+1) * fiveMinutes, Revision: revision, Cause: windowing.CauseWatermark,
			Values: []windowing.NamedValue{{Name: "mean", Value: reading.FloatValue(float64(window))}, {Name: "count", Value: reading.IntValue(300)}},
		}
		c.Records = append(c.Records, buffer.Record{
			Kind: uplink.KindEmission, Since: since, Data: windowing.AppendEmission(appendGeneration(nil, 1), &e),
		})
		o.made[featureKey(s, window, revision)] = time.Now()
	}
	if err := o.store.Commit(c); err != nil {
		o.t.Fatal(err)
	}
}

func featureKey(sensor string, window int, revision uint32) string {
	return fmt.Sprint(sensor, " ", window, " ", revision)
}

func (o *outage) wait(what string, ok func() bool) {
	o.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			o.t.Fatalf("not in time: %s; %+v", what, o.up.Status())
		}
	}
}

// once checks that everything arrived, and nothing twice but what says so; the
// revisions of a window in their order, and what waited in the order of its making.
// It returns the arrivals by key.
func (o *outage) once(repeats bool) map[string]arrival {
	o.t.Helper()
	first, newest := map[string]arrival{}, map[string]uint32{}
	for _, a := range o.broker.arrived() {
		var r struct {
			Sensor   string
			Revision uint32
			Start    time.Time `json:"window_start"`
		}
		if err := json.Unmarshal(a.payload, &r); err != nil {
			o.t.Fatal(err)
		}
		window := int(r.Start.UnixMilli() / fiveMinutes)
		key := featureKey(r.Sensor, window, r.Revision)
		if old, again := first[key]; again {
			if !repeats || !a.replayed && !old.replayed || string(a.payload) != string(old.payload) {
				o.t.Fatalf("%s came twice", key)
			}
			continue
		}
		first[key] = a
		if at := featureKey(r.Sensor, window, 0); r.Revision != newest[at]+1 {
			o.t.Fatalf("revision %d of window %d of %s came after %d", r.Revision, window, r.Sensor, newest[at])
		} else {
			newest[at] = r.Revision
		}
	}
	if len(first) != len(o.made) {
		for key := range o.made {
			if _, there := first[key]; !there {
				o.t.Errorf("%s did not arrive", key)
			}
		}
		o.t.Fatalf("%d features of %d arrived; %+v", len(first), len(o.made), o.up.Status())
	}
	return first
}

func sensors(t *testing.T, few int) (names []string) {
	t.Helper()
	if text := os.Getenv("TIDEMARK_OUTAGE_SENSORS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		few = n
	}
	for i := range few {
		names = append(names, fmt.Sprintf("s%04d", i))
	}
	return names
}

// A day of features waits. When the broker is back they go in order and no faster
// than they may, while new ones go at once and corrections of old windows keep
// their place. TIDEMARK_OUTAGE_SENSORS=1000 makes it a plant's day.
func TestDayOffline(t *testing.T) {
	names := sensors(t, 20)
	rate := 100 * len(names)
	o := newOutage(t, rate)
	const windows = 24 * 12
	for w := range windows {
		o.commit(w, 0, 1, names...)
	}
	waiting := o.up.Status().Backlog
	if waiting != int64(windows*len(names)) {
		t.Fatalf("%d records wait", waiting)
	}
	begin := time.Now()
	o.broker.start(t)
	o.wait("online", func() bool { return o.up.Status().State == uplink.StateOnline })
	live := map[string]int{} // and how many records had arrived when it was committed
	corrections := map[int]uint32{}
	for w := windows; o.up.Status().Backlog > 0; w++ {
		o.commit(w, 0, 1, names[:10]...)
		n := o.broker.count()
		for _, s := range names[:10] {
			live[featureKey(s, w, 1)] = n
		}
		if w%10 == 0 { // late readings for a window of the outage
			old := windows - 1 - w/10%20
			corrections[old]++
			o.commit(old, uint64(old+1), 1+corrections[old], names[0])
		}
		time.Sleep(20 * time.Millisecond)
	}
	took := time.Since(begin)
	o.stop()
	arrived := o.once(false)
	last, n := time.Time{}, 0
	for w := range windows {
		for _, s := range names {
			a := arrived[featureKey(s, w, 1)]
			if a.at.Before(last) || !a.replayed {
				t.Fatalf("window %d of %s came out of order, or does not say that it waited", w, s)
			}
			last = a.at
			if n++; float64(n) > a.at.Sub(begin).Seconds()*float64(rate)+float64(rate)/10 {
				t.Fatalf("%d of what waited had come after %v", n, a.at.Sub(begin))
			}
		}
	}
	var delays []time.Duration
	for key, before := range live {
		a := arrived[key]
		if a.replayed {
			t.Fatalf("%s says that it waited", key)
		}
		if n := a.place - before; n > underWay {
			t.Errorf("%d records went before %s", n, key)
		}
		delays = append(delays, a.at.Sub(o.made[key]))
	}
	slices.Sort(delays)
	p50, p99 := delays[len(delays)/2], delays[len(delays)*99/100]
	t.Logf("%d records waited and took %v; %d live ones meanwhile: half within %v, 99 %% within %v", waiting, took, len(delays), p50, p99)
}

// underWay is what may be before a live record: what is in flight, and about as much
// again that was read by then.
const underWay = 1000

// A broker that comes and goes twenty times loses nothing, and what comes again
// says so.
func TestFlappingBroker(t *testing.T) {
	names := sensors(t, 20)
	o := newOutage(t, 0)
	for w := range 100 {
		o.commit(w, 0, 1, names...)
	}
	o.broker.start(t)
	n := 0
	for i := range 20 {
		o.wait("some records over one more connection", func() bool {
			return o.broker.count() > n && o.up.Status().Connects > uint64(i)
		})
		o.broker.cut()
		n = o.broker.count() // before there is more: it may be there at once
		o.commit(100+i, 0, 1, names...)
		o.commit(90+i, uint64(91+i), 2, names...) // revisions of windows that wait, or waited
	}
	o.wait("everything", func() bool { return o.up.Status().Backlog == 0 })
	o.stop()
	if c := o.up.Status().Connects; c < 20 {
		t.Errorf("%d connections", c)
	}
	o.once(true)
}
