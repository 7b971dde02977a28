package reading_test

import (
	"fmt"
	"testing"

	"tidemark/reading"
)

// shapes are what plants send; the size of a reading on disk depends on little
// else.
var shapes = []struct {
	name string
	n    int
	make func(i int) reading.Reading
}{
	{"steady_10000", 10_000, steady},    // each sensor ten times in the block
	{"steady_1000", 1000, steady},       // each sensor once
	{"small_20", 20, steady},            // a stingy in-flight window
	{"float64_10000", 10_000, noisy},    // full mantissas
	{"opcua_10000", 10_000, opcua},      // float32 in 100 ns with server times and codes
	{"identified_10000", 10_000, known}, // event ids and text times
}

func noisy(i int) reading.Reading {
	r := steady(i)
	r.Value = reading.FloatValue(noise(i, 4) * 17)
	return r
}

func opcua(i int) reading.Reading {
	r := steady(i)
	r.Value = reading.FloatValue(float64(float32(20 + noise(i, 4))))
	r.Source.NS += int64(noise(i, 5)*10_000) * 100
	r.ServerNS = r.Source.NS + int64(noise(i, 6)*20_000)*100
	r.Source.Unit = reading.UnitNone
	r.Stamp.EventNS, r.Stamp.WatermarkMS = r.Source.NS, reading.FloorMS(r.Source.NS)
	return r
}

func known(i int) reading.Reading {
	r := steady(i)
	r.ID = fmt.Sprintf("dev-%d/%d", i%100, 100_000+i/100)
	r.Source.Unit, r.Source.Raw = reading.UnitNone, string(reading.AppendJSONTime(nil, r.Source.NS))
	r.Source.Raw = r.Source.Raw[1 : len(r.Source.Raw)-1]
	return r
}

func batchOf(n int, f func(i int) reading.Reading) *reading.Batch {
	b := &reading.Batch{Seq: 1, GatewayMS: 1, WallNS: startNS, Clock: segment, Emit: true}
	for i := range n {
		b.Readings = append(b.Readings, f(i))
	}
	return b
}

func BenchmarkAppendBatch(b *testing.B) {
	for _, s := range shapes {
		b.Run(s.name, func(b *testing.B) {
			batch := batchOf(s.n, s.make)
			var block []byte
			b.ReportAllocs()
			for b.Loop() {
				block = reading.AppendBatch(block[:0], batch)
			}
			b.ReportMetric(float64(len(block))/float64(s.n), "B/reading")
			b.ReportMetric(float64(s.n*b.N)/b.Elapsed().Seconds(), "readings/s")
		})
	}
}

func BenchmarkDecodeBatch(b *testing.B) {
	for _, s := range shapes {
		b.Run(s.name, func(b *testing.B) {
			block := reading.AppendBatch(nil, batchOf(s.n, s.make))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := reading.DecodeBatch(block); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.n*b.N)/b.Elapsed().Seconds(), "readings/s")
		})
	}
}

func BenchmarkAppendReading(b *testing.B) {
	r := steady(7)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = reading.AppendReading(buf[:0], &r)
	}
	b.ReportMetric(float64(len(buf)), "B/reading")
}
