package windowing_test

import (
	"testing"

	"tidemark/reading"
	"tidemark/windowing"
)

// D3: what has come of windows that are not closed is known again, also when its group
// was trimmed for younger ones; in short lists and in long ones.
func TestOldGroupsAreRemembered(t *testing.T) {
	for name, stepMS := range map[string]int64{"two a second": 500, "twenty a second": 50} {
		t.Run(name, func(t *testing.T) {
			c := benchConfig("count")
			c.Features[0].AllowedLatenessMS = 600_000
			e, err := windowing.New(c)
			if err != nil {
				t.Fatal(err)
			}
			const begin, length = 1_700_000_100_000, 14 * 60_000 // of a window; three groups
			b := &reading.Batch{GatewayMS: begin + length, Emit: true}
			for ms := int64(0); ms < length; ms += stepMS {
				b.Readings = append(b.Readings, accepted(reading.Series{Input: "in", Sensor: "s"}, (begin+ms)*1e6, reading.FloatValue(1)))
			}
			for _, want := range []windowing.Outcome{windowing.OutcomeAccepted, windowing.OutcomeDuplicate} {
				for i, got := range e.Step(b).Outcomes {
					if got != want {
						t.Fatalf("reading %d of %d: outcome %v, want %v", i, len(b.Readings), got, want)
					}
				}
			}
		})
	}
}
