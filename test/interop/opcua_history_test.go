package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/gateway"
	"tidemark/test/process"
)

// outageLength is how long the server's outages with and without history last: a few
// windows, or what TIDEMARK_OUTAGE says, such as 10m.
func outageLength(t *testing.T) time.Duration {
	t.Helper()
	said := os.Getenv("TIDEMARK_OUTAGE")
	if said == "" {
		return 20 * time.Second
	}
	d, err := time.ParseDuration(said)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// historyWindowMS is the windows' length, wide enough for a clock that a restart has
// not measured yet.
const historyWindowMS = 8000

// TestOutageWithHistory: what was measured while the gateway was away comes from the
// server's history into windows that wait for it: none is late, every window is
// complete.
func TestOutageWithHistory(t *testing.T) {
	for _, c := range []struct {
		name string
		lost bool // the subscription, while the gateway is away
	}{
		{"subscription kept", false},
		{"subscription lost", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin(t)
			p := newPlant(t, "--counters", "1", "--history-every", "50")
			times := newTimeServers(t, 3)
			times.start(t)
			l := newLineWith(t, historyFeature(times), p.endpoint, "security: none\nsampling: 0s\npublishing: 500ms",
				`{under: /Objects/History, match: "{sensor}", asset: history}`)
			l.Start()
			process.Eventually(t, 30*time.Second, l.clockIs("synchronized"))
			began := time.Now()
			process.Eventually(t, 30*time.Second, func() error { return l.newer("h0", began.Add(historyWindowMS*time.Millisecond)) })
			l.End(syscall.SIGKILL)
			if c.lost {
				p.do(map[string]any{"do": "closeSessions"}, nil)
			}
			time.Sleep(outageLength(t)) // more than two windows
			l.Start()
			back := time.Now()
			process.Eventually(t, 60*time.Second+outageLength(t), func() error { return l.newer("h0", back.Add(2*historyWindowMS*time.Millisecond)) })
			p.do(map[string]any{"do": "pause"}, nil)
			led := l.close()
			if missing := led.sound(); missing > 0 || len(led.gaps) > 0 {
				t.Errorf("%d stretches are missing, %d gap records", missing, len(led.gaps))
			}
			f := led.status.Features[0]
			if f.Late != 0 || f.Excluded != 0 {
				t.Errorf("%d readings came too late, %d have no certain time", f.Late, f.Excluded)
			}
			l.windowsComplete(led)
		})
	}
}

// TestOutageWithoutHistory: what the server's queues do not hold of an outage is a gap
// record, and what they hold is there.
func TestOutageWithoutHistory(t *testing.T) {
	begin(t)
	p := newPlant(t, "--counters", "1", "--every", "50")
	l := startCounters(t, p)
	p.away()
	l.awaits(20*time.Second, func(r *gateway.ReaderStatus) bool { return r.State == "waiting" })
	time.Sleep(outageLength(t))
	p.back()
	l.awaits(60*time.Second, connected)
	l.finish(p).sound()
}

func historyFeature(times *timeServers) string {
	return fmt.Sprintf(`clock: {servers: [%s], poll_min: 250ms, poll_max: 1s}
features:
  - {name: eight-seconds, window: 8s, out_of_orderness: %v, allowed_lateness: %v, idle_after: 1h, correct_every: 0s, flush_after: 0s, functions: [count]}`,
		strings.Join(times.addrs, ", "), order, lateness)
}

// windowsComplete checks each window that has a result against the readings that the
// journal has of its time; only the last two of a sensor may have none yet.
func (l *line) windowsComplete(led *ledger) {
	l.t.Helper()
	results := map[recordKey]record{}
	for _, m := range l.heard.heard() {
		var r record
		if err := json.Unmarshal(m.payload, &r); err != nil {
			l.t.Fatalf("%v: %s", err, m.payload)
		}
		key := recordKey{r.Sensor, r.WindowStart.UnixMilli()}
		if old, known := results[key]; r.Type == "feature" && (!known || r.newer(old)) {
			results[key] = r
		}
	}
	complete := 0
	for sensor := range led.readings {
		truth, last := map[int64]int64{}, int64(0)
		rs := led.inOrder(sensor)
		for _, r := range rs {
			if start := r.Source.UnixMilli() / historyWindowMS * historyWindowMS; !r.initial() {
				truth[start]++
				last = max(last, start)
			}
		}
		for start, want := range truth {
			r, known := results[recordKey{sensor, start}]
			switch {
			case known && r.Values.Count == want:
				complete++
			case known || start < last-historyWindowMS:
				l.t.Errorf("%s: the window at %v has %d readings of %d, revision %d", sensor, time.UnixMilli(start).UTC(), r.Values.Count, want, r.Revision)
			}
		}
	}
	l.t.Logf("%d windows are complete", complete)
	if complete < 2*5 {
		l.t.Error("the outage has two windows of five sensors at least")
	}
}
