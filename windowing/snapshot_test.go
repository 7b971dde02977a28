package windowing_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"tidemark/reading"
	"tidemark/windowing"
)

// A snapshot that is handed out in parts is the one in one piece.
func TestSnapshotInParts(t *testing.T) {
	e := stepSeed(t, func(*windowing.Output) {})
	b := reading.Batch{GatewayMS: 300}
	for i := range 40_000 {
		r := accepted(reading.Series{Input: "A", Device: "d", Asset: "m", Sensor: "s" + strconv.Itoa(i%50)}, 200e6+int64(i), reading.IntValue(int64(i)))
		r.ID = strconv.Itoa(i)
		b.Readings = append(b.Readings, r)
	}
	e.Step(&b)
	want := e.AppendSnapshot(nil)
	var got []byte
	parts := 0
	err := e.Snapshot(func(part []byte) error {
		got = append(got, part...)
		parts++
		return nil
	})
	if err != nil || !slices.Equal(got, want) || parts < 4 || len(want)/parts > 100_000 {
		t.Errorf("%d bytes in %d parts, %v; want %d", len(got), parts, err, len(want))
	}
	if _, err := windowing.Restore(got); err != nil {
		t.Error(err)
	}
	full := errors.New("no room")
	if err := e.Snapshot(func([]byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("an error of put comes back as %v", err)
	}
}
