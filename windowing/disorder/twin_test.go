package disorder_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tidemark/reading"
	"tidemark/windowing/disorder"
)

// naive keeps everything and sorts it: the second method for every figure.
type naive struct {
	highest         map[disorder.Name]int64
	disorder, delay map[disorder.Name][]int64
	behind, delays  []int64
}

func (n *naive) add(name disorder.Name, r *reading.Reading) {
	event := floor(r.Stamp.EventNS)
	if h, ok := n.highest[name]; !ok || event > h {
		n.highest[name] = event
	}
	d := n.highest[name] - event
	n.disorder[name] = append(n.disorder[name], d)
	n.behind = append(n.behind, d)
	if r.IngestNS != reading.NoTime {
		d := floor(r.IngestNS - r.Source.NS)
		n.delay[name] = append(n.delay[name], d)
		n.delays = append(n.delays, d)
	}
}

func floor(ns int64) int64 {
	q := ns / ms
	if q*ms > ns {
		q--
	}
	return q
}

func (n *naive) above(limit int64) (count uint64) {
	for _, d := range n.behind {
		if d > limit {
			count++
		}
	}
	return count
}

// agrees checks a summary against all the values that it is of.
func agrees(t *rapid.T, what string, got *disorder.Summary, values []int64) {
	t.Helper()
	if len(values) == 0 || got == nil {
		if got != nil || len(values) > 0 {
			t.Fatalf("%s: %+v of %d values", what, got, len(values))
		}
		return
	}
	v := slices.Sorted(slices.Values(values))
	if got.Count != uint64(len(v)) || got.MinMS != v[0] || got.MaxMS != v[len(v)-1] {
		t.Fatalf("%s: %+v of %d values from %d to %d", what, got, len(v), v[0], v[len(v)-1])
	}
	for _, p := range []struct {
		perMille int
		got      int64
	}{{500, got.P50MS}, {900, got.P90MS}, {990, got.P99MS}, {999, got.P999MS}} {
		want := v[(len(v)*p.perMille+999)/1000-1]
		if p.got < want || float64(p.got-want) > disorder.RelativeError*float64(max(want, -want)) || want >= 0 && want < 64 && p.got != want {
			t.Fatalf("%s: %d per mille is %d, want %d", what, p.perMille, p.got, want)
		}
	}
}

var scopeNames = map[disorder.Scope]func(reading.Series) disorder.Name{
	disorder.ScopeInput:  func(s reading.Series) disorder.Name { return disorder.Name{Input: s.Input} },
	disorder.ScopeDevice: func(s reading.Series) disorder.Name { return disorder.Name{Input: s.Input, Device: s.Device} },
	disorder.ScopeSensor: func(s reading.Series) disorder.Name {
		return disorder.Name{Input: s.Input, Asset: s.Asset, Sensor: s.Sensor}
	},
}

func TestAgainstANaiveTwin(t *testing.T) {
	letter := rapid.SampledFrom([]string{"", "a", "b"})
	span := rapid.OneOf(rapid.Int64Range(-100, 100), rapid.Int64Range(-1e6, 1e6), rapid.Int64Range(-1e15, 1e15))
	rapid.Check(t, func(t *rapid.T) {
		budgets := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) disorder.Budget {
			return disorder.Budget{OutOfOrdernessMS: max(0, span.Draw(t, "bound")), AllowedLatenessMS: max(0, span.Draw(t, "lateness"))}
		}), 0, 4).Draw(t, "budgets")
		m := disorder.New(budgets)
		twins := map[disorder.Scope]*naive{}
		for s := range scopeNames {
			twins[s] = &naive{highest: map[disorder.Name]int64{}, disorder: map[disorder.Name][]int64{}, delay: map[disorder.Name][]int64{}}
		}
		for range rapid.IntRange(0, 300).Draw(t, "readings") {
			s := reading.Series{Input: letter.Draw(t, "input"), Device: letter.Draw(t, "device"), Asset: letter.Draw(t, "asset"), Sensor: letter.Draw(t, "sensor")}
			ns := span.Draw(t, "event")*1000 + rapid.Int64Range(0, 999).Draw(t, "ns")
			ingest := reading.NoTime
			if rapid.Bool().Draw(t, "timed") {
				ingest = ns + span.Draw(t, "delay")*1000
			}
			r := arrive(s, ns, ingest)
			m.Add(r)
			for scope, name := range scopeNames {
				twins[scope].add(name(s), r)
			}
		}
		for _, s := range m.Report(1000).Scopes {
			twins[s.Scope].check(t, s)
		}
	})
}

func (n *naive) check(t *rapid.T, s disorder.ScopeReport) {
	agrees(t, fmt.Sprint(s.Scope, " disorder"), s.Disorder.All, n.behind)
	agrees(t, fmt.Sprint(s.Scope, " delay"), s.Delay.All, n.delays)
	if len(s.Disorder.Worst) != len(n.disorder) || len(s.Delay.Worst) != len(n.delay) || s.Partitions != len(n.disorder) {
		t.Fatalf("%s: %d partitions, %d and %d shown of %d and %d", s.Scope, s.Partitions,
			len(s.Disorder.Worst), len(s.Delay.Worst), len(n.disorder), len(n.delay))
	}
	for i := range s.Disorder.Worst {
		agrees(t, fmt.Sprint(s.Disorder.Worst[i].Name), &s.Disorder.Worst[i].Summary, n.disorder[s.Disorder.Worst[i].Name])
	}
	for i := range s.Delay.Worst {
		agrees(t, fmt.Sprint(s.Delay.Worst[i].Name), &s.Delay.Worst[i].Summary, n.delay[s.Delay.Worst[i].Name])
	}
	for _, c := range s.Budgets {
		late := n.above(c.OutOfOrdernessMS + c.AllowedLatenessMS)
		if c.TooLateReadings != late || c.CorrectedReadings != n.above(c.OutOfOrdernessMS)-late {
			t.Fatalf("%s: %+v, want %d behind, %d of them too late", s.Scope, c, n.above(c.OutOfOrdernessMS), late)
		}
	}
	if c := s.Recommended; c != nil {
		behind, late := n.above(c.OutOfOrdernessMS), n.above(c.OutOfOrdernessMS+c.AllowedLatenessMS)
		if behind*1000 > s.Measured || late*10_000 > s.Measured || c.CorrectedReadings != behind-late || c.TooLateReadings != late {
			t.Fatalf("%s: recommended %+v, %d are behind and %d too late of %d", s.Scope, c, behind, late, s.Measured)
		}
	} else if len(n.behind) > 0 && n.above(disorder.LongestRungMS)*10_000 <= s.Measured {
		t.Fatalf("%s: nothing recommended", s.Scope)
	}
	total := uint64(0)
	for _, b := range s.Bins {
		total += b.Readings
	}
	if total != uint64(len(n.behind)) {
		t.Fatalf("%s: bins of %d readings, of %d", s.Scope, total, len(n.behind))
	}
}
