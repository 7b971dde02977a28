package interop

import (
	"testing"
	"time"

	"tidemark/gateway"
	"tidemark/test/process"
)

// TestAsyncua reads a server of another make through a cut, a lost session and a
// restart. It keeps no history and ends a session with its connection, so the cut
// may cost values, which a gap record tells of.
func TestAsyncua(t *testing.T) {
	begin(t)
	p := newAsyncua(t)
	l := startCounters(t, p)
	p.do(map[string]any{"do": "cut"}, nil)
	l.counts(p)
	l.awaits(30*time.Second, connected)
	p.kill()
	l.awaits(30*time.Second, func(r *gateway.ReaderStatus) bool { return r.State == "waiting" })
	p.restart()
	l.awaits(60*time.Second, connected)
	restarted := time.Now()
	process.Eventually(t, 30*time.Second, func() error { return l.newer("c0", restarted) })
	led := l.finish(p)
	led.sound()
	if len(led.gaps) == 0 {
		t.Error("nothing tells of the restart")
	}
}
