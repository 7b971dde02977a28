package interop

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/gateway"
	"tidemark/test/process"
)

// TestFiveThousandNodes: a whole server's nodes at 1 Hz.
func TestFiveThousandNodes(t *testing.T) {
	begin(t)
	const nodes = 5000
	p := newPlant(t, "--counters", "1", "--many", strconv.Itoa(nodes))
	l := newLineWith(t, "clock: {trust: local}", p.endpoint, "security: none", `{under: /Objects/Many, match: "{device}/{sensor}", asset: many}`)
	began := time.Now()
	l.Start()
	l.awaits(60*time.Second, func(r *gateway.ReaderStatus) bool { return connected(r) && r.Monitored == nodes })
	made := time.Since(began)
	from, used := l.received(), l.cpu()
	began = time.Now()
	var readings uint64
	process.Eventually(t, 3*time.Minute, func() error { // 10 s where the server is not short of time
		if readings = l.received() - from; readings < 10*nodes {
			return fmt.Errorf("%d readings of %d nodes", readings, nodes)
		}
		return nil
	})
	cpu, took := l.cpu()-used, time.Since(began)
	t.Logf("%d nodes read after %.1f s; %.0f readings/s with %.1f %% of a core, %.1f µs each; %d MB resident at most",
		nodes, made.Seconds(), float64(readings)/took.Seconds(), 100*cpu.Seconds()/took.Seconds(), cpu.Seconds()*1e6/float64(readings), l.peakMB(t))
	if mb := l.peakMB(t); mb > 80 {
		t.Errorf("%d MB", mb)
	}
	l.stop()
}

func (l *line) received() uint64 {
	l.t.Helper()
	st, err := l.status()
	if err != nil {
		l.t.Fatal(err)
	}
	return st.Inputs[0].Counts.Received
}

// cpu is the processor time that the gateway has used.
func (s *service) cpu() time.Duration {
	s.T.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
	if err != nil {
		s.T.Fatal(err)
	}
	// Fields 14 and 15, counted behind the name, in ticks of 10 ms (proc(5)).
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			s.T.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
