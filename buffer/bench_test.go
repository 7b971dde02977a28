package buffer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tidemark/buffer"
)

// Environment of the benchmarks. On a file system of its own, on a loop device
// for example, the device's own counter is exact; /proc/self/io counts whole
// folios of the page cache where a part of one is written.
const (
	benchDirEnv    = "TIDEMARK_BENCH_DIR"    // where the store lies
	benchDeviceEnv = "TIDEMARK_BENCH_DEVICE" // its device, such as loop0
)

// written is how many bytes have gone to the device.
func written(b *testing.B) int64 {
	b.Helper()
	if dev := os.Getenv(benchDeviceEnv); dev != "" {
		stat, err := os.ReadFile("/sys/block/" + dev + "/stat")
		if err != nil {
			b.Fatal(err)
		}
		return number(b, strings.Fields(string(stat))[6]) * 512
	}
	io, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(io), "\nwrite_bytes: ")
	line, _, _ := strings.Cut(rest, "\n")
	return number(b, line)
}

func number(b *testing.B, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// retained is how many commits the benchmarks' stores keep.
const retained = 300

// benchStore is a new store in the place that the environment names.
func benchStore(b *testing.B) *buffer.Store {
	b.Helper()
	path := benchPath(b)
	s := open(b, path, benchOptions())
	b.Cleanup(func() { os.Remove(path) })
	return s
}

func benchOptions() buffer.Options {
	return buffer.Options{Quota: 1 << 30, Uplinks: []string{"plant"}, RetainMS: retained * 1000}
}

func benchPath(b *testing.B) string {
	dir := os.Getenv(benchDirEnv)
	if dir == "" {
		dir = b.TempDir()
	}
	return filepath.Join(dir, "bench.db")
}

// load is what one commit carries.
type load struct {
	readings   int // at 9 bytes, about what a typical one takes in a block
	records    int // at 150 bytes
	checkpoint int // a checkpoint of 500 KB with every so manieth commit; 0 never
}

// commit is number seq of its kind.
func (l load) commit(seq uint64) *buffer.Commit {
	ledger := pattern(2, 1500)
	copy(ledger, strconv.FormatUint(seq, 10))
	c := &buffer.Commit{
		Block: &buffer.Block{Seq: seq, Readings: l.readings, Data: pattern(1, l.readings*9)},
		Meta:  map[string][]byte{"ledger": ledger}, KeepFrom: seq + 1, AtMS: int64(seq) * 1000,
	}
	for i := range l.records {
		c.Records = append(c.Records, buffer.Record{Kind: 1, Data: pattern(uint64(i), 150)})
	}
	if l.checkpoint > 0 && seq%uint64(l.checkpoint) == 0 {
		c.Checkpoint = whole(pattern(3, 500_000))
	}
	return c
}

// run commits b.N times and reports what that costs.
func (l load) run(b *testing.B, s *buffer.Store, seq uint64) {
	b.ReportAllocs()
	before, n := written(b), 0
	for b.Loop() {
		n++
		b.StopTimer()
		c := l.commit(seq)
		b.StartTimer()
		if err := s.Commit(c); err != nil {
			b.Fatal(err)
		}
		s.Outbox("plant").Delivered(buffer.Live, seq*uint64(l.records))
		seq++
	}
	bytes := float64(written(b)-before) / float64(n)
	b.ReportMetric(bytes, "B/commit")
	b.ReportMetric(bytes/float64(l.readings), "B/reading")
	b.ReportMetric(float64(n*l.readings)/b.Elapsed().Seconds(), "readings/s")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(b.Elapsed().Seconds()/float64(n)*1000, "ms/commit")
}

// BenchmarkCommit shows what batches of different sizes cost, in time and in
// bytes written to the device.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{20, 100, 500, 1000, 2000, 7000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("readings=%d", n), func(b *testing.B) {
			load{readings: n}.run(b, benchStore(b), 1)
		})
	}
}

// BenchmarkSteady is a gateway that has been at work for long: what comes takes
// the place of what grew old, features go out and are delivered, a checkpoint is
// taken for each half million readings.
func BenchmarkSteady(b *testing.B) {
	for _, l := range []load{{1, 0, 0}, {10, 0, 0}, {100, 1, 0}, {1000, 10, 500}, {10_000, 20, 50}, {100_000, 200, 5}} {
		b.Run(fmt.Sprintf("readings=%d", l.readings), func(b *testing.B) {
			s := benchStore(b)
			seq := uint64(1)
			for ; seq <= 2*retained; seq++ {
				c := l.commit(seq)
				c.Checkpoint = whole([]byte{1})
				commit(b, s, c)
				s.Outbox("plant").Delivered(buffer.Live, seq*uint64(l.records))
			}
			l.run(b, s, seq)
		})
	}
}

// BenchmarkAfterBacklog is a gateway whose long outage is over: the file is full
// of free pages, and bbolt's list of them goes to disk with every commit.
func BenchmarkAfterBacklog(b *testing.B) {
	s := benchStore(b)
	records := make([]buffer.Record, 10_000)
	for i := range records {
		records[i] = buffer.Record{Kind: 1, Data: pattern(uint64(i), 1000)}
	}
	for range 30 {
		commit(b, s, &buffer.Commit{Records: records})
	}
	s.Outbox("plant").Delivered(buffer.Live, 300_000)
	for range 40 {
		commit(b, s, &buffer.Commit{})
	}
	v := stats(b, s)
	b.Logf("%d of %d MB are free", (v.FileBytes-v.UsedBytes)>>20, v.FileBytes>>20)
	load{readings: 1000}.run(b, s, 1)
}

// BenchmarkDrain reads and delivers the outbox as an uplink does.
func BenchmarkDrain(b *testing.B) {
	s := benchStore(b)
	records := make([]buffer.Record, 20_000)
	for i := range records {
		records[i] = buffer.Record{Kind: 1, Data: pattern(uint64(i), 150)}
	}
	for range 10 {
		commit(b, s, &buffer.Commit{Records: records})
	}
	out := s.Outbox("plant")
	var got []buffer.StoredRecord
	var err error
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		if got, _, err = out.Next(buffer.Live, got[:0], 100, 256<<10); err != nil {
			b.Fatal(err)
		}
		if len(got) == 0 {
			out.Rewind()
			continue
		}
		n += len(got)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkBlocks reads the journal as recovery does.
func BenchmarkBlocks(b *testing.B) {
	s := benchStore(b)
	for seq := uint64(1); seq <= 1000; seq++ {
		commit(b, s, &buffer.Commit{Block: &buffer.Block{Seq: seq, Readings: 1000, Data: pattern(seq, 9000)}})
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := s.Blocks(1, func(buffer.Block) error { n++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*1000/b.Elapsed().Seconds(), "readings/s")
}

// BenchmarkOpen opens a store with ten million readings in its journal and finds
// where recovery begins.
func BenchmarkOpen(b *testing.B) {
	path := benchPath(b)
	s := open(b, path, benchOptions())
	defer os.Remove(path)
	for seq := uint64(1); seq <= 10_000; seq++ {
		c := load{readings: 1000}.commit(seq)
		c.AtMS = 0
		if seq >= 9999 {
			c.Checkpoint = whole(pattern(seq, 500_000))
		}
		commit(b, s, c)
	}
	s.Close()
	b.ReportAllocs()
	for b.Loop() {
		s := open(b, path, benchOptions())
		if _, _, last, err := s.Recover(); err != nil || last != 10_000 {
			b.Fatal(last, err)
		}
		s.Close()
	}
}
