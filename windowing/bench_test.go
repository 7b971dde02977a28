package windowing_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"tidemark/reading"
	"tidemark/windowing"
)

func benchConfig(functions ...string) windowing.Config {
	return windowing.Config{FloorMS: reading.NoTime, LateIdentityMS: 7 * 86_400_000, Features: []windowing.Feature{{
		ID: windowing.FeatureID{Name: "f", Version: 1}, SizeMS: 300_000, OutOfOrdernessMS: 20_000, AllowedLatenessMS: 120_000,
		IdleAfterMS: 60_000, CorrectEveryMS: 10_000, Functions: functions,
	}}}
}

// load is one batch over and over, the times moved on: each sensor once a second,
// in the order of time.
type load struct {
	batch  reading.Batch
	stepMS int64
	shift  []int64 // of a reading that is late in every other batch
}

func newLoad(sensors int) *load {
	ticks := max(1, 1000/sensors)
	l := &load{stepMS: int64(ticks) * 1000, batch: reading.Batch{Emit: true, GatewayMS: 1_700_000_000_000}}
	for n := range sensors * ticks {
		i := n % sensors
		ms := 1_700_000_000_000 + int64(n/sensors)*1000 + int64(i)*1000/int64(sensors)
		r := accepted(reading.Series{Input: "bench", Asset: fmt.Sprint("m", i/10), Sensor: fmt.Sprint("s", i)}, ms*1e6,
			reading.FloatValue(20.5+float64(n%97)*0.1))
		r.Stamp.EventBound = 40
		l.batch.Readings = append(l.batch.Readings, r)
	}
	l.shift = make([]int64, len(l.batch.Readings))
	return l
}

// delay makes five percent of the readings 30 s to 120 s late.
func (l *load) delay() {
	for i := range l.shift {
		if i%20 == 7 {
			l.shift[i] = 30_000 + int64(i)*104_729%90_000
			r := &l.batch.Readings[i]
			r.Source.NS -= l.shift[i] * 1e6
			r.Stamp.EventNS = r.Source.NS
			r.Stamp.WatermarkMS -= l.shift[i]
		}
	}
}

func (l *load) next() *reading.Batch {
	for i := range l.batch.Readings {
		r := &l.batch.Readings[i]
		r.Source.NS += l.stepMS * 1e6
		r.Stamp.EventNS += l.stepMS * 1e6
		r.Stamp.WatermarkMS += l.stepMS
	}
	l.batch.GatewayMS += l.stepMS
	return &l.batch
}

func benchSteps(b *testing.B, c windowing.Config, l *load) {
	e, err := windowing.New(c)
	if err != nil {
		b.Fatal(err)
	}
	for range 700_000 / l.stepMS {
		e.Step(l.next())
	}
	b.ReportAllocs()
	readings, cpu := 0, int64(0)
	for b.Loop() {
		batch := l.next() // which takes its time too
		from := cpuNS(b)
		e.Step(batch)
		cpu += cpuNS(b) - from
		readings += len(batch.Readings)
	}
	b.ReportMetric(float64(readings)/float64(cpu)*1e9, "readings/cpu-s")
	b.ReportMetric(float64(cpu)/float64(readings), "cpu-ns/reading")
	b.ReportMetric(0, "ns/op")
}

// cpuNS is the processor time that the process has used, which other processes on
// the machine do not lengthen.
func cpuNS(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

var basic = []string{"count", "sum", "mean", "min", "max"}

func BenchmarkInOrder(b *testing.B) {
	for _, sensors := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(sensors, "sensors"), func(b *testing.B) { benchSteps(b, benchConfig(basic...), newLoad(sensors)) })
	}
}

func BenchmarkDisorder5Percent(b *testing.B) {
	l := newLoad(1000)
	l.delay()
	benchSteps(b, benchConfig(basic...), l)
}

func BenchmarkFunctions(b *testing.B) {
	for name, functions := range map[string][]string{
		"moments": {"count", "stddev", "rms", "slope"}, "percentiles": {"count", "p50", "p95"},
		"timeweighted": {"time_weighted_mean", "last"},
	} {
		b.Run(name, func(b *testing.B) {
			c := benchConfig(functions...)
			if name == "timeweighted" {
				c.Features[0].MaxHoldMS = 3_600_000
			}
			benchSteps(b, c, newLoad(1000))
		})
	}
}

// 100,000 open windows close on one jump of the watermark.
func BenchmarkCloseWindows(b *testing.B) {
	l := newLoad(100_000)
	c := benchConfig(basic...)
	base := int64(1_700_000_000_000)
	var cpu int64
	for b.Loop() {
		b.StopTimer()
		e, _ := windowing.New(c)
		e.Step(&reading.Batch{GatewayMS: base})
		e.Step(l.next())
		jump := l.next()
		jump.Readings[0].Stamp.WatermarkMS += 3_600_000
		runtime.GC()
		b.StartTimer()
		from := cpuNS(b)
		out := e.Step(jump)
		cpu += cpuNS(b) - from
		b.StopTimer()
		jump.Readings[0].Stamp.WatermarkMS -= 3_600_000
		if len(out.Emissions) < 200_000 {
			b.Fatalf("%d emissions", len(out.Emissions))
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/jump")
	b.ReportMetric(float64(cpu)/1e6/float64(b.N), "cpu-ms/jump")
}

// What an open window with its key and sensor, a remembered identity and a kept
// reading cost.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		l := newLoad(50_000)
		before := heap()
		e, err := windowing.New(benchConfig(basic...))
		if err != nil {
			b.Fatal(err)
		}
		e.Step(l.next())
		b.ReportMetric(float64(heap()-before)/50_000, "B/key+window")
		runtime.KeepAlive(e)
		id := memoryPerReading(b, basic)
		b.ReportMetric(id, "B/identity")
		b.ReportMetric(memoryPerReading(b, []string{"p95"})-id, "B/kept")
	}
	b.ReportMetric(0, "ns/op")
}

// What an hour of 1,000 sensors at 1 Hz takes, of which five percent are late, by the
// lateness that the configuration has by default.
func BenchmarkMemoryAtRest(b *testing.B) {
	for b.Loop() {
		l := newLoad(1000)
		l.delay()
		before, most := heap(), int64(0)
		c := benchConfig(basic...)
		c.Features[0].AllowedLatenessMS = 600_000
		e, err := windowing.New(c)
		if err != nil {
			b.Fatal(err)
		}
		for s := range 3600 {
			e.Step(l.next())
			if s%60 == 0 {
				most = max(most, heap()-before)
			}
		}
		b.ReportMetric(float64(most)/1e6, "MB")
		runtime.KeepAlive(e)
	}
	b.ReportMetric(0, "ns/op")
}

// memoryPerReading is how much the heap grows by each further reading of 100
// sensors within one window.
func memoryPerReading(b *testing.B, functions []string) float64 {
	c := benchConfig(functions...)
	c.Features[0].SizeMS = 100_000_000
	e, err := windowing.New(c)
	if err != nil {
		b.Fatal(err)
	}
	l := newLoad(100)
	steps := func(n int) {
		for range n {
			e.Step(l.next())
		}
	}
	steps(100)
	before := heap()
	steps(1000)
	grown := heap() - before
	runtime.KeepAlive(e)
	return float64(grown) / 1000 / float64(len(l.batch.Readings))
}

// heap is what is reachable; collected twice, since what one collection finds dead
// the next sweeps.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
