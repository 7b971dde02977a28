package windowing_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"tidemark/reading"
	"tidemark/windowing"
)

// Whatever the bytes, decoding gives an error or something that encodes to what
// decodes to the same.
func FuzzDecodeConfig(f *testing.F) {
	c := richConfig()
	f.Add(windowing.AppendConfig(nil, &c))
	f.Add(windowing.AppendConfig(nil, &windowing.Config{FloorMS: reading.NoTime}))
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := windowing.DecodeConfig(src)
		if err != nil {
			return
		}
		b := windowing.AppendConfig(nil, c)
		again, err := windowing.DecodeConfig(b)
		if err != nil || !bytes.Equal(b, windowing.AppendConfig(nil, again)) {
			t.Fatalf("%+v reads as %+v: %v", c, again, err)
		}
	})
}

func FuzzDecodeEmission(f *testing.F) {
	for _, out := range [][]byte{seedEmissions(f)} {
		for len(out) > 0 {
			_, rest, err := new(windowing.Names).DecodeEmission(out)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(out[:len(out)-len(rest)])
			out = rest
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m, _, err := new(windowing.Names).DecodeEmission(src)
		if err != nil {
			return
		}
		b := windowing.AppendEmission(nil, &m)
		again, rest, err := new(windowing.Names).DecodeEmission(b)
		if err != nil || len(rest) != 0 || !bytes.Equal(b, windowing.AppendEmission(nil, &again)) {
			t.Fatalf("%+v reads as %+v: %v", m, again, err)
		}
	})
}

// A snapshot with a flipped bit is refused by its checksum.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	good := seedSnapshot(t)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		if _, err := windowing.Restore(bad); err == nil {
			t.Fatalf("byte %d flipped: no error", i)
		}
		if _, err := windowing.Restore(good[:i]); err == nil {
			t.Fatalf("cut at %d: no error", i)
		}
	}
}

func richConfig() windowing.Config {
	c := windowing.Config{
		Finals: true, FloorMS: -500, DuplicateHorizonMS: 5, LateIdentityMS: 1000, MaxOpenWindows: 100, ForgetAfterMS: 5000, NoIdentity: []string{"X"},
		Expectations: []windowing.Expectation{{Select: windowing.Selector{Sensor: "s*"}, EveryMS: 3, AlarmAfterMS: 9}},
	}
	c.Features = []windowing.Feature{
		{ID: windowing.FeatureID{Name: "a", Version: 1}, SizeMS: 20, EveryMS: 5, OffsetMS: -3, OutOfOrdernessMS: 2, AllowedLatenessMS: 10,
			IdleAfterMS: 30, FlushAfterMS: 10, CorrectEveryMS: 5, MaxLagMS: 60, MaxHoldMS: 40, Functions: everyFunction},
		{ID: windowing.FeatureID{Name: "b", Version: 2}, SizeMS: 10, Scope: windowing.ScopeDevice, Group: "g", Functions: []string{"sum", "slope", "first", "min"}},
		{ID: windowing.FeatureID{Name: "c", Version: 1}, SizeMS: 10, Scope: windowing.ScopeSensor, EmitEmpty: true, Functions: []string{"count"}},
	}
	return c
}

// stepSeed steps readings of all sorts and hands every output to take.
func stepSeed(t testing.TB, take func(*windowing.Output)) *windowing.Engine {
	e, err := windowing.New(richConfig())
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(60) {
		r := accepted(reading.Series{Input: "A", Device: "d", Asset: "m", Sensor: "s1", Lifecycle: "SN"}, (i*3-(i%7)*9)*1e6, reading.FloatValue(float64(i)/8))
		switch i % 6 {
		case 0:
			r.ID = "event"
		case 1:
			r.Value = reading.TextValue("RUN")
		case 2:
			r.Value = reading.IntValue(i << 50)
		case 3:
			r.Stamp.Disposition, r.Stamp.Reason = reading.Quarantine, reading.Future
		case 4:
			r.Delivery = reading.Initial
		}
		take(e.Step(&reading.Batch{GatewayMS: i * 2, Readings: []reading.Reading{r, r}, Emit: i%3 == 0}))
	}
	take(e.Step(&reading.Batch{GatewayMS: 200, Emit: true, Marks: []reading.Mark{{Kind: reading.MarkActive, Input: "A", TimeMS: reading.NoTime}}}))
	return e
}

func seedEmissions(t testing.TB) []byte {
	var all []byte
	stepSeed(t, func(out *windowing.Output) {
		for i := range out.Emissions {
			all = windowing.AppendEmission(all, &out.Emissions[i])
		}
	})
	return all
}

func seedSnapshot(t testing.TB) []byte {
	return stepSeed(t, func(*windowing.Output) {}).AppendSnapshot(nil)
}

var update = flag.Bool("update", false, "write the files of testdata that hold what this version does")

// Snapshots of the versions before are still read, and hold what they held.
func TestOldSnapshotsAreRead(t *testing.T) {
	for _, name := range []string{"testdata/snapshot.bin", "testdata/snapshot-2.bin"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		old, err := windowing.Restore(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := [3]int{1: old.Identities()}
		for _, f := range old.Status() {
			got[0] += f.OpenWindows
			got[2] += f.Keys
		}
		if want := [3]int{9, 30, 3}; got != want {
			t.Errorf("%s: windows, identities, keys %v, want %v", name, got, want)
		}
		out := old.Step(&reading.Batch{GatewayMS: 300, Emit: true, Readings: []reading.Reading{
			accepted(reading.Series{Input: "A", Device: "d", Asset: "m", Sensor: "s1", Lifecycle: "SN"}, 400e6, reading.IntValue(1)),
		}})
		closed := 0
		for i := range out.Emissions {
			if out.Emissions[i].Kind == windowing.EmitClosed {
				closed++
			}
		}
		if closed < 9 {
			t.Errorf("%s: %d windows close, 9 were open", name, closed)
		}
	}
}

// A snapshot of this version is read, and gives itself back.
func TestStoredSnapshotIsRead(t *testing.T) {
	const name = "testdata/snapshot-3.bin"
	if *update {
		if err := os.WriteFile(name, seedSnapshot(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	e, err := windowing.Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(e.AppendSnapshot(nil), b) {
		t.Error("it does not give itself back")
	}
}
