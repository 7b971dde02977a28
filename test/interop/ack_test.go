package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/test/process"
)

// TestAcknowledgesAfterFsync watches the system calls of the gateway: between a
// message read from the broker and its PUBACK the store is synced (law 1).
func TestAcknowledgesAfterFsync(t *testing.T) {
	begin(t)
	w := newWorld(t)
	w.times.start(t)
	trace := filepath.Join(filepath.Dir(w.gateway.config), "strace.txt")
	w.gateway.Process = process.Prepare(t, filepath.Dir(trace), "strace", append([]string{
		"-D", "-f", "-s", "256", "-e", "trace=read,write,fsync,fdatasync", "-o", trace, // -D: the gateway itself is our child
	}, w.gateway.Args...)...)
	w.gateway.ready()
	device := newPublisher(t, w.in, "device")
	start := time.Now()
	const messages = 5
	for n := range messages {
		r := send{taken: time.Since(start), sensor: fmt.Sprintf("watched-%d", n), id: fmt.Sprint(n)}
		if err := device.send(t.Context(), start, r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(700 * time.Millisecond)
	}
	process.Eventually(t, 10*time.Second, w.gateway.conserved(messages, 0))
	w.gateway.stop()

	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	calls := strings.Split(string(data), "\n")
	for n := range messages {
		topic := fmt.Sprintf("watched-%d", n)
		came := slices.IndexFunc(calls, func(c string) bool { return strings.Contains(c, "read") && strings.Contains(c, topic) })
		if came < 0 {
			t.Fatalf("no read of %s in %d calls", topic, len(calls))
		}
		length := slices.IndexFunc(calls[came:], isPuback)
		if length < 0 {
			t.Errorf("%s was never acknowledged", topic)
			continue
		}
		if !slices.ContainsFunc(calls[came:came+length], synced) {
			t.Errorf("%s was acknowledged before it was on disk:\n%s", topic, strings.Join(calls[came:came+length+1], "\n"))
		}
	}
}

// isPuback reports whether a call writes a PUBACK: 0x40, two to four bytes.
func isPuback(call string) bool {
	return strings.Contains(call, `"@\2`) || strings.Contains(call, `"@\3`) || strings.Contains(call, `"@\4`)
}

// synced reports whether a call that syncs a file ends here, with success.
func synced(call string) bool {
	return strings.Contains(call, "sync") && strings.HasSuffix(call, "= 0")
}
