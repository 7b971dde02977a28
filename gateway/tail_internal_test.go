package gateway

import (
	"testing"

	"tidemark/reading"
	"tidemark/windowing"
)

// A tail that nobody reads holds nothing back: what it has no room for is counted.
func TestSlowTailLosesReadingsAndKnowsHowMany(t *testing.T) {
	ts := &tails{}
	slow, other := ts.add("", ""), ts.add("a", "other")
	rs := make([]reading.Reading, tailQueue/2+100)
	for i := range rs {
		rs[i] = reading.Reading{Tag: reading.MakeTag(reading.Series{Input: "in", Asset: "a", Sensor: "temp"}), Value: reading.IntValue(int64(i))}
	}
	out := &windowing.Output{Outcomes: make([]windowing.Outcome, len(rs))}
	ts.stage(rs, out)
	if list, _ := slow.take(); len(list) != 0 {
		t.Fatal("a reading was shown before it was on disk")
	}
	ts.post()
	for range 2 {
		ts.stage(rs, out)
		ts.post()
	}
	list, dropped := slow.take()
	if len(list) != tailQueue || int(dropped) != 3*len(rs)-tailQueue {
		t.Errorf("%d kept and %d dropped of %d, want %d kept", len(list), dropped, 3*len(rs), tailQueue)
	}
	if v, _ := list[len(rs)].r.Value.Int(); v != 0 {
		t.Errorf("the second batch begins with %d", v)
	}
	if list, dropped := other.take(); len(list) != 0 || dropped != 0 {
		t.Errorf("%d readings and %d dropped of a sensor that nobody watches", len(list), dropped)
	}
	ts.remove(slow)
	ts.remove(other)
	if ts.watched.Load() != 0 || len(ts.all()) != 0 {
		t.Error("a tail that has gone is still served")
	}
}
