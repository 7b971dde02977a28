package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"tidemark/gateway"
	"tidemark/history"
)

func TestTags(t *testing.T) {
	p := newPlant(t)
	p.story()
	var got gateway.Tags
	if err := json.Unmarshal([]byte(p.ask("tags", "-c", p.file, "--json")), &got); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, tag := range got.Tags {
		lines = append(lines, fmt.Sprintf("%s %s/%s at %s %s: %d", tag.State, tag.Asset, tag.Sensor, tag.Address, tag.Path, tag.Readings))
	}
	want := `quarantined press-1/temp at line/press-1/d1 v: 7
never yard/weight at yard/scale weight: 0
good press-2/temp at line/press-2/d1 v: 2`
	if text := strings.Join(lines, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// A tail shows what is committed from the moment on at which it listens, with what
// became of it.
func TestTail(t *testing.T) {
	p := newPlant(t)
	p.say("press-1", "0", minute(0, 1), 1, "good") // so that the name is known
	p.received(1)
	out := &heard{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"tail", "-c", p.file, "--json", "press-1/temp"}, nil, out, io.Discard)
	}()
	// Nobody can tell when it listens, so readings come until one was shown.
	said := 0
	p.until("a first reading is shown", func() bool {
		said++
		p.say("press-1", fmt.Sprint("x", said), minute(0, 2), 1, "good")
		p.received(uint64(1 + said))
		return out.holds(`"sensor":"temp"`)
	})
	p.say("press-2", "y", minute(0, 2), 1, "good")
	p.say("press-1", "x1", minute(0, 2), 1, "good")
	p.say("press-1", "bad", minute(0, 3), 1, "bad")
	p.say("press-1", "when", "noon", 1, "good")
	p.until("the last is shown", func() bool { return out.holds("TS_UNPARSEABLE") })
	stop()
	if code := <-done; code != exitOK {
		t.Fatalf("exit %d", code)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var got []string
	for _, line := range lines[len(lines)-3:] {
		var r gateway.Tailed
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(r.ID, " ", r.Verdict, " ", r.Reason, " ", r.Quality))
	}
	if want := "[x1 duplicate  good bad accepted  bad when quarantined TS_UNPARSEABLE good]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUnknownSensorIsNamedWithItsNearest(t *testing.T) {
	p := newPlant(t)
	p.say("press-1", "0", minute(0, 1), 1, "good")
	p.received(1)
	_, errOut, code := p.try("tail", "-c", p.file, "yard/wieght")
	if want := "tidemark: there is no sensor yard/wieght; did you mean yard/weight?\n"; code != exitUsage || errOut != want {
		t.Errorf("exit %d, %q, want %q", code, errOut, want)
	}
	_, errOut, code = p.try("tail", "-c", p.file, "weight")
	if want := "names no sensor: write ASSET/SENSOR"; code != exitUsage || !strings.Contains(errOut, want) {
		t.Errorf("exit %d, %q, want %q in it", code, errOut, want)
	}
}

func tailed(sensor, value, source, ingest string, v history.Verdict, reason, quality string, flags ...string) *gateway.Tailed {
	return &gateway.Tailed{Reading: &history.Reading{
		Input: "vibration", Asset: "press-07", Sensor: sensor, Value: json.RawMessage(value), Unit: "Cel", SourceTime: source, IngestTime: ingest,
		Verdict: v, Reason: reason, Quality: quality, Flags: flags,
	}}
}

func TestTailForPeople(t *testing.T) {
	var out bytes.Buffer
	v := tailView{w: &out}
	for _, x := range []*gateway.Tailed{
		tailed("temp", "20.5", "2026-01-01T12:00:00.1Z", "2026-01-01T12:00:00.2Z", history.Accepted, "", "good"),
		tailed("state", `"run\u001b[2J"`, "", "2026-01-01T12:00:01Z", history.Accepted, "", "uncertain", "INGEST_USED"),
		{Dropped: 12},
		tailed("temp", "null", "2026-01-02T12:00:00Z", "2026-01-01T12:00:02Z", history.Quarantined, "FUTURE", "bad"),
	} {
		if err := v.show(x); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "tail.txt", out.String())
}

func TestTagsForPeople(t *testing.T) {
	age, old := int64(900), int64(7_200_000)
	good := tailed("temp", "20.5", "2026-01-01T12:00:00.1Z", "2026-01-01T12:00:00.2Z", history.Accepted, "", "good").Reading
	var out bytes.Buffer
	err := printTags(&out, &gateway.Tags{Gateway: "line-3", At: "2026-01-01T12:00:10.5Z", Unlisted: 1, Tags: []gateway.Tag{
		{Input: "kepware", Asset: "press-07", Sensor: "flow", Address: "ns=2;s=Line3.Flow", State: gateway.TagProblem, Why: "BadNodeIdUnknown: the server has no such node"},
		{Input: "mqtt", Asset: "press-07", Sensor: "temp", Lifecycle: "SN-1", Address: "line/press-07/d1", Path: "t", State: gateway.TagSilent, Why: "longer than its alarm_after", AgeMS: &old, Readings: 7, Last: good},
		{Input: "mqtt", Asset: "*", Sensor: "vibration", Address: "line/{asset}/d2", Path: "v", State: gateway.TagNever, Why: "no reading has come since the start"},
		{Input: "mqtt", Sensor: "temp", Address: "line/press-08/d1", Path: "t", State: gateway.TagGood, AgeMS: &age, Readings: 12345, Last: good},
	}})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tags.txt", out.String())
}
