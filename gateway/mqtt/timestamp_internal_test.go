package mqtt

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/reading"
)

func TestTimes(t *testing.T) {
	const day = 1767225600 // 2026-01-01
	for _, c := range []struct {
		text  string
		ns    int64
		zoned bool
		fault reading.TimeFault
	}{
		{"2026-01-01T00:00:00Z", day * 1e9, true, 0},
		{"2026-01-01t00:00:00.123456789z", day*1e9 + 123456789, true, 0},
		{"2026-01-01 00:00:00.1234567899Z", day*1e9 + 123456789, true, 0},
		{"2026-01-01T01:00:00+01:00", day * 1e9, true, 0},
		{"2025-12-31T18:15:00-0545", day * 1e9, true, 0},
		{"2026-01-01T00:00:00", day * 1e9, false, 0},
		{"2026-01-01T00:00:00,5", day*1e9 + 5e8, false, 0},
		{"2016-12-31T23:59:60Z", 1483228800 * 1e9, true, 0},
		{"2024-02-29T00:00:00Z", 1709164800 * 1e9, true, 0},
		{"1969-12-31T23:59:59.5Z", -5e8, true, 0},
		{"2023-02-29T00:00:00Z", reading.NoTime, false, reading.TimeUnparseable},
		{"2026-01-01T24:00:00Z", reading.NoTime, false, reading.TimeUnparseable},
		{"2026-01-01T00:00:00.Z", reading.NoTime, false, reading.TimeUnparseable},
		{"2026-01-01T00:00:00+1", reading.NoTime, false, reading.TimeUnparseable},
		{"2026-01-01", reading.NoTime, false, reading.TimeUnparseable},
		{"01/02/2026 00:00:00", reading.NoTime, false, reading.TimeUnparseable},
		{"9999-12-31T23:59:59Z", reading.NoTime, true, reading.TimeRange},
		{"0001-01-01T00:00:00Z", reading.NoTime, true, reading.TimeRange},
	} {
		if ns, zoned, fault := parseRFC3339(c.text); ns != c.ns || zoned != c.zoned || fault != c.fault {
			t.Errorf("%s: got %d %v %v", c.text, ns, zoned, fault)
		}
	}
}

func TestNumericTimes(t *testing.T) {
	for _, c := range []struct {
		raw  string
		unit reading.TimeUnit
		ns   int64
		kept bool // Raw
	}{
		{"1767225600", reading.UnitSeconds, 1767225600e9, false},
		{"1767225600123", reading.UnitMillis, 1767225600123e6, false},
		{"1767225600123456", reading.UnitMicros, 1767225600123456e3, false},
		{"1767225600123456789", reading.UnitNanos, 1767225600123456789, false},
		{"1767225600.123456789", reading.UnitSeconds, 1767225600123456789, true},
		{"1767225600.1234567891", reading.UnitSeconds, 1767225600123456789, true},
		{"1767225600123.5", reading.UnitMillis, 1767225600123500000, true},
		{"1.7672256e9", reading.UnitSeconds, 1767225600e9, true},
		{"0.5", reading.UnitNanos, 0, true},
		{"-0.5", reading.UnitNanos, -1, true}, // towards the past
		{"-1.5", reading.UnitSeconds, -1500000000, true},
		{"0.00000000000000000000000000000000000001", reading.UnitSeconds, 0, true},
		{"1767225600.00000000000000000000000000000000000000", reading.UnitSeconds, 1767225600e9, true},
	} {
		got := numericTime(c.raw, c.unit)
		if got.NS != c.ns || got.Fault != 0 || !got.Zoned || (got.Raw != "") != c.kept {
			t.Errorf("%s %v: got %+v", c.raw, c.unit, got)
		}
	}
	for _, raw := range []string{"1e30", "9223372037", "18446744073709551616", "-1e40", "1e999999999999"} {
		if got := numericTime(raw, reading.UnitSeconds); got.Fault != reading.TimeRange || got.NS != reading.NoTime || got.Raw != raw {
			t.Errorf("%s: got %+v", raw, got)
		}
	}
	for _, raw := range []string{"", "-", ".", "1e", "1e+", "0x1", "1 ", "NaN"} {
		if got := numericTime(raw, reading.UnitSeconds); got.Fault != reading.TimeUnparseable {
			t.Errorf("%s: got %+v", raw, got)
		}
	}
}

// The standard library is the second method.
func TestTimesAgreeWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(math.MinInt64/2, math.MaxInt64/2).Draw(t, "ns")
		zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "zone"))
		text := time.Unix(0, ns).In(zone).Format(time.RFC3339Nano)
		if got, zoned, fault := parseRFC3339(text); got != ns || !zoned || fault != 0 {
			t.Fatalf("%s: got %d, want %d", text, got, ns)
		}
	})
}

func TestTimeWithoutZoneIsOfTheConfiguredOne(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zone data:", err)
	}
	for _, c := range []struct {
		sent, want string
		loc        *time.Location
	}{
		{"2026-07-01T12:00:00", "2026-07-01T10:00:00Z", berlin},
		{"2026-01-01T12:00:00", "2026-01-01T11:00:00Z", berlin},
		{"2026-10-25T02:30:00", "2026-10-25T00:30:00Z", berlin}, // comes twice; the first
		{"2026-07-01T12:00:00", "2026-07-01T12:00:00Z", nil},
		{"2026-07-01T12:00:00+05:00", "2026-07-01T07:00:00Z", berlin}, // its own
	} {
		got := inZone(sourceTime(field{wording, c.sent}, reading.UnitNone), c.loc)
		if at := time.Unix(0, got.NS).UTC().Format(time.RFC3339); at != c.want || got.Raw != c.sent {
			t.Errorf("%s in %v: %s (sent %q), want %s", c.sent, c.loc, at, got.Raw, c.want)
		}
	}
}
