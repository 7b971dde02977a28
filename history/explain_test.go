package history_test

import (
	"errors"
	"fmt"
	"testing"

	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing"
)

func explain(t *testing.T, m *memory, q history.Question) *history.Explanation {
	t.Helper()
	x, err := history.Explain(t.Context(), m, q, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// However an engine is brought to a window, from the beginning, from a checkpoint
// or from the middle of a journal whose beginning is gone, it tells the same life,
// and the journal's digests prove it.
func TestRevisionsAreThoseThatWereSent(t *testing.T) {
	fresh := func() *memory {
		m := newMemory(t, minutes(120_000))
		m.day(1200)
		m.commit(&reading.Batch{Readings: []reading.Reading{said("a", 1_090_500, 1_200_000, 1000)}}, noon+1_200_300) // late for its result
		m.commit(&reading.Batch{Readings: []reading.Reading{said("a", 1_300_000, 1_300_200, 1)}}, noon+1_300_300)
		m.commit(&reading.Batch{Readings: []reading.Reading{said("a", 1_091_500, 1_301_000, 7)}}, noon+1_301_300) // too late
		m.commit(&reading.Batch{Readings: []reading.Reading{said("b", 10_500, 1_302_000, 7)}}, noon+1_302_300)
		return m
	}
	const start = noon + 1_080_000
	for name, prepare := range map[string]func(*memory){
		"beginning": func(*memory) {},
		"middle":    func(m *memory) { m.forget(600) },
		"edge":      func(m *memory) { m.forget(1000) },
		"checkpoint": func(m *memory) {
			half := newMemory(t, minutes(120_000))
			half.day(900)
			m.checkpoints[half.info.Next-1] = half.engine.AppendSnapshot(nil)
			m.forget(800)
		},
	} {
		m := fresh()
		prepare(m)
		x := explain(t, m, history.Question{Asset: "press", Sensor: "a", AtMS: start + 5000})
		w := &x.Windows[0]
		if len(x.Windows) != 1 || w.Start != history.TimeMS(start) || w.State != history.WindowClosed || !w.Proved() || w.Partial {
			t.Errorf("%s: %d windows, the first %+v", name, len(x.Windows), w)
			continue
		}
		var got []string
		for _, r := range w.Revisions {
			got = append(got, fmt.Sprint(r.Revision, " ", r.Cause, " ", string(r.Values[1].Value.AppendJSON(nil)), " at ", r.KnownAt))
		}
		var want []string
		for i := range m.emitted {
			if e := &m.emitted[i]; e.Kind == windowing.EmitFeature && e.Sensor == "a" && e.StartMS == start {
				want = append(want, fmt.Sprint(e.Revision, " ", e.Cause, " ", string(e.Values[1].Value.AppendJSON(nil)), " at ", history.Time(e.MaterializedNS)))
			}
		}
		if len(want) != 2 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		if w.Counts[history.Accepted] != 61 || w.Counts[history.Late] != 1 || len(w.Readings) != 62 {
			t.Errorf("%s: %v of %d readings, want 61 accepted and 1 late", name, w.Counts, len(w.Readings))
		}
		if last := w.Readings[61]; last.Verdict != history.Late || last.Reason != "window_closed" || last.Revision != 0 || w.Readings[60].Revision != 2 || w.Readings[0].Revision != 1 {
			t.Errorf("%s: the late reading is %+v; the others are first in revisions %d and %d", name, last, w.Readings[0].Revision, w.Readings[60].Revision)
		}
		if late := m.read[m.info.Next-1]; late != 0 && name != "beginning" {
			t.Errorf("%s: a block of another sensor was read", name)
		}
	}
}

func TestWindowsOfAJournalThatForgets(t *testing.T) {
	m := newMemory(t, minutes(120_000))
	m.day(1200)
	m.forget(603) // the block of 10:01 after noon, and a second
	q := history.Question{Asset: "press", Sensor: "a", AtMS: noon}
	if _, err := history.Explain(t.Context(), m, q, nil); !errors.Is(err, history.ErrRetention) {
		t.Errorf("a window from before all that is held: %v", err)
	}
	q.AtMS = noon + 600_000
	if w := explain(t, m, q).Windows[0]; !w.Partial || w.Proved() {
		t.Errorf("a window of which the beginning is gone: partial %v, proved %v", w.Partial, w.Proved())
	}
	q = history.Question{Asset: "press", Sensor: "none", AtMS: reading.NoTime}
	if _, err := history.Explain(t.Context(), m, q, nil); !errors.Is(err, history.ErrUnknownSensor) {
		t.Errorf("an unknown sensor: %v", err)
	}
	q = history.Question{Asset: "press", Sensor: "a", Feature: "hour", AtMS: reading.NoTime}
	if _, err := history.Explain(t.Context(), m, q, nil); !errors.Is(err, history.ErrUnselected) {
		t.Errorf("an unknown feature: %v", err)
	}
}

func TestLatestWindowAndThoseBefore(t *testing.T) {
	m := newMemory(t, minutes(30_000))
	m.day(150)
	for back, want := range map[int]struct {
		start int64
		state history.WindowState
	}{0: {120, history.WindowOpen}, 1: {60, history.WindowProvisional}, 2: {0, history.WindowClosed}, 3: {-60, history.WindowEmpty}} {
		w := explain(t, m, history.Question{Asset: "press", Sensor: "b", AtMS: reading.NoTime, Back: back}).Windows[0]
		if w.Start != history.TimeMS(noon+want.start*1000) || w.State != want.state {
			t.Errorf("%d back: %s, %s; want %+v", back, w.Start, w.State, want)
		}
		if w.State == history.WindowEmpty && w.Progress != nil {
			t.Errorf("%d back: nothing came before the watermark passed, and it waits for %+v", back, w.Progress)
		}
	}
	w := explain(t, m, history.Question{Asset: "press", Sensor: "b", AtMS: reading.NoTime}).Windows[0]
	if p := w.Progress; p == nil || p.Watermark != history.TimeMS(noon+146_999) || p.ResultAt != history.TimeMS(noon+179_999) || fmt.Sprint(p.HeldBy) != "[line]" {
		t.Errorf("the open window waits for %+v", p)
	}
}

// Two inputs may have a sensor of one name: each feature's window has the readings of
// its own.
func TestWindowsOfTwoInputs(t *testing.T) {
	c := minutes(30_000)
	for _, input := range []string{"line", "bench", "store"} {
		f := c.Features[0]
		f.ID.Name, f.Select.Input = input, input
		c.Features = append(c.Features, f)
	}
	c.Features = c.Features[1:]
	m := newMemory(t, c)
	m.day(10)
	other := said("a", 9_500, 9_700, 1)
	other.Tag = reading.MakeTag(reading.Series{Input: "bench", Asset: "press", Device: "d", Sensor: "a"})
	m.commit(&reading.Batch{Readings: []reading.Reading{other}}, noon+9_800)
	got := map[string]int{}
	for _, w := range explain(t, m, history.Question{Asset: "press", Sensor: "a", AtMS: reading.NoTime}).Windows {
		got[w.Feature] = len(w.Readings)
	}
	if len(got) != 2 || got["line"] != 10 || got["bench"] != 1 {
		t.Errorf("readings by feature: %v, want 10 of line and 1 of bench", got)
	}
}

func TestNothingToExplainYet(t *testing.T) {
	m := &memory{info: history.Info{First: 1, Next: 1}}
	if _, err := history.Explain(t.Context(), m, history.Question{Asset: "press", Sensor: "a", AtMS: reading.NoTime}, nil); !errors.Is(err, history.ErrEmpty) {
		t.Errorf("explain: %v", err)
	}
	if _, err := history.Reconcile(t.Context(), m, everything, nil, nil); !errors.Is(err, history.ErrEmpty) {
		t.Errorf("reconcile: %v", err)
	}
}

// A reading that no window took for the uncertainty of its time is in no revision.
func TestExcludedReading(t *testing.T) {
	m := newMemory(t, minutes(120_000))
	unsure := said("a", 20_000, 20_100, 2)
	unsure.Stamp.EventBound = reading.MakeBound(60e9)
	m.commit(&reading.Batch{Readings: []reading.Reading{said("a", 10_000, 10_100, 1), unsure}}, noon+20_200)
	m.commit(&reading.Batch{Readings: []reading.Reading{said("a", 70_000, 70_100, 3)}}, noon+70_200)
	w := explain(t, m, history.Question{Asset: "press", Sensor: "a", AtMS: noon + 5_000}).Windows[0]
	if w.Counts[history.Accepted] != 1 || w.Counts[history.Excluded] != 1 {
		t.Fatalf("counted %v", w.Counts)
	}
	if in, out := w.Readings[0], w.Readings[1]; in.Revision != 1 || out.Revision != 0 || out.Reason != "BOUND_TOO_WIDE" {
		t.Errorf("in revision %d; the unsure one in revision %d, %s", in.Revision, out.Revision, out.Reason)
	}
}
