package clock_test

import (
	"testing"
	"time"

	"tidemark/clock"
	"tidemark/reading"
)

// Readers take an Instant for every message.
func BenchmarkNow(b *testing.B) {
	c := clock.New(clock.Config{}, clock.Options{})
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}

func BenchmarkJudgeReading(b *testing.B) {
	c := clock.New(clock.Config{Trust: clock.TrustLocal}, clock.Options{})
	now := c.Now()
	r := reading.Reading{Tag: reading.MakeTag(reading.Series{Input: "in", Device: "d", Sensor: "s"}), Value: reading.FloatValue(1),
		Source: reading.SourceTime{NS: now.WallNS, Zoned: true, Unit: reading.UnitMillis}, ServerNS: reading.NoTime, IngestNS: now.WallNS}
	b.ReportAllocs()
	for b.Loop() {
		r.Source.NS += int64(time.Millisecond)
		r.IngestNS = r.Source.NS
		r.Stamp = reading.Stamp{Clock: now.Segment}
		c.JudgeReading(&r, clock.InputPolicy{})
	}
}
