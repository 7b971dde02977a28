package gateway

import (
	"testing"

	"tidemark/reading"
)

// Keep-alives cost no commit: they wait for something that does, all in one.
func TestEvidenceOfLifeIsNoNews(t *testing.T) {
	alive := reading.Mark{Kind: reading.MarkActive, Input: "in", TimeMS: reading.NoTime}
	begin := reading.Mark{Kind: reading.MarkCatchUpBegin, Input: "in", TimeMS: reading.NoTime}
	for _, c := range []struct {
		name string
		p    reading.Parcel
		want bool
	}{
		{"a keep-alive", reading.Parcel{Marks: []reading.Mark{alive}}, false},
		{"a catch-up", reading.Parcel{Marks: []reading.Mark{alive, begin}}, true},
		{"a reading", reading.Parcel{Marks: []reading.Mark{alive}, Readings: make([]reading.Reading, 1)}, true},
		{"a gap", reading.Parcel{Marks: []reading.Mark{alive}, Gaps: make([]reading.Gap, 1)}, true},
		{"nothing, to be acknowledged", reading.Parcel{}, true},
	} {
		if got := isNews(&c.p); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	p := &pipeline{alive: map[string]int64{}, inputs: []string{"in", "other"}}
	for range 3 {
		p.readerMark(alive, 0)
	}
	if len(p.batch.Marks) > 0 {
		t.Fatalf("%d marks in the batch before there is one", len(p.batch.Marks))
	}
	p.batch.Readings = make([]reading.Reading, 2)
	p.markAlive()
	p.markAlive()
	if m := p.batch.Marks; len(m) != 1 || m[0].Kind != reading.MarkActive || m[0].At != 2 {
		t.Errorf("marks %+v, want one behind the readings", m)
	}
}
