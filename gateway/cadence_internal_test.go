package gateway

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/reading"
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

// What is written stays within the day's worth that the budget begins with and
// what it brings meanwhile, but for one commit in ten intervals, which is always
// allowed: acknowledgements must go on.
func TestCadenceBudgetHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Float64Range(10e6, 1e9).Draw(t, "budget")
		size := rapid.IntRange(0, 20_000).Draw(t, "size")
		c := newCadence(time.Second, 20*time.Millisecond, 64<<10, budget)
		var now, last time.Duration
		var written float64
		for range 2000 {
			b := pendingBatch{since: now, bytes: size, urgent: true}
			for wait := c.due(now, b); wait > 0; wait = c.due(now, b) {
				now += max(wait, time.Microsecond)
			}
			c.committed(now, size)
			if now-last < 10*c.interval {
				written += float64(size + commitOverhead)
			}
			last = now
		}
		allowed := budget*(1+float64(now)/float64(day)) + 1
		if written > allowed {
			t.Fatalf("wrote %.0f bytes in %v, the budget allows %.0f", written, now, allowed)
		}
	})
}

func TestRejectLogRecordsOncePerMinute(t *testing.T) {
	var l rejectLog
	k := rejectKey{"in", "malformed", "not_json"}
	j := &reading.Reject{Reason: "not_json", ID: "7"}
	for i, s := range []struct {
		atMS  int64
		count uint64 // of the record that is due; 0: none is
	}{{0, 1}, {1, 0}, {59_999, 0}, {60_000, 3}, {60_001, 0}} {
		record, keep := l.note(k, j, s.atMS)
		if record != (s.count > 0) || !keep {
			t.Errorf("step %d: record %v, keep %v", i, record, keep)
		}
		if record {
			if run := l.take(k, s.atMS); run.count != s.count || run.sample.ID != "7" {
				t.Errorf("step %d: the record stands for %d, want %d", i, run.count, s.count)
			}
		}
	}
	if record, _ := l.note(rejectKey{"in", "malformed", "too_large"}, j, 60_001); !record {
		t.Error("another reason must have a record of its own")
	}
	// The flood ends: what came after the last record is still owed.
	if ks := l.ripe(120_002); len(ks) == 0 || l.runs[k].count != 1 {
		t.Errorf("owed after the flood: %v", ks)
	}
}

func TestRejectEvidenceIsBounded(t *testing.T) {
	var l rejectLog
	kept := 0
	for range 10 * rejectKeep {
		if _, keep := l.note(rejectKey{"in", "malformed", "x"}, &reading.Reject{ID: "1"}, 0); keep {
			kept++
		}
	}
	if kept != rejectKeep {
		t.Errorf("%d kept as evidence, want %d", kept, rejectKeep)
	}
	if _, keep := l.note(rejectKey{"in", "malformed", "y"}, &reading.Reject{}, 0); keep {
		t.Error("a reject without an identity was kept")
	}
}
