package reading_test

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tidemark/reading"
)

func TestValueJSON(t *testing.T) {
	for _, c := range []struct {
		v    reading.Value
		want string
	}{
		{reading.Value{}, "null"},
		{reading.BoolValue(true), "true"},
		{reading.BoolValue(false), "false"},
		{reading.IntValue(math.MinInt64), "-9223372036854775808"},
		{reading.IntValue(1<<53 + 1), "9007199254740993"},
		{reading.UintValue(math.MaxUint64), "18446744073709551615"},
		{reading.FloatValue(10), "10"},
		{reading.FloatValue(0.1), "0.1"},
		{reading.FloatValue(1e21), "1e+21"},
		{reading.FloatValue(1e-7), "1e-07"},
		{reading.FloatValue(math.Copysign(0, -1)), "0"},
		{reading.FloatValue(math.NaN()), "null"},
		{reading.FloatValue(math.Inf(-1)), "null"},
		{reading.TextValue(`say "ä"`), `"say \"ä\""`},
	} {
		if got := string(c.v.AppendJSON(nil)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestEqualNumbersAreEqualValues(t *testing.T) {
	if reading.UintValue(7) != reading.IntValue(7) {
		t.Error("7 has two integer values")
	}
	if reading.FloatValue(0) != reading.FloatValue(math.Copysign(0, -1)) {
		t.Error("zero has two float values")
	}
	if reading.FloatValue(math.NaN()) != (reading.Value{}) {
		t.Error("NaN is a value")
	}
}

func TestValueAccessors(t *testing.T) {
	big := reading.UintValue(math.MaxUint64)
	if _, ok := big.Int(); ok {
		t.Error("2^64-1 is no int64")
	}
	if f := reading.IntValue(-3).Float(); f != -3 {
		t.Errorf("float %v", f)
	}
	if v := reading.TextValue("1"); v.Float() != 0 || v.Text() != "1" {
		t.Errorf("text is taken for something else: %v", v)
	}
}

// JSON floats are what encoding/json reads back as the same number.
func TestJSONFloat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).Draw(t, "f")
		var back float64
		if err := json.Unmarshal(reading.AppendJSONFloat(nil, f), &back); err != nil || back != f {
			t.Fatalf("%v came back as %v: %v", f, back, err)
		}
	})
}

// JSON strings read back as the text, invalid bytes as U+FFFD each.
func TestJSONString(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		if got := string(reading.AppendJSONString(nil, s)); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
	f("", `""`)
	f("a\xffb", "\"a\uFFFDb\"")
	f("\xe4\xb8", "\"\uFFFD\uFFFD\"")
	f("tab\tnew\nquote\"back\\", `"tab\tnew\nquote\"back\\"`)
	f("\x00\x1f\x7f", `"\u0000\u001f\u007f"`)
	f("<&>\u2028", "\"<&>\u2028\"")
	rapid.Check(t, func(t *rapid.T) {
		s := names().Draw(t, "s")
		enc := reading.AppendJSONString(nil, s)
		var got string
		if err := json.Unmarshal(enc, &got); err != nil {
			t.Fatal(err)
		}
		if want := string([]rune(s)); got != want || !utf8.Valid(enc) {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}

func TestJSONTime(t *testing.T) {
	f := func(got []byte, want string) {
		t.Helper()
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f(reading.AppendJSONTime(nil, 1767268810500000000), `"2026-01-01T12:00:10.5Z"`)
	f(reading.AppendJSONTime(nil, -1), `"1969-12-31T23:59:59.999999999Z"`)
	f(reading.AppendJSONTime(nil, reading.NoTime), `null`)
	f(reading.AppendJSONTimeMS(nil, -10), `"1969-12-31T23:59:59.99Z"`)
	f(reading.AppendJSONTimeMS(nil, 10_000_000_000_000), `"2286-11-20T17:46:40Z"`)
	f(reading.AppendJSONTimeMS(nil, reading.NoTime), `null`)
}

func TestFloorMS(t *testing.T) {
	for ns, want := range map[int64]int64{
		0: 0, 999_999: 0, 1_000_000: 1, -1: -1, -1_000_000: -1, -1_000_001: -2,
		math.MaxInt64: 9223372036854, math.MinInt64 + 1: -9223372036855, reading.NoTime: reading.NoTime,
	} {
		if got := reading.FloorMS(ns); got != want {
			t.Errorf("%s: got %d, want %d", strconv.FormatInt(ns, 10), got, want)
		}
	}
}
