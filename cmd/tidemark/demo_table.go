package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// demoColumn is a column of the table.
type demoColumn struct {
	title string
	width int // with the space before it; negative is flush left
	rank  int // 1 goes last where the terminal is narrow
	cell  func(*demoRow) string
}

// demoColumns are the columns from the left. Those of rank 1 to 8 fill a terminal of
// 80.
var demoColumns = []demoColumn{
	{"MACHINE", -9, 1, func(r *demoRow) string { return r.machine.Asset }},
	{"SENSOR", -13, 11, func(r *demoRow) string { return r.machine.Sensor }},
	{"HABIT", -22, 8, func(r *demoRow) string { return r.machine.Habit }},
	{"STATUS", -12, 2, func(r *demoRow) string { return string(r.Kind) }},
	{"WINDOW UTC", -13, 3, (*demoRow).span},
	{"COUNT", 6, 4, func(r *demoRow) string { return strconv.FormatInt(r.Count, 10) }},
	{"REV", 4, 7, func(r *demoRow) string { return strconv.Itoa(r.Revision) }},
	{"MEAN", 8, 5, func(r *demoRow) string { return demoNumber(r.Mean) }},
	{"MIN", 8, 9, func(r *demoRow) string { return demoNumber(r.Min) }},
	{"MAX", 8, 10, func(r *demoRow) string { return demoNumber(r.Max) }},
	{"UNIT", -5, 6, func(r *demoRow) string { return r.Unit }},
}

// demoPartial explains the mark in the table.
const demoPartial = "* the gateway was not there when this window began"

func (r *demoRow) span() string {
	span := demoSpan(r.Start, r.End)
	if r.Partial {
		span += "*"
	}
	return span
}

// demoCells lays out the columns that width has room for.
func demoCells(width int, cell func(c *demoColumn) span) []span {
	ranked := slices.Clone(demoColumns)
	slices.SortFunc(ranked, func(a, b demoColumn) int { return a.rank - b.rank })
	last := 0 // rank of the last one that there is room for
	for _, c := range ranked {
		if width -= max(c.width, -c.width); width < 0 {
			break
		}
		last = c.rank
	}
	line := []span{}
	for i := range demoColumns {
		c := &demoColumns[i]
		if c.rank > last {
			continue
		}
		s := cell(c)
		if c.width < 0 {
			s.text = fmt.Sprintf(" %-*s", -c.width-1, s.text)
		} else {
			s.text = fmt.Sprintf(" %*s", c.width-1, s.text)
		}
		line = append(line, s)
	}
	return line
}

func demoHeader(width int) []span {
	return demoCells(width, func(c *demoColumn) span { return span{bold, c.title} })
}

// fresh is how long a row that changed stands out.
const fresh = 1500 * time.Millisecond

// line is the row on the screen; again leaves out the machine that stands above it.
func (r *demoRow) line(width int, now time.Time, again bool) []span {
	return demoCells(width, func(c *demoColumn) span {
		of := c.title == "MACHINE" || c.title == "SENSOR" || c.title == "HABIT"
		switch {
		case of && again:
			return span{}
		case of:
			return span{plain, c.cell(r)}
		case r.Kind == "" && c.title == "STATUS":
			return span{dim, "no result"}
		case r.Kind == "":
			return span{}
		case c.title == "STATUS":
			return span{demoStyles[r.Kind], c.cell(r)}
		case now.Sub(r.changed) < fresh:
			return span{bold, c.cell(r)}
		case r.Kind == demoClosed:
			return span{dim, c.cell(r)}
		}
		return span{plain, c.cell(r)}
	})
}

// tableLines are the header and the rows, and what marks in them mean.
func tableLines(rows []demoRow, width int, now time.Time) [][]span {
	lines := [][]span{demoHeader(width)}
	partial := false
	for i := range rows {
		again := i > 0 && rows[i].Series == rows[i-1].Series
		lines = append(lines, rows[i].line(width, now, again))
		partial = partial || rows[i].Partial
	}
	if partial {
		return append(lines, []span{{dim, " " + demoPartial}})
	}
	return append(lines, nil)
}
