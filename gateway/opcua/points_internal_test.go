package opcua

import (
	"fmt"
	"testing"

	"tidemark/reading"
)

// What is read, what the server refuses and what is not there stand in one list;
// nodes of which a value has parts stand once for each.
func TestTagsListWhatIsReadAndWhatIsNot(t *testing.T) {
	series := func(sensor string) reading.Series { return reading.Series{Input: "in", Asset: "press", Sensor: sensor} }
	r := &Reader{cfg: Config{Input: "in"}, unresolved: []problem{
		{place: "nsu=u;s=Gone", detail: "there is no such node"},
		{place: "nsu=u;s=Odd", detail: "its unit is not known", served: true},
	}}
	r.plan = []*monitored{
		{item: item{place: "nsu=u;s=Temp", series: series("temp"), unit: "Cel"}, watched: true},
		{item: item{place: "nsu=u;s=Flow", series: series("flow")}, failed: "the server does not watch it: BadNotReadable"},
		{item: item{place: "nsu=u;s=Pose", series: series("pose"), parts: []part{
			{path: "x", tags: reading.TagsOf(series("pose.x"), nil)}, {path: "y", tags: reading.TagsOf(series("pose.y"), nil)},
		}}, watched: true},
	}
	list := func() (got []string) {
		for _, p := range r.Tags() {
			got = append(got, fmt.Sprint(p.Asset, "/", p.Sensor, " ", p.Address, " ", p.Path, " ", p.Unit, " ", p.Problem))
		}
		return got
	}
	r.show()
	want := []string{
		"press/temp nsu=u;s=Temp  Cel ",
		"press/flow nsu=u;s=Flow   the server does not watch it: BadNotReadable",
		"press/pose.x nsu=u;s=Pose x  ", "press/pose.y nsu=u;s=Pose y  ",
		"/ nsu=u;s=Gone   there is no such node",
	}
	if got := list(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	r.plan[1].failed, r.plan[1].watched = "", true
	r.show()
	if got := list(); got[1] != "press/flow nsu=u;s=Flow   " {
		t.Errorf("after the server gave in: %q", got[1])
	}
}
