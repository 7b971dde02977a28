package gateway

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
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
	got, _, err := b.tags(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tags) != 1 || got.Tags[0].Sensor != "temp" || got.Tags[0].State != TagGood || got.Tags[0].Address != "t/a" || got.Tags[0].Readings != 0 {
		t.Errorf("after a restart: %+v", got.Tags)
	}
}

// A reload empties nothing but what its inputs no longer read.
func TestTagsOutliveAReload(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	b.trust()
	b.bring(b.clk.Now().WallNS)
	b.end()
	b.gateway.board.note([]reading.Reading{
		{Tag: reading.MakeTag(reading.Series{Input: "in", Asset: "quiet"})},
		{Tag: reading.MakeTag(reading.Series{Input: "gone", Asset: "a"})},
	}, make([]windowing.Outcome, 2))
	s, err := b.gateway.open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.store.Close()
	defer s.socket.ln.Close()
	counts := map[string]uint64{}
	s.pipe.board.each(func(p *posted) { counts[p.last.Tag.Value().Asset] = p.count })
	if want := map[string]uint64{"a": 1, "quiet": 1}; !maps.Equal(counts, want) {
		t.Errorf("after a reload readings %v, want %v", counts, want)
	}
}

// Parts of a value count for its node before the reader has seen that it has parts.
func TestTagsOfParts(t *testing.T) {
	series := func(sensor string) reading.Series { return reading.Series{Input: "in", Asset: "press", Sensor: sensor} }
	l := newTagList(0, []reading.Point{{Series: series("force"), Address: "ns=2;s=force"}}, windowing.Config{}, 0)
	l.spoken(&posted{last: reading.Reading{Tag: reading.MakeTag(series("force[1].x"))}})
	l.silent()
	if got := l.tags(); len(got) != 1 || got[0].Sensor != "force[1].x" || got[0].Address != "ns=2;s=force" {
		t.Errorf("tags of a value in parts: %+v", got)
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
	rows := 0
	if extra := b.each(func(*posted) { rows++ }); rows != boardMax || extra != 10 {
		t.Errorf("%d rows, %d readings beyond", rows, extra)
	}
}

// What several open points may have brought is said to come from none of them.
func TestTagsOfSeveralPoints(t *testing.T) {
	point := func(sensor, address string) reading.Point {
		return reading.Point{Series: reading.Series{Input: "in", Asset: reading.AnyName, Device: reading.AnyName, Sensor: sensor}, Address: address}
	}
	points := []reading.Point{point(reading.AnyName, "one"), point("heat", "two"), point("mute", "three")}
	l := newTagList(0, points, windowing.Config{}, 0)
	for _, sensor := range []string{"speed", "heat"} {
		l.spoken(&posted{last: reading.Reading{Tag: reading.MakeTag(reading.Series{Input: "in", Asset: "press", Sensor: sensor})}})
	}
	l.silent()
	got := map[string]string{}
	for _, tag := range l.tags() {
		got[tag.Sensor] = tag.Address
	}
	if want := map[string]string{"speed": "one", "heat": "", "mute": "three"}; !maps.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
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
	points := []reading.Point{point("refused", "BadNotReadable"), point("gone", "no such node"), point("mute", "")}
	var said []posted
	var expected windowing.Config
	want := []string{"gone problem", "refused problem", "away silent", "silent silent", "future quarantined", "mute never", "bad bad", "slow overdue", "waiting pending", "doubtful uncertain", "fine good"}
	for _, c := range []struct {
		row          posted
		every, alarm int64
	}{
		{row("fine", reading.Good, history.Accepted, 99_000), 1000, 10_000},
		{row("doubtful", reading.Uncertain, history.Accepted, 99_000), 0, 0},
		{row("slow", reading.Good, history.Accepted, 96_000), 1000, 0},
		{row("silent", reading.Bad, history.Accepted, 80_000), 1000, 10_000},
		{row("bad", reading.Bad, history.Accepted, 96_000), 1000, 10_000},
		{row("future", reading.Good, history.Quarantined, 99_000), 0, 0},
		{row("waiting", reading.Good, history.Pending, 99_000), 0, 0},
		{row("refused", reading.Good, history.Accepted, 10_000), 1000, 10_000},
	} {
		said = append(said, c.row)
		expected.Expectations = append(expected.Expectations, windowing.Expectation{
			Select: windowing.Selector{Sensors: []string{c.row.last.Tag.Value().Sensor}}, EveryMS: c.every, AlarmAfterMS: c.alarm,
		})
	}
	for _, most := range []int{0, 1, 4, 10, 11, 20} {
		l := newTagList(at(100_000), points, expected, most)
		l.quietMS = map[reading.Series]int64{ // by the engine, which remembers more than the board
			{Input: "in", Sensor: "away"}: 7_200_000, {Input: "in", Sensor: "silent"}: 20_000,
		}
		for i := range said {
			l.spoken(&said[i])
		}
		l.silent()
		var got []string
		for _, tag := range l.tags() {
			got = append(got, fmt.Sprint(tag.Sensor, " ", tag.State))
			if (tag.State == TagGood) != (tag.Why == "") {
				t.Errorf("%s is %s because %q", tag.Sensor, tag.State, tag.Why)
			}
			if tag.Sensor == "away" && (tag.AgeMS == nil || *tag.AgeMS != 7_200_000) {
				t.Errorf("%+v", tag)
			}
		}
		if most == 0 || most > len(want) {
			most = len(want)
		}
		if !slices.Equal(got, want[:most]) || l.states[TagProblem] != 2 || l.states[TagGood] != 1 {
			t.Errorf("the worst %d are %q, want %q; %v", most, got, want[:most], l.states)
		}
	}
}
