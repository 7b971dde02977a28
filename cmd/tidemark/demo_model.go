package main

import (
	"fmt"
	"slices"
	"time"

	"tidemark/gateway/sim"
)

// demoRow is a window in the table.
type demoRow struct {
	demoEvent
	machine sim.Machine
	changed time.Time
}

// demoModel is everything that the demo's screen is drawn from.
type demoModel struct {
	cast   []sim.Machine // in the order of the table
	status demoStatus
	rows   map[string][]demoRow // by series; newest window first, at most demoKept
	lane   []demoEvent          // newest last, at most demoLane
	counts map[demoKind]int
}

const (
	demoDepth = 2 // windows shown of a series
	demoKept  = 6 // and remembered, so that corrections know what they correct
	demoLane  = 40
)

func newDemoModel() *demoModel {
	return &demoModel{cast: append(sim.Cast(), sim.Kiln()), rows: map[string][]demoRow{}, counts: map[demoKind]int{}}
}

// apply takes in one event, and adds to a correction what it corrects.
func (m *demoModel) apply(e *demoEvent) {
	m.counts[e.Kind]++
	if !e.isWindow() {
		m.note(*e)
	} else if m.window(e) && e.Kind == demoCorrected {
		m.note(*e)
	}
}

// note adds to what happened lately; what is alike moves to its end.
func (m *demoModel) note(e demoEvent) {
	e.Times = 1
	alike := func(o demoEvent) bool {
		return e.Fold != "" && o.Fold == e.Fold && o.Kind == e.Kind && o.Series == e.Series
	}
	if i := slices.IndexFunc(m.lane, alike); i >= 0 {
		e.Times += m.lane[i].Times
		m.lane = slices.Delete(m.lane, i, i+1)
	}
	m.lane = append(m.lane, e)
	m.lane = m.lane[max(0, len(m.lane)-demoLane):]
}

// window takes in a result or a closing, and reports whether it is news.
func (m *demoModel) window(e *demoEvent) bool {
	rows := m.rows[e.Series]
	for i := range rows {
		r := &rows[i]
		switch {
		case !r.Start.Equal(e.Start):
			continue
		case e.Kind == demoClosed: // carries no values: the last ones stand
			r.Kind, r.Revision, r.changed = e.Kind, e.Revision, e.At
		case e.Revision > r.Revision:
			e.Was = &demoRevision{r.Count, r.Mean}
			r.demoEvent, r.changed = *e, e.At
		default:
			return false
		}
		return true
	}
	if e.Kind == demoClosed {
		return false // of a window that is forgotten
	}
	rows = append(rows, demoRow{demoEvent: *e, machine: m.machine(e.asset()), changed: e.At})
	slices.SortFunc(rows, func(a, b demoRow) int { return b.Start.Compare(a.Start) })
	m.rows[e.Series] = rows[:min(len(rows), demoKept)]
	return true
}

func (m *demoModel) machine(asset string) sim.Machine {
	for _, c := range m.cast {
		if c.Asset == asset {
			return c
		}
	}
	return sim.Machine{Asset: asset}
}

// table returns up to limit rows, one machine after the other and the newest window
// first. Where there is not enough room every machine keeps its newest. A machine
// without a window has a row without one.
func (m *demoModel) table(limit int) []demoRow {
	var groups [][]demoRow
	for _, c := range m.cast {
		rows := m.rows[c.Asset+"/"+c.Sensor]
		if len(rows) == 0 {
			rows = []demoRow{{machine: c, demoEvent: demoEvent{Series: c.Asset + "/" + c.Sensor}}}
		}
		groups = append(groups, rows)
	}
	depth := demoDepth
	for depth > 1 && len(groups)*depth > limit {
		depth--
	}
	var out []demoRow
	for _, rows := range groups {
		out = append(out, rows[:min(depth, len(rows))]...)
	}
	return out[:min(len(out), max(limit, 0))]
}

// summary says what there was, in a few lines.
func (m *demoModel) summary(ran time.Duration) []string {
	s, c := &m.status, m.counts
	if s.ClockState == "" {
		return []string{"It ended before the gateway could tell of itself."}
	}
	verdict := "every reading is accounted for"
	if !s.Conserved {
		verdict = "the sums do not add up: please report this"
	}
	return []string{
		fmt.Sprintf("%s: readings %s; %s.", ran.Round(time.Second), s.sums(), verdict),
		fmt.Sprintf("%s, %s, %s closed; %s kept as evidence.",
			count(c[demoProvisional], "first result"), count(c[demoCorrected], "correction"), count(c[demoClosed], "window"),
			count(s.Late, "late reading")),
	}
}
