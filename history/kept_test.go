package history_test

import (
	"fmt"
	"testing"

	"tidemark/history"
	"tidemark/reading"
)

// keptOut is n readings, each kept out of a device of its own, and one that is not.
func keptOut(n int) *reading.Batch {
	b := &reading.Batch{}
	for i := range n {
		s := reading.Series{Input: "in", Device: fmt.Sprint("device-", i), Asset: "a", Sensor: "s"}
		b.Readings = append(b.Readings, reading.Reading{
			Tag: reading.MakeTag(s), IngestNS: int64(i) * 1e9,
			Stamp: reading.Stamp{Disposition: reading.Quarantine, Reason: reading.Future},
		})
	}
	right := reading.Series{Input: "in", Device: "right", Asset: "b", Sensor: "s"}
	b.Readings = append(b.Readings, reading.Reading{Tag: reading.MakeTag(right), Stamp: reading.Stamp{Disposition: reading.Accept}})
	return b
}

// The index says what a block keeps out; where that is too much, it says so.
func TestIndexSaysWhatIsKeptOut(t *testing.T) {
	var x history.Indexer
	for _, n := range []int{0, 1, 15, 300} {
		index := x.Append(nil, keptOut(n))
		if len(index) > 1024 {
			t.Errorf("%d groups: the store refuses an index of %d bytes", n, len(index))
		}
		sums, inside, err := history.KeptIn(index)
		if err != nil || inside != (n == 300) || !inside && len(sums) != n {
			t.Errorf("%d groups: %d back, inside %v, %v", n, len(sums), inside, err)
		}
		for _, k := range sums {
			if k.Count != 1 || k.Input != "in" || k.Reason != reading.Future || k.OldestMS != k.LastMS {
				t.Errorf("%+v", k)
			}
		}
	}
}

func FuzzKeptIn(f *testing.F) {
	var x history.Indexer
	for _, n := range []int{0, 1, 300} {
		f.Add(x.Append(nil, keptOut(n)))
	}
	f.Fuzz(func(t *testing.T, index []byte) {
		sums, inside, err := history.KeptIn(index)
		if err == nil && !inside && len(sums) > len(index) {
			t.Errorf("%d groups out of %d bytes", len(sums), len(index))
		}
	})
}
