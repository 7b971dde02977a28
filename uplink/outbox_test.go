package uplink_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

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
