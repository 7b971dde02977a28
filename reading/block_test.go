package reading_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"tidemark/reading"
)

var exactly = cmp.Options{
	cmp.Comparer(func(a, b reading.Value) bool { return a == b }),
	cmp.Comparer(func(a, b reading.Tag) bool { return a == b }),
	cmpopts.EquateEmpty(),
}

func TestBlockRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := batches().Draw(t, "batch")
		prefix := []byte("kept")
		block := reading.AppendBatch(prefix, b)
		if !bytes.HasPrefix(block, prefix) {
			t.Fatal("the destination's bytes are gone")
		}
		got, err := reading.DecodeBatch(block[len(prefix):])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, got, exactly); diff != "" {
			t.Fatal(diff)
		}
		if (b.Config == nil) != (got.Config == nil) {
			t.Fatal("an empty configuration is not the same as none")
		}
	})
}

func TestReadingRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := readings().Draw(t, "reading")
		enc := reading.AppendReading(nil, &r)
		got, rest, err := reading.DecodeReading(append(enc, "rest"...))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got, exactly); diff != "" {
			t.Fatal(diff)
		}
		if string(rest) != "rest" {
			t.Fatalf("left %q", rest)
		}
		if again := reading.AppendReading(nil, &got); !bytes.Equal(again, enc) {
			t.Fatalf("not canonical:\n%x\n%x", enc, again)
		}
	})
}

// The generators must know every field, or the round trip proves less than it
// says.
func TestGeneratorsKnowEveryField(t *testing.T) {
	f := func(v any, want int) {
		t.Helper()
		if n := reflect.TypeOf(v).NumField(); n != want {
			t.Errorf("%T has %d fields, the generator and the codec were written for %d", v, n, want)
		}
	}
	f(reading.Batch{}, 8)
	f(reading.Mark{}, 7)
	f(reading.Reading{}, 12)
	f(reading.SourceTime{}, 5)
	f(reading.Stamp{}, 12)
	f(reading.Quality{}, 2)
	f(reading.Series{}, 5)
	f(reading.ClockSegment{}, 12)
	f(reading.SourceSegment{}, 5)
}

// Floats of one line share a form; each pair here once broke one.
func TestBlockFloatForms(t *testing.T) {
	for _, fs := range [][]float64{
		{21.5, 21.37, 21.375},
		{float64(float32(21.37)), 21.5, float64(float32(3.1))},
		{21.37, float64(float32(21.37))},
		{1 << 50, 0.001},
		{0.1, 1e15},
		{5e-324, 1.7976931348623157e308},
		{1e9 + 1e-3, 1e9 - 1e-3},
		{0.1 + 0.2, 0.3},
		{float64(float32(16777216)), float64(float32(0.3)), float64(float32(1e-7))},
	} {
		b := &reading.Batch{Readings: make([]reading.Reading, len(fs))}
		for i, f := range fs {
			b.Readings[i] = steady(i)
			b.Readings[i].Value = reading.FloatValue(f)
		}
		got, err := reading.DecodeBatch(reading.AppendBatch(nil, b))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, got, exactly); diff != "" {
			t.Errorf("%v: %s", fs, diff)
		}
	}
}

func TestDecodeNamesTheDamage(t *testing.T) {
	block := reading.AppendBatch(nil, &reading.Batch{Seq: 1, Readings: []reading.Reading{steady(0)}})
	for _, c := range []struct {
		name  string
		block []byte
		want  string
	}{
		{"nothing", nil, "is empty"},
		{"version zero", []byte{0, 0}, "version 0 does not exist"},
		{"no method", block[:1], "ends before the storage method"},
		{"unknown method", append([]byte{1, 9}, block[2:]...), "byte 1: unknown storage method 9"},
		{"too large", []byte{1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f}, "claims 4294967295 bytes unpacked"},
		{"not packed", []byte{1, 1, 4, 1, 2, 3, 4}, "byte 3: cannot unpack"},
		{"a list longer than the block", []byte{1, 0, 0xff, 0xff, 0x03}, "strings, byte 3 of the body: 65535 entries claimed"},
		{"left over", append(bytes.Clone(block), 0), "1 bytes left over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := reading.DecodeBatch(c.block)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if errors.Is(err, reading.ErrNewer) {
				t.Error("damage taken for a newer version")
			}
		})
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	r := steady(0)
	block, single := reading.AppendBatch(nil, &reading.Batch{}), reading.AppendReading(nil, &r)
	block[0]++
	single[0]++
	if _, err := reading.DecodeBatch(block); !errors.Is(err, reading.ErrNewer) {
		t.Errorf("block: %v", err)
	}
	if _, _, err := reading.DecodeReading(single); !errors.Is(err, reading.ErrNewer) {
		t.Errorf("reading: %v", err)
	}
}

// Every cut and every flipped bit gives an error or a batch, never a panic; a
// cut always an error.
func TestDamagedBlocks(t *testing.T) {
	b := &reading.Batch{Seq: 9, GatewayMS: 5, Config: []byte("c"), Marks: []reading.Mark{{Kind: reading.MarkIdle, Input: "A"}}}
	for i := range 12 {
		b.Readings = append(b.Readings, steady(i))
	}
	b.Readings[3].Value, b.Readings[4].Value = reading.TextValue("RUN"), reading.BoolValue(true)
	b.Readings[5].ID, b.Readings[6].Source.Raw = "e1", "yesterday"
	packed := reading.AppendBatch(nil, b)
	for _, block := range [][]byte{packed, plain(t, packed)} {
		damage(t, block)
	}
}

func damage(t *testing.T, block []byte) {
	t.Helper()
	for n := range block {
		if _, err := reading.DecodeBatch(block[:n]); err == nil {
			t.Errorf("cut at %d of %d: no error", n, len(block))
		}
	}
	for bit := range len(block) * 8 {
		flipped := bytes.Clone(block)
		flipped[bit/8] ^= 1 << (bit % 8)
		_, _ = reading.DecodeBatch(flipped)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	b := &reading.Batch{Seq: 2, Emit: true, Marks: []reading.Mark{{Kind: reading.MarkExists, Input: "A", TimeMS: reading.NoTime}}}
	f.Add(reading.AppendBatch(nil, b))
	for i := range 40 {
		b.Readings = append(b.Readings, steady(i))
	}
	f.Add(reading.AppendBatch(nil, b))
	f.Add(plain(f, reading.AppendBatch(nil, b)))
	f.Fuzz(func(t *testing.T, block []byte) {
		b, err := reading.DecodeBatch(block)
		if err != nil {
			return
		}
		again, err := reading.DecodeBatch(reading.AppendBatch(nil, b))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, again, exactly); diff != "" {
			t.Fatal(diff)
		}
	})
}

// plain is the same block, stored without compression: what a fuzzer can work on.
func plain(t testing.TB, block []byte) []byte {
	t.Helper()
	if block[1] == 0 {
		return block
	}
	_, n := binary.Uvarint(block[2:])
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	body, err := d.DecodeAll(block[2+n:], nil)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{block[0], 0}, body...)
}

func FuzzDecodeReading(f *testing.F) {
	for i := range 3 {
		r := steady(i)
		f.Add(reading.AppendReading(nil, &r))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		r, rest, err := reading.DecodeReading(src)
		if err != nil {
			return
		}
		if len(rest) >= len(src) {
			t.Fatal("nothing was read")
		}
		again, _, err := reading.DecodeReading(reading.AppendReading(nil, &r))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again, exactly); diff != "" {
			t.Fatal(diff)
		}
	})
}

var (
	startNS = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	segment = &reading.ClockSegment{ID: 1, Boot: 77, State: reading.ClockSynchronized, Method: reading.MethodNTP, Traceable: true, E0NS: 4e6, RhoPPB: 50_000, Servers: 4}
)

// steady is the i-th reading of a plant of 1,000 sensors that each send a decimal
// of three digits every second: stamped in whole milliseconds, 1 ms apart with
// some jitter, and up to 8 ms on the way.
func steady(i int) reading.Reading {
	source := startNS + (int64(i)+int64(noise(i, 1)*4))*1e6
	return reading.Reading{
		Tag:    plant[i%len(plant)],
		Value:  reading.FloatValue(float64(20_000+10*(i%len(plant))+int(noise(i, 2)*500)) / 1e3),
		Unit:   "Cel",
		Source: reading.SourceTime{NS: source, Zoned: true, Unit: reading.UnitMillis},
		Stamp: reading.Stamp{Disposition: reading.Accept, EventBound: 48, IngestBound: 44, Clock: segment,
			EventNS: source, WatermarkMS: source / 1e6},
		ServerNS: reading.NoTime,
		IngestNS: startNS + int64((float64(i)+noise(i, 3)*8)*1e6),
	}
}

// noise is a number in [0, 1) that looks random and depends on its arguments
// alone.
func noise(i, kind int) float64 { return rand.New(rand.NewPCG(uint64(i), uint64(kind))).Float64() }

var plant = func() (tags []reading.Tag) {
	for i := range 1000 {
		tags = append(tags, reading.MakeTag(reading.Series{Input: "vibration", Asset: fmt.Sprintf("press-%02d", i/10), Device: fmt.Sprintf("dev-%d", i/10), Sensor: fmt.Sprintf("sensor-%d", i%10)}))
	}
	return
}()
