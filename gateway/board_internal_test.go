package gateway

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing"
)

// A restart does not empty the list of tags: the last blocks tell.
func TestTagsOutliveARestart(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	b.trust()
	b.bring(b.clk.Now().WallNS, b.clk.Now().WallNS+5e6)
	b.end()
	b = start(t, store, "local")
	got, err := b.tags(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tags) != 1 || got.Tags[0].Sensor != "temp" || got.Tags[0].State != TagGood || got.Tags[0].Address != "t/a" || got.Tags[0].Readings != 0 {
		t.Errorf("after a restart: %+v", got.Tags)
	}
}

// Of more series than there is room for, readings are counted.
func TestBoardIsBounded(t *testing.T) {
	b := newBoard()
	rs := make([]reading.Reading, boardMax+10)
	for i := range rs {
		rs[i].Tag = reading.MakeTag(reading.Series{Input: "in", Sensor: fmt.Sprint(i)})
	}
	b.note(rs, make([]windowing.Outcome, len(rs)))
	if rows, extra := b.list(); len(rows) != boardMax || extra != 10 {
		t.Errorf("%d rows, %d readings beyond", len(rows), extra)
	}
}

// The worst state that holds is the one that is shown, and the worst come first.
func TestTagStates(t *testing.T) {
	at := func(ms int64) int64 { return ms * 1e6 }
	row := func(sensor string, quality reading.Level, v history.Verdict, ingestMS int64) posted {
		return posted{verdict: v, last: reading.Reading{
			Tag: reading.MakeTag(reading.Series{Input: "in", Sensor: sensor}), IngestNS: at(ingestMS), Quality: reading.Quality{Level: quality},
			Source: reading.SourceTime{NS: at(ingestMS)}, Stamp: reading.Stamp{Reason: reading.Future, EventNS: at(ingestMS)},
		}}
	}
	point := func(sensor, problem string) reading.Point {
		return reading.Point{Series: reading.Series{Input: "in", Sensor: sensor}, Problem: problem}
	}
	l := tagList{nowNS: at(100_000), points: []reading.Point{point("refused", "BadNotReadable"), point("gone", "no such node"), point("mute", "")}}
	for _, c := range []struct {
		row          posted
		every, alarm int64
		want         TagState
	}{
		{row("fine", reading.Good, history.Accepted, 99_000), 1000, 10_000, TagGood},
		{row("doubtful", reading.Uncertain, history.Accepted, 99_000), 0, 0, TagUncertain},
		{row("slow", reading.Good, history.Accepted, 96_000), 1000, 0, TagOverdue},
		{row("silent", reading.Bad, history.Accepted, 80_000), 1000, 10_000, TagSilent},
		{row("bad", reading.Bad, history.Accepted, 96_000), 1000, 10_000, TagBad},
		{row("future", reading.Good, history.Quarantined, 99_000), 0, 0, TagQuarantined},
		{row("waiting", reading.Good, history.Pending, 99_000), 0, 0, TagPending},
		{row("refused", reading.Good, history.Accepted, 10_000), 1000, 10_000, TagProblem},
	} {
		tag := l.row(&c.row)
		tag.quiet(c.every, c.alarm)
		if tag.State != c.want || (tag.State == TagGood) != (tag.Why == "") {
			t.Errorf("%s is %s because %q, want %s", tag.Sensor, tag.State, tag.Why, c.want)
		}
	}
	var never []string
	for _, tag := range l.never() {
		never = append(never, fmt.Sprint(tag.Sensor, " ", tag.State))
	}
	if fmt.Sprint(never) != "[gone problem mute never]" {
		t.Errorf("what never spoke: %v", never)
	}
	if a, b := (Tag{State: TagQuarantined}), (Tag{State: TagGood}); compareTags(a, b) >= 0 {
		t.Error("what is good comes before what is not")
	}
}
