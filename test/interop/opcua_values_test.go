package interop

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"tidemark/history"
	"tidemark/test/process"
)

// TestOddValues has nodes of one server say what real ones do, each on its own, while
// the others go on, and then behave again.
func TestOddValues(t *testing.T) {
	begin(t)
	p := newPlant(t, "--counters", "1", "--every", "100", "--many", "10", "--many-every", "400")
	l := newLine(t, p.endpoint, everyValue, countersRule, `{under: /Objects/Many/d0, match: "{sensor}", asset: many}`)
	l.Start()
	l.counts(p)
	id := func(i int) string { return tag(fmt.Sprintf("Many.v%d", i)) }
	set := func(with map[string]any) func(node string) {
		return func(node string) {
			command := map[string]any{"do": "set", "node": node}
			for k, v := range with {
				command[k] = v
			}
			p.do(command, nil)
		}
	}
	const bad, uncertain, overflow, strange uint32 = 0x80890000, 0x40920000, 0x480, 0xC0
	cases := []struct {
		name string
		do   func(node string)
		is   func(r *history.Reading) bool
	}{
		{"bad, no value", set(map[string]any{"status": bad}), func(r *history.Reading) bool {
			return r.Quality == "bad" && r.QualityStatus == bad && string(r.Value) == "null" && r.Verdict == history.Accepted
		}},
		{"bad, stale value", set(map[string]any{"status": bad, "value": -7}), func(r *history.Reading) bool {
			return r.Quality == "bad" && string(r.Value) == "-7" && r.Verdict == history.Accepted
		}},
		{"uncertain", set(map[string]any{"status": uncertain, "value": -7}), func(r *history.Reading) bool {
			return r.Quality == "uncertain" && r.QualityStatus == uncertain && string(r.Value) == "-7"
		}},
		{"queue overflow", set(map[string]any{"status": overflow, "value": -7}), func(r *history.Reading) bool {
			return r.Quality == "good" && r.QualityStatus == overflow && string(r.Value) == "-7"
		}},
		{"bits that mean nothing", set(map[string]any{"status": strange, "value": -7}), func(r *history.Reading) bool {
			return r.Quality == "good" && r.QualityStatus == strange && string(r.Value) == "-7"
		}},
		// 1601 is null on the wire.
		{"no source time", set(map[string]any{"source": "1601", "value": -7}), serverTimeUsed},
		{"far future", set(map[string]any{"source": "2150-01-01T00:00:00Z", "value": -7}), quarantined("TS_SENTINEL")},
		{"near future", set(map[string]any{"source": time.Now().Add(time.Hour).Format(time.RFC3339), "value": -7}), quarantined("FUTURE")},
		{"frozen source time", func(node string) {
			p.do(map[string]any{"do": "freeze", "node": node, "source": time.Now().Format(time.RFC3339)}, nil)
		}, quarantined("FROZEN")},
	}
	for i, c := range cases {
		c.do(id(i))
	}
	tags := func() (map[string]*history.Reading, error) {
		list, err := l.tagList()
		if err != nil {
			return nil, err
		}
		lasts := map[string]*history.Reading{}
		for _, tag := range list.Tags {
			lasts[tag.Sensor] = tag.Last
		}
		return lasts, nil
	}
	process.Eventually(t, 30*time.Second, func() error {
		lasts, err := tags()
		for i, c := range cases {
			if r := lasts[fmt.Sprintf("v%d", i)]; r == nil || !c.is(r) {
				err = errors.Join(err, fmt.Errorf("%s: %+v", c.name, r))
			}
		}
		return err
	})
	for i := range cases {
		p.do(map[string]any{"do": "release", "node": id(i)}, nil)
	}
	process.Eventually(t, 30*time.Second, func() error {
		lasts, err := tags()
		for i, c := range cases {
			if r := lasts[fmt.Sprintf("v%d", i)]; r == nil || r.Quality != "good" || r.Verdict != history.Accepted || string(r.Value) == "-7" {
				err = errors.Join(err, fmt.Errorf("after %s: %+v", c.name, r))
			}
		}
		return err
	})
	led := l.finish(p)
	for _, sensor := range []string{"c0", "v9"} {
		if led.contiguous(sensor) > 0 {
			t.Errorf("%s, which did nothing odd, lost values", sensor)
		}
	}
	if len(led.gaps) != 1 || led.gaps[0].Reason != "overflow" || led.gaps[0].Place != id(3) {
		t.Errorf("gap records %+v, want one for the overflow", led.gaps)
	}
	now := time.Now().UnixMilli()
	for sensor, rs := range led.readings {
		for _, r := range rs {
			if w := r.Stamp.Watermark; w != nil && (r.Stamp.Disposition == "QUARANTINE" || *w > now) {
				t.Errorf("%s: a reading that moves the watermark to %d: %+v", sensor, *w, r)
			}
		}
	}
}

func serverTimeUsed(r *history.Reading) bool {
	return r.SourceTime == "" && slices.Contains(r.Flags, "SERVER_TS_USED") && r.Verdict == history.Accepted
}

func quarantined(reason string) func(r *history.Reading) bool {
	return func(r *history.Reading) bool {
		return r.Verdict == history.Quarantined && r.Reason == reason
	}
}
