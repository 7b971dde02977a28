package history

import (
	"testing"

	"pgregory.net/rapid"

	"tidemark/buffer"
)

// However coarse a plan becomes, no block and no event time falls out of it.
func TestCoarsePlanCoversEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan{each: 1}
		var total, n int64
		var blocks []buffer.Block
		for seq := range rapid.Uint64Range(1, 50).Draw(t, "blocks") {
			low := rapid.Int64Range(-1000, 1000).Draw(t, "min")
			b := buffer.Block{Seq: seq + 1, MinMS: low, MaxMS: low + rapid.Int64Range(0, 500).Draw(t, "length"), Readings: rapid.IntRange(1, 9).Draw(t, "readings")}
			p.add(&b)
			blocks, total = append(blocks, b), total+int64(b.Readings)
			if rapid.IntRange(0, 5).Draw(t, "halve") == 0 {
				p.halve()
			}
		}
		for _, b := range blocks {
			covered := false
			for _, r := range p.runs {
				covered = covered || r.first <= b.Seq && b.Seq < r.next && r.min <= b.MinMS && b.MaxMS <= r.max
			}
			if !covered {
				t.Fatalf("%+v is in none of %+v", b, p.runs)
			}
		}
		for _, r := range p.runs {
			n += r.readings
		}
		if n != total {
			t.Fatalf("%d readings of %d", n, total)
		}
	})
}
