package history_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing"
)

var everything = history.Rebuilding{FromMS: reading.NoTime, ToMS: reading.NoTime}

// view is what a reconciliation says of a window.
type view struct {
	sensor     string
	startMS    int64
	count, sum int64
	partial    string
}

func reconcile(t rapid.TB, m *memory, what history.Rebuilding) (views []view) {
	t.Helper()
	_, err := history.Reconcile(context.Background(), m, what, nil, func(r history.Reconciled) error {
		v := view{sensor: r.Sensor, startMS: r.StartMS, partial: fmt.Sprint(r.Partial)}
		v.count, _ = r.Values[0].Value.Int()
		v.sum, _ = r.Values[1].Value.Int()
		views = append(views, v)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(views, func(a, b view) int { return cmp.Or(cmp.Compare(a.startMS, b.startMS), cmp.Compare(a.sensor, b.sensor)) })
	return views
}

// Whatever came in whichever order and however late, the reconciled view is what a
// plain sum over all readings gives.
func TestReconciledValuesAreTheTruth(t *testing.T) {
	usual := *history.SliceReadings
	defer func() { *history.SliceReadings = usual }()
	rapid.Check(t, func(t *rapid.T) {
		*history.SliceReadings = rapid.SampledFrom([]int64{1, 5, usual}).Draw(t, "slice")
		c := minutes(30_000)
		f := &c.Features[0]
		f.SizeMS = rapid.SampledFrom([]int64{1_000, 60_000}).Draw(t, "size")
		f.EveryMS = f.SizeMS / rapid.SampledFrom([]int64{1, 2, 5}).Draw(t, "overlap")
		f.OffsetMS = rapid.Int64Range(0, 999).Draw(t, "offset")
		f.Scope = rapid.SampledFrom([]windowing.Scope{windowing.ScopeInput, windowing.ScopeDevice, windowing.ScopeSensor}).Draw(t, "scope")
		m := newMemory(t, c)
		truth := map[string]map[int64][2]int64{"a": {}, "b": {}}
		n := int64(0)
		for range rapid.IntRange(0, 12).Draw(t, "batches") {
			b := &reading.Batch{}
			for range rapid.IntRange(0, 8).Draw(t, "readings") {
				sensor := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "sensor")
				ms := rapid.Int64Range(-100_000, 100_000).Draw(t, "ms")
				if rapid.IntRange(0, 9).Draw(t, "far") == 0 {
					ms *= 10
				}
				n++
				r := said(sensor, ms, n, n)
				r.ID = fmt.Sprint(n)
				switch rapid.IntRange(0, 5).Draw(t, "fate") {
				case 0:
					r.Stamp.Disposition, r.Stamp.EventNS, r.Stamp.WatermarkMS = reading.Quarantine, reading.NoTime, reading.NoTime
				case 1:
					b.Readings = append(b.Readings, r) // twice
					fallthrough
				default:
					start, _ := f.WindowAt(noon + ms)
					for ; start > noon+ms-f.SizeMS; start -= f.Every() {
						was := truth[sensor][start]
						truth[sensor][start] = [2]int64{was[0] + 1, was[1] + n}
					}
				}
				b.Readings = append(b.Readings, r)
			}
			m.commit(b, noon+n)
		}
		seen := 0
		for _, v := range reconcile(t, m, everything) {
			if want := truth[v.sensor][v.startMS]; want != [2]int64{v.count, v.sum} {
				t.Fatalf("%+v, want %v", v, want)
			}
			seen++
		}
		if want := len(truth["a"]) + len(truth["b"]); seen != want {
			t.Fatalf("%d windows, want %d", seen, want)
		}
	})
}

// What was served stays, and what came too late for it is in the reconciled view,
// which says of which windows not everything is known.
func TestReconciledViewBesideWhatWasServed(t *testing.T) {
	c := minutes(30_000)
	m := newMemory(t, c)
	m.day(600)
	m.commit(&reading.Batch{Readings: []reading.Reading{said("b", 5_000, 600_000, 1_000)}}, noon+600_300)
	served := map[int64]int64{}
	for i := range m.emitted {
		if e := &m.emitted[i]; e.Kind == windowing.EmitFeature && e.Sensor == "b" {
			served[e.StartMS], _ = e.Values[1].Value.Int()
		}
	}
	before := len(m.emitted)
	views := reconcile(t, m, history.Rebuilding{FromMS: noon, ToMS: noon + 120_000, Sensors: []history.Sensor{{Asset: "press", Sensor: "b"}}})
	want := []view{{"b", noon, 7, 1_006, "[]"}, {"b", noon + 60_000, 6, 6, "[]"}}
	if fmt.Sprint(views) != fmt.Sprint(want) || served[noon] != 6 || served[noon+60_000] != 6 || len(m.emitted) != before {
		t.Errorf("reconciled %v beside %v served, want %v beside 6 and 6", views, served, want)
	}
	m.forget(100) // which was committed at 98 seconds after noon
	partial := map[int64]string{}
	for _, v := range reconcile(t, m, everything) {
		partial[v.startMS-noon] = v.partial
	}
	if partial[0] != "[before_retention]" || partial[60_000] != "[before_retention]" || partial[120_000] != "[]" || partial[540_000] != "[not_over]" {
		t.Errorf("partial windows by start: %v", partial)
	}
	if _, err := history.Reconcile(t.Context(), m, history.Rebuilding{Feature: "hour"}, nil, nil); !errors.Is(err, history.ErrUnselected) {
		t.Errorf("an unknown feature: %v", err)
	}
}

// A journal with a hole, and with readings from before the store's birth.
func TestReconciledWindowsOfHolesAndEarlierTimes(t *testing.T) {
	c := minutes(30_000)
	c.FloorMS = noon + 30_000
	m := newMemory(t, c)
	m.day(400)
	m.blocks = slices.Delete(m.blocks, 250, 260) // at 249 to 258 seconds
	partial := map[int64]string{}
	for _, v := range reconcile(t, m, everything) {
		partial[v.startMS-noon] = v.partial
	}
	if partial[0] != "[before_store]" || partial[180_000] != "[]" || partial[240_000] != "[gap]" || partial[300_000] != "[]" {
		t.Errorf("partial windows by start: %v", partial)
	}
}
