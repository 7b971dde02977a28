package opcua

import (
	"fmt"
	"testing"

	"github.com/gopcua/opcua/id"
)

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
