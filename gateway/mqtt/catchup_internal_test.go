package mqtt

import (
	"testing"
	"time"

	"tidemark/reading"
)

// With a bound of 0 the watermark waits for no backlog.
func TestNoCatchUp(t *testing.T) {
	c := catchUp{}
	c.connect(true, 0)
	if marks := c.readings("a", []reading.Reading{{Delivery: reading.Initial}}, 1); marks != nil || c.active {
		t.Errorf("%v", marks)
	}
}

func TestCatchUpBounds(t *testing.T) {
	old := []reading.Reading{{Source: reading.SourceTime{NS: 0}, IngestNS: int64(time.Hour)}}
	ahead := []reading.Reading{{Source: reading.SourceTime{NS: int64(time.Hour)}, IngestNS: 0}}
	retained := []reading.Reading{{Delivery: reading.Initial, Source: reading.SourceTime{NS: 5}, IngestNS: 5}}
	c := catchUp{max: 10 * time.Minute}
	if c.connect(false, 0); c.readings("a", old, 1) != nil {
		t.Error("a new session has no backlog")
	}
	c.connect(true, 0)
	for i, rs := range [][]reading.Reading{old, ahead, retained} {
		if marks := c.readings("a", rs, 1); len(marks) != map[int]int{0: 1}[i] || !c.active {
			t.Errorf("%d: %v", i, marks)
		}
	}
	c.connect(false, int64(time.Minute)) // a broker that forgot us does not end it
	if marks := c.readings("a", old, int64(time.Minute)); len(marks) != 0 || !c.active {
		t.Errorf("reconnected: %v", marks)
	}
	if marks := c.readings("a", old, int64(12*time.Minute)); len(marks) != 1 || marks[0].Kind != reading.MarkCatchUpEnd {
		t.Errorf("after max: %v", marks)
	}
	c.connect(true, 0)
	if marks, again := c.wait("a", 0, int64(catchUpQuiet)); marks != nil || again != 0 || c.active {
		t.Error("without a backlog there is nothing to say")
	}
	c.connect(true, 0)
	c.readings("a", old, 0)
	if marks, again := c.wait("a", 1, int64(11*time.Minute)); len(marks) != 1 || again != 0 {
		t.Error("a broker that waits for us for ever must not hold the watermark for ever")
	}
}
