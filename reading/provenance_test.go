package reading_test

import (
	"encoding/binary"
	"testing"

	"tidemark/reading"
)

// sizes returns what a block takes before compression and as it is stored.
func sizes(t *testing.T, b *reading.Batch) (plain, stored int) {
	t.Helper()
	block := reading.AppendBatch(nil, b)
	if block[1] == 0 {
		return len(block), len(block)
	}
	n, size := binary.Uvarint(block[2:])
	if size <= 0 {
		t.Fatal("a block without its size")
	}
	return int(n), len(block)
}

// perDevice gives each of a hundred devices a clock of its own, as measured, with a
// bound that has grown since the last poll.
func perDevice(f func(i int) reading.Reading) func(i int) reading.Reading {
	var clocks []*reading.SourceSegment
	for d := range int64(100) {
		clocks = append(clocks, &reading.SourceSegment{ID: uint64(d) + 1, LoNS: -2e6 - d*37_003, HiNS: 998e6 - d*37_003})
	}
	return func(i int) reading.Reading {
		r := f(i)
		r.Stamp.Source = clocks[i%100]
		r.Stamp.IngestBound = reading.MakeBound(4_100_000 + int64(i)*50)
		r.Stamp.EventBound = reading.MakeBound(998e6 + 4_100_000 + int64(i)*50)
		return r
	}
}

// Provenance costs at most 16 bytes a reading before compression and 2 after, in
// the steady state: all that the clock says about a reading, its judged times
// included, against the same readings without.
func TestProvenanceCost(t *testing.T) {
	for _, s := range shapes {
		for name, f := range map[string]func(int) reading.Reading{s.name: s.make, s.name + "_per_device": perDevice(s.make)} {
			t.Run(name, func(t *testing.T) {
				bare := batchOf(s.n, f)
				for i := range bare.Readings {
					bare.Readings[i].Stamp = reading.Stamp{EventNS: reading.NoTime, WatermarkMS: reading.NoTime}
				}
				plain, stored := sizes(t, batchOf(s.n, f))
				barePlain, bareStored := sizes(t, bare)
				before, after := float64(plain-barePlain)/float64(s.n), float64(stored-bareStored)/float64(s.n)
				t.Logf("%.2f bytes before compression, %.2f after", before, after)
				if s.n < 1000 {
					return // a block so small carries its tables for a few readings only
				}
				if before > 16 || after > 2 {
					t.Errorf("%.2f bytes before compression, %.2f after, want at most 16 and 2", before, after)
				}
			})
		}
	}
}
