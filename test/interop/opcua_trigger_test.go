package interop

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/test/process"
)

// TestTriggers: what a server sends of one course of events depends on the trigger.
func TestTriggers(t *testing.T) {
	begin(t)
	p := newPlant(t, "--counters", "1", "--every", "100")
	nodes := map[string]string{
		"status": "Line3.press-07.setpoint", "status_value": "Line3.press-08.setpoint", "status_value_timestamp": "Line3.press-08.flow",
	}
	l := newLine(t, p.endpoint, everyValue, "tags: tags.csv", "tags: steady.csv\n          trigger: status_value_timestamp")
	process.Write(t, l.beside("tags.csv"), "node,asset,sensor,trigger\n"+tag("Counters.c0")+",a,c0,\n"+
		tag(nodes["status"])+",a,status,status\n"+tag(nodes["status_value"])+",a,status_value,\n")
	process.Write(t, l.beside("steady.csv"), "node,asset,sensor\n"+tag(nodes["status_value_timestamp"])+",a,status_value_timestamp\n")
	set := func(value float64, status uint32) {
		at := time.Now().UTC().Format(time.RFC3339Nano)
		for _, node := range nodes {
			p.do(map[string]any{"do": "set", "node": tag(node), "value": value, "status": status, "source": at}, nil)
		}
		time.Sleep(20 * time.Millisecond) // the server has source times in milliseconds
	}
	const bad uint32 = 0x80890000
	set(1, 0)
	l.Start()
	l.counts(p)
	set(1, 0)   // measured again
	set(2, 0)   // changed
	set(2, bad) // no longer to be trusted
	l.counts(p)
	led := l.finish(p)
	for sensor, want := range map[string][]string{
		"status": {"2.0 bad"}, "status_value": {"2.0", "2.0 bad"}, "status_value_timestamp": {"1.0", "2.0", "2.0 bad"},
	} {
		var got []string
		for _, r := range led.readings[sensor] {
			if !r.initial() {
				got = append(got, strings.TrimSpace(string(r.Value)+" "+r.Quality))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s sent %q, want %q", sensor, got, want)
		}
	}
}
