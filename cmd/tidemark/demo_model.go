package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// demoStatus is what the demo shows of the gateway itself.
type demoStatus struct {
	ClockState string
	BoundNS    int64 // -1 if none
	Agreeing   int
	Servers    int
	Liars      []string // "127.0.0.1:123, +7.0 s"

	Received, Accepted, Duplicate, SetAside uint64
	Rejected                                uint64 // malformed or unmatched
	Pending                                 int64
	Conserved                               bool
}

// clockWords is the state of the clock in one line.
func (s *demoStatus) clockWords() string {
	if s.BoundNS < 0 {
		return s.ClockState + ": readings wait until the time servers agree"
	}
	words := fmt.Sprintf("%s within %.1f ms, %d of %d time servers agree", s.ClockState, float64(s.BoundNS)/1e6, s.Agreeing, s.Servers)
	if len(s.Liars) > 0 {
		words += "; lies: " + strings.Join(s.Liars, ", ")
	}
	return words
}

// sameClock reports whether there is nothing new to say of the clock.
func (s *demoStatus) sameClock(o *demoStatus) bool {
	return s.ClockState == o.ClockState && s.Agreeing == o.Agreeing && len(s.Liars) == len(o.Liars) && s.BoundNS < 0 == (o.BoundNS < 0)
}

// demoRow is a window in the table.
type demoRow struct {
	demoEvent
	changed time.Time
}

// demoModel is everything that the demo's screen is drawn from.
type demoModel struct {
	status demoStatus
	rows   map[string][]demoRow // by series; newest window first, at most demoDepth
	lane   []demoEvent          // newest last, at most demoLane
	counts map[demoKind]int
}

const (
	demoDepth = 2 // windows kept per series
	demoLane  = 40
)

func newDemoModel() *demoModel {
	return &demoModel{rows: map[string][]demoRow{}, counts: map[demoKind]int{}}
}

// apply takes in one event.
func (m *demoModel) apply(e demoEvent) {
	m.counts[e.Kind]++
	if !e.isWindow() {
		m.lane = append(m.lane, e)
		m.lane = m.lane[max(0, len(m.lane)-demoLane):]
		return
	}
	rows := m.rows[e.Series]
	for i := range rows {
		if r := &rows[i]; r.Start.Equal(e.Start) {
			if e.Kind == demoClosed { // carries no values: the last ones stand
				r.Kind, r.Revision, r.changed = e.Kind, e.Revision, e.At
			} else if e.Revision > r.Revision {
				*r = demoRow{e, e.At}
			}
			return
		}
	}
	if e.Kind == demoClosed {
		return // of a window that is no longer shown
	}
	rows = append(rows, demoRow{e, e.At})
	slices.SortFunc(rows, func(a, b demoRow) int { return b.Start.Compare(a.Start) })
	m.rows[e.Series] = rows[:min(len(rows), demoDepth)]
}

// table returns up to limit rows by series, newest window first. Where there is
// not enough room every series keeps its newest.
func (m *demoModel) table(limit int) []demoRow {
	var names []string
	for name := range m.rows {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(demoOrder(a), demoOrder(b)) })
	depth := demoDepth
	for depth > 1 && len(names)*depth > limit {
		depth--
	}
	var out []demoRow
	for _, name := range names {
		rows := m.rows[name]
		out = append(out, rows[:min(depth, len(rows))]...)
	}
	return out[:min(len(out), max(limit, 0))]
}

// demoOrder sorts machines by the number that their name ends in.
func demoOrder(series string) string {
	asset, _, _ := strings.Cut(series, "/")
	return asset[strings.LastIndexByte(asset, '-')+1:] + series
}

// summary says what there was, in a few lines.
func (m *demoModel) summary(ran time.Duration) []string {
	s, c := &m.status, m.counts
	if s.ClockState == "" {
		return []string{"It ended before the gateway could tell of itself."}
	}
	sums := "every reading is accounted for"
	if !s.Conserved {
		sums = "the sums do not add up: please report this"
	}
	return []string{
		fmt.Sprintf("%s: %s received = %d accepted + %d duplicates + %d set aside + %d waiting + %d unreadable; %s.",
			ran.Round(time.Second), count(int(s.Received), "reading"), s.Accepted, s.Duplicate, s.SetAside, s.Pending, s.Rejected, sums),
		fmt.Sprintf("%s, %s, %s closed; kept as evidence: %s, %d wrongly stamped.",
			count(c[demoProvisional], "first result"), count(c[demoCorrected], "correction"), count(c[demoClosed], "window"),
			count(c[demoLate], "late reading"), c[demoSetAside]),
	}
}
