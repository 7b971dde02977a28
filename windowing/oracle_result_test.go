package windowing_test

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"tidemark/reading"
	"tidemark/windowing"
)

// result says the window's next revision with everything that a feature tells.
func (w *twin) result(win *twinWindow, cause string) {
	win.rev++
	win.dirty, win.live, win.stepped = false, false, false
	f := win.key.owner
	quality := [3]int{}
	var values []*big.Rat
	var times []int64
	state, bound, certain, unit := reading.ClockSynchronized, reading.Bound(0), 0, ""
	flags := reading.Flags(0)
	for _, x := range win.readings {
		st := &x.r.Stamp
		quality[x.r.Quality.Level]++
		if at := segmentState(st.Clock); distrust[at] > distrust[state] {
			state = at
		}
		bound, flags, unit = max(bound, st.EventBound), flags|st.Flags, max(unit, x.r.Unit)
		if e := st.EventBound; e.Known() && st.EventNS-e.NS() >= win.start*1e6 && st.EventNS+e.NS() < win.end*1e6 {
			certain++
		}
		if x.r.Quality.Level == reading.Bad || x.r.Quality.Level == reading.Uncertain && f.def.GoodOnly {
			continue
		}
		times = append(times, x.t)
		values = append(values, new(big.Rat).SetFloat64(x.r.Value.Float()))
	}
	w.say("feature %s %v %d rev %d %s %v %v unit %q coverage %d %d %d -1 %d clock %v %d %v partial %v wm %d inputs %s",
		f.def.ID.Name, win.key.name, win.start, win.rev, cause, statistics(values), quality, unit,
		w.expected(win), len(times), longestGap(win, times), certain, state, bound, flags,
		win.start < w.config.FloorMS && w.config.FloorMS < win.end, win.key.state().wm, f.summary(win.key.state()))
}

var distrust = map[reading.ClockState]int{
	reading.ClockSynchronized: 0, reading.ClockFreeRunning: 1, reading.ClockUnknown: 2, reading.ClockDisrupted: 3, reading.ClockUnreliable: 4,
}

func segmentState(s *reading.ClockSegment) reading.ClockState {
	if s == nil {
		return reading.ClockUnknown
	}
	return s.State
}

// statistics are count, sum, min, max and mean.
func statistics(values []*big.Rat) []string {
	all := []string{fmt.Sprint(len(values)), "null", "null", "null", "null"}
	if len(values) == 0 {
		return all
	}
	sum := new(big.Rat)
	for _, v := range values {
		sum.Add(sum, v)
	}
	low, high := slices.MinFunc(values, (*big.Rat).Cmp), slices.MaxFunc(values, (*big.Rat).Cmp)
	mean := new(big.Rat).Quo(sum, new(big.Rat).SetInt64(int64(len(values))))
	for i, v := range []*big.Rat{sum, low, high, mean} {
		f, _ := v.Float64()
		all[i+1] = string(reading.AppendJSONFloat(nil, f))
	}
	return all
}

func longestGap(win *twinWindow, times []int64) int64 {
	slices.Sort(times)
	last, best := win.start, int64(0)
	for _, t := range append(times, win.end) {
		last, best = t, max(best, t-last)
	}
	return best
}

func (w *twin) expected(win *twinWindow) int64 {
	if win.key.owner.def.Group != "" {
		return -1
	}
	for _, s := range w.sensors {
		if x := w.expectation(s); s.name == win.key.name && x.EveryMS > 0 {
			return win.key.owner.def.SizeMS / x.EveryMS
		}
	}
	return -1
}

// summary names the partitions by status, those furthest behind first.
func (f *twinFeature) summary(k *twinKey) string {
	parts := slices.Clone(k.parts)
	slices.SortFunc(parts, func(a, b *twinPart) int {
		return cmp.Or(cmp.Compare(a.wm, b.wm), strings.Compare(a.series.Input, b.series.Input), strings.Compare(a.series.Device, b.series.Device),
			strings.Compare(a.series.Asset, b.series.Asset), strings.Compare(a.series.Sensor, b.series.Sensor))
	})
	var names [3][]string
	for _, p := range parts {
		status := 0
		switch {
		case p.idle:
			status = 1
		case f.stalled(k, p):
			status = 2
		}
		name := p.series.Input
		switch f.def.Scope {
		case windowing.ScopeDevice:
			name += "/" + p.series.Device
		case windowing.ScopeSensor:
			name += "/" + p.series.Asset + "/" + p.series.Sensor
		}
		names[status] = append(names[status], name)
	}
	return fmt.Sprint(names, len(names[0]), len(names[1]), len(names[2]))
}

// spell writes the engine's emission as the twin does.
func spell(m *windowing.Emission) string {
	f, name := m.Feature.Name, [3]string{m.Asset, m.Sensor, m.Lifecycle}
	switch m.Kind {
	case windowing.EmitFeature:
		var values []string
		for _, v := range m.Values {
			values = append(values, string(v.Value.AppendJSON(nil)))
		}
		c, q, in := &m.Coverage, &m.Quality, &m.Inputs
		return fmt.Sprintf("feature %s %v %d rev %d %s %v %v unit %q coverage %d %d %d %d %d clock %v %d %v partial %v wm %d inputs %s",
			f, name, m.StartMS, m.Revision, m.Cause, values, [3]int64{q.Good, q.Uncertain, q.Bad}, m.Unit,
			c.Expected, c.Observed, c.LongestGapMS, c.CoveredMS, c.Certain, m.Clock.State, m.Clock.MaxBound, m.Clock.Flags,
			m.PartialStart, m.WatermarkMS,
			fmt.Sprint([3][]string{in.Active, in.Idle, in.Stalled}, in.ActiveCount, in.IdleCount, in.StalledCount))
	case windowing.EmitClosed:
		return fmt.Sprintf("closed %s %v %d %d wm %d %s", f, name, m.StartMS, m.Revision, m.WatermarkMS, m.Reason)
	case windowing.EmitLate:
		return fmt.Sprintf("late %s %v %d %s %s wm %d", f, name, m.StartMS, m.Reading.ID, m.Reason, m.WatermarkMS)
	case windowing.EmitDuplicate:
		return fmt.Sprintf("duplicate %s %s", m.Reading.Tag.Value().Sensor, m.Reading.ID) // of a conflict a few are not seen
	case windowing.EmitQuarantine:
		return "quarantine " + m.Reading.ID
	case windowing.EmitWatermark:
		return fmt.Sprintf("watermark %s %d", f, m.WatermarkMS)
	case windowing.EmitSilent:
		return fmt.Sprintf("silent %v last %d quiet %d clock %v", name, m.StartMS, m.QuietMS, m.Clock.State)
	case windowing.EmitResumed:
		return fmt.Sprintf("resumed %v last %d quiet %d clock %v", name, m.StartMS, m.QuietMS, m.Clock.State)
	}
	return fmt.Sprintf("kind %d", m.Kind)
}
