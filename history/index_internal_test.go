package history

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"tidemark/reading"
)

func of(asset, sensor string) reading.Reading {
	return reading.Reading{Tag: reading.MakeTag(reading.Series{Input: "in", Asset: asset, Sensor: sensor})}
}

// A search that passes a block over must be right: no sensor of the block is missing
// from its index.
func TestIndexMissesNothing(t *testing.T) {
	name := rapid.StringMatching(`[a-z/]{0,6}`)
	var x Indexer
	rapid.Check(t, func(t *rapid.T) {
		var b reading.Batch
		for range rapid.IntRange(0, 2*indexMost).Draw(t, "readings") {
			r := of(name.Draw(t, "asset"), name.Draw(t, "sensor"))
			if rapid.IntRange(0, 9).Draw(t, "kept out") == 0 {
				r.Stamp.Disposition = reading.Quarantine
			}
			b.Readings = append(b.Readings, r)
		}
		if rapid.Bool().Draw(t, "configured") {
			b.Config = []byte{1}
		}
		index := x.Append(nil, &b)
		for i := range b.Readings {
			if s := b.Readings[i].Tag.Value(); !mayHold(index, s.Asset, s.Sensor) {
				t.Fatalf("%s/%s is missing", s.Asset, s.Sensor)
			}
		}
		if configures(index) != (b.Config != nil) || !mayHold(nil, "a", "b") || configures(nil) {
			t.Fatal("a configuration, or its lack, is missing")
		}
	})
}

// It is small, and lets few blocks through that have nothing.
func TestIndexIsWorthItsRoom(t *testing.T) {
	var x Indexer
	for _, sensors := range []int{0, 1, 10, indexMost, indexMost + 1} {
		var b reading.Batch
		for i := range sensors {
			b.Readings = append(b.Readings, of("press", fmt.Sprint("s", i)), of("press", fmt.Sprint("s", i)))
		}
		index := x.Append(nil, &b)
		wrong := 0
		for i := range 10_000 {
			if mayHold(index, "other", fmt.Sprint(i)) {
				wrong++
			}
		}
		room, passes := 3+sensors*indexBits/8, 400
		if sensors > indexMost {
			room, passes = 2, 10_000
		}
		if len(index) > room || wrong > passes {
			t.Errorf("%d sensors: %d bytes, %d of 10,000 pass that are not there", sensors, len(index), wrong)
		}
	}
}

func TestSelectionKeepsMarksInPlace(t *testing.T) {
	b := &reading.Batch{
		Readings: []reading.Reading{of("a", "x"), of("a", "y"), of("a", "x"), of("a", "y")},
		Marks: []reading.Mark{
			{At: 0, Input: "in"}, {At: 1, Input: "in"}, {At: 2, Input: "other"}, {At: 3, Input: "in"}, {At: 4, Input: "in"},
		},
	}
	(&Selection{Inputs: []string{"in"}, Sensors: []Sensor{{"a", "y"}}}).narrow(b)
	var at []int
	for _, m := range b.Marks {
		at = append(at, m.At)
	}
	if len(b.Readings) != 2 || fmt.Sprint(at) != "[0 0 1 2]" {
		t.Errorf("%d readings, marks at %v, want 2 and [0 0 1 2]", len(b.Readings), at)
	}
}
