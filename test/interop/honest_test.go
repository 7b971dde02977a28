package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/test/process"
)

// stamped is a reading with the time that its device put on it.
type stamped struct {
	at    time.Duration // of sending, from the beginning
	stamp time.Time
	value int
}

// sendStamped publishes the readings of one sensor at their times.
func (p *publisher) sendStamped(device string, start time.Time, rs []stamped) {
	for i, r := range rs {
		time.Sleep(time.Until(start.Add(r.at)))
		payload := fmt.Appendf(nil, `{"ts":%d,"id":"%s-%d","v":%d}`, r.stamp.UnixMilli(), device, i, r.value)
		if _, err := p.client.Publish(p.t.Context(), &paho.Publish{Topic: "line/press-1/" + device + "/s", QoS: 1, Payload: payload}); err != nil {
			p.t.Errorf("%s: %v", device, err)
			return
		}
	}
}

// every makes n readings, so far apart.
func every(n int, gap time.Duration, stamp func(i int, at time.Duration) time.Time, value func(i int) int) (rs []stamped) {
	for i := range n {
		at := time.Duration(i) * gap
		rs = append(rs, stamped{at, stamp(i, at), value(i)})
	}
	return rs
}

// TestHonestWorkloads: what looks odd and is right is left alone, with every stream
// declared to be in order where its device promises that; only the readings of a PLC
// that was an hour ahead are kept out, until it is set back.
func TestHonestWorkloads(t *testing.T) {
	begin(t)
	counting := func(i int) int { return i }
	for name, ordered := range map[string]bool{"in order": true, "in no order": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.times.start(t)
			w.gateway.edit("  - name: line\n", fmt.Sprintf("  - name: line\n    timestamps: {ordered: %v}\n", ordered), "window: 4s", "window: 1m")
			w.gateway.ready()
			start := time.Now().Add(100 * time.Millisecond)
			workloads := map[string][]stamped{
				"backlog": every(3600, 2*time.Millisecond, func(i int, _ time.Duration) time.Time {
					return start.Add(time.Duration(i-3600) * time.Second)
				}, counting),
				"static": every(80, 100*time.Millisecond, func(int, time.Duration) time.Time { return start }, func(int) int { return 5 }),
				"coarse": every(80, 100*time.Millisecond, func(_ int, at time.Duration) time.Time { return start.Add(at).Truncate(time.Second) }, counting),
				// Summer time labelled as winter time; set back after three seconds.
				"plc": every(80, 100*time.Millisecond, func(i int, at time.Duration) time.Time {
					if i < 30 {
						return start.Add(at + time.Hour)
					}
					return start.Add(at)
				}, counting),
			}
			if !ordered {
				dice := rand.New(rand.NewPCG(1, 2))
				workloads["disorder"] = every(400, 20*time.Millisecond, func(_ int, at time.Duration) time.Time {
					return start.Add(at - time.Duration(dice.Int64N(int64(15*time.Second))))
				}, counting)
			}
			sent := 0
			var sending sync.WaitGroup
			for device, rs := range workloads {
				sent += len(rs)
				p := newPublisher(t, w.in, device)
				sending.Go(func() { p.sendStamped(device, start, rs) })
			}
			sending.Wait()
			const wrong = 30
			process.Eventually(t, 20*time.Second, func() error {
				st, err := w.gateway.status()
				if err != nil {
					return err
				}
				in := st.Inputs[0]
				if c := in.Counts; c.Received != uint64(sent) || c.Quarantined != wrong || c.Accepted != uint64(sent-wrong) || !st.Conserved {
					return fmt.Errorf("%+v, for %v, want %d of %d accepted", c, in.Quarantine, sent-wrong, sent)
				}
				return nil
			})
			w.gateway.stop()
		})
	}
}

// edit changes the configuration before the start: pairs of what is there and what
// takes its place.
func (s *service) edit(pairs ...string) {
	s.T.Helper()
	text, err := os.ReadFile(s.config)
	if err != nil {
		s.T.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(string(text), pairs[i]) {
			s.T.Fatalf("the configuration has no %q", pairs[i])
		}
		text = []byte(strings.Replace(string(text), pairs[i], pairs[i+1], 1))
	}
	process.Write(s.T, s.config, string(text))
}
