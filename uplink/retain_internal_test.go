package uplink

import (
	"fmt"
	"testing"
)

// However many topics come and go, what is known of them is bounded, and those that
// still speak are among it.
func TestNewestIsBounded(t *testing.T) {
	n, most := newest{}, 0
	tell := func(topic string, start int64) bool {
		kept := n.retains(&Message{Topic: topic, window: span{start, start + 60_000}})
		most = max(most, len(n))
		return kept
	}
	const minutes = 3 * newestMax / 1000
	for minute := range int64(minutes) {
		for i := range 1000 {
			tell(fmt.Sprint("serial-", minute, "-", i), minute*60_000)
		}
		tell("live", minute*60_000)
		n.retains(&Message{Topic: "day", window: span{0, 86_400_000 * 30}})
	}
	if most > newestMax {
		t.Errorf("%d topics are known", most)
	}
	if tell("live", (minutes-2)*60_000) || n.retains(&Message{Topic: "day", window: span{-86_400_000, 0}}) {
		t.Error("a correction took the place of the newest window")
	}
	// Where all are alike some of them go.
	n = newest{}
	for i := range 2 * newestMax {
		tell(fmt.Sprint("s", i), 0)
	}
	if most > newestMax {
		t.Errorf("%d topics of one window are known", most)
	}
}
