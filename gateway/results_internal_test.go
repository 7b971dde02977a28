package gateway

import (
	"fmt"
	"slices"
	"testing"

	"tidemark/configs"
	"tidemark/reading"
	"tidemark/windowing"
)

// The page shows a window from its first reading to its closing, and across reloads
// that keep its feature.
func TestResults(t *testing.T) {
	rs := newResults()
	cfg := &configs.Config{Features: []configs.Feature{{Name: "f"}, {Name: "g"}}}
	rs.begin(cfg, 7)
	mean := []windowing.NamedValue{{Name: "count", Value: reading.IntValue(2)}, {Name: "mean", Value: reading.FloatValue(1.5)}}
	about := func(kind windowing.EmissionKind, feature string, start int64, revision uint32) windowing.Emission {
		return windowing.Emission{Kind: kind, Feature: windowing.FeatureID{Name: feature}, Sensor: "s", StartMS: start, EndMS: start + 10, Revision: revision, Values: mean}
	}
	rs.stage([]windowing.Emission{
		about(windowing.EmitLate, "f", 0, 0), // nothing else is known of it
		about(windowing.EmitFeature, "f", 10, 1), about(windowing.EmitFeature, "f", 20, 1), about(windowing.EmitFeature, "f", 20, 2),
		about(windowing.EmitClosed, "f", 10, 1), about(windowing.EmitLate, "f", 10, 0), about(windowing.EmitFeature, "g", 0, 1),
	})
	rs.post()
	open := map[resultKey][]WindowResult{
		{feature: "f", sensor: "s"}: {{StartMS: 30, EndMS: 40, Status: "waiting"}},
		{feature: "f", sensor: "t"}: {{StartMS: 30, EndMS: 40, Status: "waiting"}},
	}
	list, _ := rs.list(open)
	if len(list) != 3 || list[1].Sensor != "t" || list[1].Windows[0].Status != "waiting" || list[2].Feature != "g" {
		t.Fatalf("%+v", list)
	}
	want := []WindowResult{
		{StartMS: 0, Status: "closed", Late: 1}, {StartMS: 10, Status: "closed", Revision: 1, Late: 1},
		{StartMS: 20, Status: "corrected", Revision: 2}, {StartMS: 30, Status: "waiting"},
	}
	for i, w := range list[0].Windows {
		if w.StartMS != want[i].StartMS || w.Status != want[i].Status || w.Revision != want[i].Revision || w.Late != want[i].Late {
			t.Errorf("%+v, want %+v", w, want[i])
		}
	}
	if list[0].Function != "mean" || string(list[0].Windows[2].Value) != "1.5" {
		t.Errorf("%+v", list[0])
	}

	rs.begin(&configs.Config{Features: cfg.Features[:1]}, 7)
	if list, _ := rs.list(nil); len(list) != 1 || list[0].Feature != "f" || len(list[0].Windows) != 3 {
		t.Errorf("after a reload: %+v", list)
	}
	rs.begin(cfg, 8)
	if list, _ := rs.list(nil); len(list) != 0 {
		t.Errorf("of another generation: %+v", list)
	}
}

// Keys that are no more make room for those that are.
func TestResultsMakeRoom(t *testing.T) {
	rs := newResults()
	rs.begin(&configs.Config{Features: []configs.Feature{{Name: "f"}}}, 7)
	tell := func(kind windowing.EmissionKind, lifecycle string, start int64) {
		rs.stage([]windowing.Emission{{Kind: kind, Feature: windowing.FeatureID{Name: "f"}, Lifecycle: lifecycle, Sensor: "s", StartMS: start, EndMS: start + 10, Revision: 1}})
		rs.post()
	}
	kept := func(lifecycle string) bool {
		list, _ := rs.list(nil)
		return slices.ContainsFunc(list, func(k KeyResults) bool { return k.Lifecycle == lifecycle })
	}
	for i := range resultKeys {
		tell(windowing.EmitFeature, fmt.Sprint(i), 0)
		if i > 0 {
			tell(windowing.EmitClosed, fmt.Sprint(i), 0)
		}
	}
	tell(windowing.EmitFeature, "soon", 10*resultWindows)
	if kept("soon") || !kept("1") {
		t.Error("a key that was heard of lately made room")
	}
	tell(windowing.EmitFeature, "later", 10*resultWindows+10)
	if !kept("later") || kept("1") {
		t.Error("a key that is no more made no room")
	}
	if !kept("0") {
		t.Error("a window that is open made room")
	}
	if _, more := rs.list(nil); more != 1 {
		t.Errorf("%d results had no room", more)
	}
}
