package buffer_test

import (
	"testing"
	"time"

	"tidemark/buffer"
)

// How long there is room follows from what came in how much time.
func TestRoomFor(t *testing.T) {
	hour := time.Hour.Milliseconds()
	of := func(spanMS, held, used, limit int64) buffer.Stats {
		v := buffer.Stats{UsedBytes: used, RawBytes: limit, OldestMS: 1000, LatestMS: 1000 + spanMS}
		v.Journal.Bytes = held
		return v
	}
	for _, c := range []struct {
		stats buffer.Stats
		want  time.Duration
		known bool
	}{
		{of(hour, 100, 150, 350), 2 * time.Hour, true},
		{of(hour, 100, 500, 350), 0, true},
		{of(59_000, 100, 150, 350), 0, false},
		{of(hour, 0, 150, 350), 0, false},
		{buffer.Stats{}, 0, false},
		{of(hour, 1, 0, 1<<50), 1e12 * time.Millisecond, true},
	} {
		if got, known := c.stats.RoomFor(); got != c.want || known != c.known {
			t.Errorf("%+v: %v %v, want %v %v", c.stats, got, known, c.want, c.known)
		}
	}
}
