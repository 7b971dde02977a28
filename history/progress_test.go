package history_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"tidemark/history"
	"tidemark/reading"
)

// Whatever takes long tells how far it is: each step forward, by what is really
// there, and often.
func TestProgress(t *testing.T) {
	m := newMemory(t, minutes(120_000))
	m.day(1200)
	all := history.Selection{FromMS: reading.NoTime, ToMS: reading.NoTime}
	later := history.Selection{FromMS: noon + 60_000, ToMS: reading.NoTime}
	for name, x := range map[string]struct {
		steps []string
		work  func(context.Context, history.ProgressFunc) error
	}{
		"record": {[]string{"reading"}, func(ctx context.Context, p history.ProgressFunc) error {
			_, err := history.Record(ctx, m, all, p, io.Discard)
			return err
		}},
		"record of a part": {[]string{"surveying", "reading"}, func(ctx context.Context, p history.ProgressFunc) error {
			_, err := history.Record(ctx, m, later, p, io.Discard)
			return err
		}},
		"measure": {[]string{"reading"}, func(ctx context.Context, p history.ProgressFunc) error {
			return history.Batches(ctx, m, all, p, func(*reading.Batch) error { return nil })
		}},
		"reconcile": {[]string{"surveying", "rebuilding"}, func(ctx context.Context, p history.ProgressFunc) error {
			_, err := history.Reconcile(ctx, m, everything, p, func(history.Reconciled) error { return nil })
			return err
		}},
		"explain": {[]string{"surveying", "surveying", "stepping"}, func(ctx context.Context, p history.ProgressFunc) error {
			_, err := history.Explain(ctx, m, history.Question{Asset: "press", Sensor: "a", AtMS: noon + 1_000_000}, p)
			return err
		}},
	} {
		var steps []string
		var calls, last, whole int64
		err := x.work(t.Context(), func(step string, done, total int64) {
			if n := len(steps); n == 0 || steps[n-1] != step || step == "surveying" && done < last {
				steps, calls, last, whole = append(steps, step), 0, 0, total
			}
			if total != whole || done < last || done > total {
				t.Errorf("%s, %s: %d of %d after %d of %d", name, step, done, total, last, whole)
			}
			calls, last = calls+1, done
		})
		if err != nil || !slices.Equal(steps, x.steps) || calls < 100 || last < whole*9/10 {
			t.Error(name, err, steps, fmt.Sprint(calls, " calls, the last at ", last, " of ", whole))
		}
	}
}
