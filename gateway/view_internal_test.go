package gateway

import (
	"fmt"
	"testing"

	"tidemark/reading"
	"tidemark/windowing"
)

// BenchmarkTagRows makes a list of tags at the largest board.
func BenchmarkTagRows(b *testing.B) {
	board := newBoard()
	for i := range boardMax {
		tag := reading.MakeTag(reading.Series{Input: "line", Asset: fmt.Sprintf("a%d", i/100), Device: fmt.Sprintf("d%d", i/100), Sensor: fmt.Sprintf("s%d", i%100)})
		board.note([]reading.Reading{{Tag: tag}}, make([]windowing.Outcome, 1))
	}
	points := []reading.Point{{Series: reading.Series{Input: "line", Asset: "*", Device: "*", Sensor: "*"}, Address: "line/{asset}/{device}/{sensor}"}}
	for b.Loop() {
		l := newTagList(0, points, windowing.Config{}, worstTags)
		board.each(l.spoken)
		if got := l.tags(); len(got) != worstTags || l.states[TagGood] != boardMax {
			b.Fatal(len(got), l.states)
		}
	}
}
