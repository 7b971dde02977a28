package opcua

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
)

// Of 50,000 changes that a server says as fast as it can none is lost, and each costs no
// more than a few times what the codec alone does, the server's side included. When this
// was written it was 4.6 µs and 1.9 µs: 50,000 a second took a quarter of a core.
func TestFiftyThousandChanges(t *testing.T) {
	const nodes, rounds, most = 1000, 50, 4
	p, g := newPeer(t), &gateway{}
	var names []string
	for i := range nodes {
		names = append(names, fmt.Sprintf("v%d", i))
		p.space.variable(names[i], id.Double)
	}
	r, _ := run(t, p, g, nil, names...)
	until(t, "the reader is connected", func() bool { return r.Status().Monitored == nodes })
	p.patient()
	began := used(t)
	for i := range rounds {
		p.say(at(float64(i), second(i)), names...)
	}
	until(t, "all have come", func() bool { return r.Status().Readings == nodes*rounds })
	whole := used(t) - began
	if list := append(g.reasons(), g.rejected()...); len(list) > 0 {
		t.Errorf("%q, and nothing is missing", list)
	}
	began = used(t)
	n := &ua.DataChangeNotification{}
	for i := range nodes {
		n.MonitoredItems = append(n.MonitoredItems, &ua.MonitoredItemNotification{ClientHandle: uint32(i), Value: at(1, second(i))})
	}
	for range rounds {
		body, err := ua.Encode(n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ua.Decode(body, new(ua.DataChangeNotification)); err != nil {
			t.Fatal(err)
		}
	}
	codec := used(t) - began
	t.Logf("%.1f µs a change, both sides of the connection together; %.1f µs of it the codec's", perChange(whole, nodes*rounds), perChange(codec, nodes*rounds))
	if whole > most*codec {
		t.Errorf("%.1f times what the codec takes, want %d at most", float64(whole)/float64(codec), most)
	}
}

func perChange(d time.Duration, n int) float64 { return float64(d.Microseconds()) / float64(n) }

// used is the processor time of this process.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// From the socket to the sink, the peer's own cost of encoding included.
func BenchmarkNotifications(b *testing.B) {
	const nodes = 1000
	p, g := newPeer(b), &gateway{}
	var names []string
	for i := range nodes {
		names = append(names, fmt.Sprintf("v%d", i))
		p.space.variable(names[i], id.Double)
	}
	r, _ := run(b, p, g, nil, names...)
	until(b, "the reader is connected", func() bool { return r.Status().Monitored == nodes })
	sent := 0
	b.ReportAllocs()
	for b.Loop() {
		p.say(at(float64(sent), second(sent)), names...)
		sent += nodes
		if sent%(20*nodes) == 0 { // as many as there are requests
			until(b, "the reader keeps up", func() bool { return r.Status().Readings >= uint64(sent) })
			g.do(func() { g.readings = nil })
		}
	}
	until(b, "all have come", func() bool { return r.Status().Readings >= uint64(sent) })
	b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "readings/s")
}
