package gateway

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tidemark/clock"
)

// supervisor is systemd's end: it returns what it was told since it was last asked.
func supervisor(t *testing.T) (told func(n int) []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func(n int) (list []string) {
		t.Helper()
		for len(list) < n {
			if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			message := make([]byte, 4096)
			n, err := conn.Read(message)
			if err != nil {
				t.Fatalf("after %q: %v", list, err)
			}
			list = append(list, string(message[:n]))
		}
		return list
	}
}

func healthy() *health {
	h := newHealth(zerolog.Nop())
	h.begin(clock.New(clock.Config{}, clock.Options{Log: zerolog.Nop()}))
	return h
}

// Only what the pipeline does feeds the watchdog: that other goroutines still run is
// no sign of life.
func TestWatchdogIsFedByProgressAlone(t *testing.T) {
	told := supervisor(t)
	t.Setenv("WATCHDOG_USEC", fmt.Sprint((30 * time.Millisecond).Microseconds()))
	h := healthy()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const alive, hung = 5, 20 // ticks of the watchdog
	ticks := 0
	n := &notifier{on: true, health: h, log: zerolog.Nop(), look: func() {
		switch ticks++; {
		case ticks <= alive:
			h.progress()
		case ticks == alive+hung:
			stop()
		}
	}}
	if err := n.watch(ctx); err != nil {
		t.Fatal(err)
	}
	n.stopping()
	got := told(1)
	for got[len(got)-1] != "STOPPING=1" {
		got = append(got, told(1)...)
	}
	fed := 0
	for _, m := range got {
		if m == "WATCHDOG=1" {
			fed++
		}
	}
	if fed != alive {
		t.Errorf("fed %d times by %d looks at the work: %q", fed, alive, got)
	}
	if !slices.ContainsFunc(got, func(m string) bool { return strings.HasPrefix(m, "STATUS=") }) {
		t.Errorf("the verdict was never told: %q", got)
	}
}

// systemd takes a reload for begun by the time on its own clock (sd_notify(3)).
func TestReloadingNamesItsTime(t *testing.T) {
	told := supervisor(t)
	n := &notifier{on: true, log: zerolog.Nop()}
	before := clock.Monotonic() / 1000
	n.reloading()
	n.ready()
	after := clock.Monotonic() / 1000
	got := told(2)
	var at int64
	if _, err := fmt.Sscanf(got[0], "RELOADING=1\nMONOTONIC_USEC=%d", &at); err != nil || at < before || at > after {
		t.Errorf("%q is not between %d and %d", got[0], before, after)
	}
	if got[1] != "READY=1" {
		t.Errorf("then %q", got[1])
	}
}
