package reading_test

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"tidemark/reading"
)

// Generators for everything that a block holds. They draw from small pools and
// from extremes alike, so that readings share lines and break every prediction.

func pick[T any](pool []T, wild *rapid.Generator[T]) *rapid.Generator[T] {
	return rapid.OneOf(rapid.SampledFrom(pool), rapid.SampledFrom(pool), wild)
}

func names() *rapid.Generator[string] {
	return pick([]string{"", "press-07", "press-08", "bearing-temp"}, rapid.OneOf(rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })))
}

func times() *rapid.Generator[int64] {
	base := time.Date(2026, 1, 1, 12, 0, 10, 0, time.UTC).UnixNano()
	return rapid.OneOf(
		rapid.Map(rapid.Int64Range(-1e5, 1e5), func(ms int64) int64 { return base + ms*1e6 }),
		rapid.Map(rapid.Int64Range(-1e9, 1e9), func(ns int64) int64 { return base + ns*100 }),
		rapid.SampledFrom([]int64{reading.NoTime, 0, -1, -1e6, math.MaxInt64, math.MinInt64 + 1}),
		rapid.Int64())
}

func values() *rapid.Generator[reading.Value] {
	return rapid.OneOf(
		rapid.Just(reading.Value{}),
		rapid.Map(rapid.Bool(), reading.BoolValue),
		rapid.Map(pick([]int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1<<53 + 1}, rapid.Int64()), reading.IntValue),
		rapid.Map(rapid.Uint64Min(1<<63), reading.UintValue),
		floats(),
		rapid.Map(names(), reading.TextValue))
}

func floats() *rapid.Generator[reading.Value] {
	return rapid.Map(rapid.OneOf(
		rapid.Map(rapid.Int64Range(-1e7, 1e7), func(m int64) float64 { return float64(m) / 1e3 }),
		rapid.Map(rapid.Int32(), func(m int32) float64 { return float64(float32(m) / 1e2) }),
		rapid.Map(rapid.Float32(), func(f float32) float64 { return float64(f) }),
		rapid.SampledFrom([]float64{0, 0.1, 1e9 + 1e-3, -1e300, 5e-324, math.MaxFloat64, 1 << 50, 1<<50 + 0.5}),
		rapid.Float64()), reading.FloatValue)
}

func series() *rapid.Generator[reading.Tag] {
	return rapid.Custom(func(t *rapid.T) reading.Tag {
		return reading.MakeTag(reading.Series{
			Input: names().Draw(t, "input"), Asset: names().Draw(t, "asset"), Device: names().Draw(t, "device"),
			Lifecycle: names().Draw(t, "lifecycle"), Sensor: names().Draw(t, "sensor"),
		})
	})
}

func clockSegments() *rapid.Generator[*reading.ClockSegment] {
	steady := &reading.ClockSegment{ID: 7, Epoch: 1, Boot: 1 << 63, State: reading.ClockSynchronized,
		Method: reading.MethodNTP, Traceable: true, E0NS: 4.1e6, RhoPPB: 50_000, StartBootNS: 1e12, StartGatewayMS: 99, Servers: 4}
	return pick([]*reading.ClockSegment{nil, steady}, rapid.Custom(func(t *rapid.T) *reading.ClockSegment {
		return &reading.ClockSegment{
			ID: rapid.Uint64().Draw(t, "id"), Epoch: rapid.Uint32().Draw(t, "epoch"), Boot: rapid.Uint64().Draw(t, "boot"),
			State: reading.ClockState(rapid.Byte().Draw(t, "state")), Method: reading.ClockMethod(rapid.Byte().Draw(t, "method")),
			Traceable: rapid.Bool().Draw(t, "traceable"), E0NS: rapid.Int64().Draw(t, "e0"), RhoPPB: rapid.Int64().Draw(t, "rho"),
			StartBootNS: rapid.Int64().Draw(t, "start"), StartGatewayMS: rapid.Int64().Draw(t, "gateway"),
			Servers: rapid.Byte().Draw(t, "servers"), WallMinusBootNS: rapid.Int64().Draw(t, "wall"),
		}
	}))
}

func sourceSegments() *rapid.Generator[*reading.SourceSegment] {
	steady := &reading.SourceSegment{ID: 3, LoNS: -2e6, HiNS: 998e6}
	return pick([]*reading.SourceSegment{nil, steady}, rapid.Custom(func(t *rapid.T) *reading.SourceSegment {
		return &reading.SourceSegment{
			ID: rapid.Uint64().Draw(t, "id"), LoNS: rapid.Int64().Draw(t, "lo"), HiNS: rapid.Int64().Draw(t, "hi"),
			Verdict: reading.SourceVerdict(rapid.Byte().Draw(t, "verdict")), ZoneMin: rapid.Int16().Draw(t, "zone"),
		}
	}))
}

func sourceTimes() *rapid.Generator[reading.SourceTime] {
	return rapid.Custom(func(t *rapid.T) reading.SourceTime {
		s := reading.SourceTime{
			NS: times().Draw(t, "ns"), Fault: reading.TimeFault(rapid.ByteMax(3).Draw(t, "fault")),
			Zoned: rapid.Bool().Draw(t, "zoned"), Unit: reading.TimeUnit(rapid.ByteMax(5).Draw(t, "unit")),
		}
		s.Raw = rapid.OneOf(rapid.Just(""), names(),
			rapid.SampledFrom([]string{"2026-01-01T12:00:10Z", "2026-01-01T12:00:10.2Z", time.Unix(0, s.NS).UTC().Format(time.RFC3339Nano)}),
		).Draw(t, "raw")
		return s
	})
}

func stamps(r *reading.Reading) *rapid.Generator[reading.Stamp] {
	return rapid.Custom(func(t *rapid.T) reading.Stamp {
		s := reading.Stamp{
			Disposition: reading.Disposition(rapid.ByteMax(5).Draw(t, "disposition")),
			Reason:      reading.Reason(rapid.Byte().Draw(t, "reason")), Basis: reading.Basis(rapid.ByteMax(4).Draw(t, "basis")),
			Policy: reading.Policy(rapid.ByteMax(7).Draw(t, "policy")), Flags: reading.Flags(rapid.Uint16().Draw(t, "flags")),
			EventBound: reading.Bound(rapid.Byte().Draw(t, "event bound")), IngestBound: reading.Bound(rapid.Byte().Draw(t, "ingest bound")),
			TimeQuality: rapid.Byte().Draw(t, "time quality"), Clock: clockSegments().Draw(t, "clock"), Source: sourceSegments().Draw(t, "source"),
		}
		s.EventNS = pick([]int64{reading.NoTime, r.Source.NS, r.ServerNS, r.IngestNS}, times()).Draw(t, "event")
		s.WatermarkMS = pick([]int64{reading.NoTime, reading.FloorMS(s.EventNS)}, times()).Draw(t, "watermark")
		return s
	})
}

// readings draws anything that the type can hold.
func readings() *rapid.Generator[reading.Reading] {
	return rapid.Custom(func(t *rapid.T) reading.Reading {
		r := reading.Reading{
			Tag: series().Draw(t, "tag"), Value: values().Draw(t, "value"), Unit: names().Draw(t, "unit"),
			Quality: reading.Quality{Level: reading.Level(rapid.ByteMax(3).Draw(t, "level")), Status: rapid.Uint32().Draw(t, "status")},
			ID:      names().Draw(t, "id"), Seq: rapid.Uint64().Draw(t, "seq"), HasSeq: rapid.Bool().Draw(t, "has seq"),
			Source: sourceTimes().Draw(t, "source time"), ServerNS: times().Draw(t, "server"), IngestNS: times().Draw(t, "ingest"),
			Delivery: reading.Delivery(rapid.Byte().Draw(t, "delivery")),
		}
		r.Stamp = stamps(&r).Draw(t, "stamp")
		return r
	})
}

// runs draws readings of few lines that differ in their columns only.
func runs() *rapid.Generator[[]reading.Reading] {
	return rapid.Custom(func(t *rapid.T) []reading.Reading {
		lines := rapid.SliceOfN(readings(), 1, 3).Draw(t, "lines")
		value := rapid.SampledFrom([]*rapid.Generator[reading.Value]{values(), floats()}).Draw(t, "values")
		rs := make([]reading.Reading, rapid.IntRange(1, 40).Draw(t, "n"))
		for i := range rs {
			rs[i] = lines[rapid.IntRange(0, len(lines)-1).Draw(t, "line")]
			rs[i].Value = value.Draw(t, "value")
			rs[i].IngestNS = times().Draw(t, "ingest")
			rs[i].Source.NS = times().Draw(t, "source")
			rs[i].Seq += uint64(i)
		}
		return rs
	})
}

func marks() *rapid.Generator[reading.Mark] {
	return rapid.Custom(func(t *rapid.T) reading.Mark {
		return reading.Mark{
			Kind: reading.MarkKind(rapid.Byte().Draw(t, "kind")), At: rapid.Int().Draw(t, "at"),
			Input: names().Draw(t, "input"), Device: names().Draw(t, "device"),
			Asset: names().Draw(t, "asset"), Sensor: names().Draw(t, "sensor"), TimeMS: times().Draw(t, "time"),
		}
	})
}

func batches() *rapid.Generator[*reading.Batch] {
	return rapid.Custom(func(t *rapid.T) *reading.Batch {
		b := &reading.Batch{
			Seq: rapid.Uint64().Draw(t, "seq"), GatewayMS: times().Draw(t, "gateway"), WallNS: times().Draw(t, "wall"),
			Clock:    clockSegments().Draw(t, "clock"),
			Readings: rapid.OneOf(rapid.SliceOfN(readings(), 0, 6), runs()).Draw(t, "readings"),
			Marks:    rapid.SliceOfN(marks(), 0, 4).Draw(t, "marks"), Emit: rapid.Bool().Draw(t, "emit"),
		}
		if rapid.Bool().Draw(t, "configures") {
			b.Config = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "config")...)
		}
		return b
	})
}
