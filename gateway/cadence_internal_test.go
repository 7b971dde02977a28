package gateway

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCadenceDue(t *testing.T) {
	const ms = time.Millisecond
	base := cadence{interval: time.Second, minGap: 20 * ms, bytes: 64 << 10, last: 10 * time.Second}
	for _, c := range []struct {
		name string
		now  time.Duration
		b    pendingBatch
		want time.Duration
	}{
		{"a fresh batch waits for the interval", 11 * time.Second, pendingBatch{since: 11 * time.Second}, time.Second},
		{"and is due after it", 12 * time.Second, pendingBatch{since: 11 * time.Second}, 0},
		{"a full batch goes at once", 11 * time.Second, pendingBatch{since: 11 * time.Second, bytes: 64 << 10}, 0},
		{"so does one that a source waits for", 11 * time.Second, pendingBatch{since: 11 * time.Second, urgent: true}, 0},
		{"but not within the gap after the last", 10*time.Second + 5*ms, pendingBatch{since: 10 * time.Second, urgent: true}, 15 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			cad := base
			if got := cad.due(c.now, c.b); got != c.want {
				t.Errorf("due in %v, want %v", got, c.want)
			}
		})
	}
}

// With a budget, what is written in a day stays within it and one hour's worth
// of burst, as long as batches may be held ten intervals at most.
func TestCadenceBudgetHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Float64Range(4e9, 40e9).Draw(t, "budget")
		size := rapid.IntRange(0, 20_000).Draw(t, "size")
		c := cadence{interval: time.Second, minGap: 20 * time.Millisecond, bytes: 64 << 10, budget: budget}
		var now time.Duration
		var written float64
		for range 2000 {
			b := pendingBatch{since: now, bytes: size, urgent: true}
			for wait := c.due(now, b); wait > 0; wait = c.due(now, b) {
				now += max(wait, time.Microsecond)
			}
			c.committed(now, size)
			written += float64(size + commitOverhead)
		}
		allowed := budget*(float64(now)/float64(day)) + budget/24 + float64(size+commitOverhead)
		if written > allowed {
			t.Fatalf("wrote %.0f bytes in %v, the budget allows %.0f", written, now, allowed)
		}
	})
}

func TestRejectLogRecordsOncePerMinute(t *testing.T) {
	var l rejectLog
	k := rejectKey{"in", "malformed", "not_json"}
	type step struct {
		atMS  int64
		count uint64
		rec   bool
	}
	for i, s := range []step{{0, 1, true}, {1, 0, false}, {59_999, 0, false}, {60_000, 3, true}, {60_001, 0, false}} {
		if count, rec := l.note(k, s.atMS); count != s.count || rec != s.rec {
			t.Errorf("step %d: %d, %v, want %d, %v", i, count, rec, s.count, s.rec)
		}
	}
	if _, rec := l.note(rejectKey{"in", "malformed", "too_large"}, 60_001); !rec {
		t.Error("another reason must have a record of its own")
	}
}
