package configs

import (
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // small devices have no zones of their own

	"tidemark/reading"
)

// texter is a type that one scalar gives. parse returns a *wrong where it knows a
// nearest value.
type texter interface{ parse(text string) error }

// wrong is why a value cannot be taken, and what may have been meant.
type wrong struct{ reason, nearest string }

func (w *wrong) Error() string { return w.reason }

// set keeps the default where the text is wrong, so that one fault is one fault.
func set[T any](v *T, text string, parse func(string) (T, error)) error {
	parsed, err := parse(text)
	if err == nil {
		*v = parsed
	}
	return err
}

// Duration is a Go duration that also reads and prints days: 90s, 7d, 1d12h.
type Duration time.Duration

// Day is 24 hours.
const Day = Duration(24 * time.Hour)

// Std returns d as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// MS returns d in milliseconds, cut towards zero.
func (d Duration) MS() int64 { return time.Duration(d).Milliseconds() }

// String returns d as a configuration would spell it, without parts that are 0:
// 5m, 7d, 1h30m, 0s.
func (d Duration) String() string {
	if d == math.MinInt64 || d == 0 {
		return time.Duration(d).String()
	}
	if d < 0 {
		return "-" + (-d).String()
	}
	var b strings.Builder
	if days := d / Day; days > 0 {
		fmt.Fprintf(&b, "%dd", int64(days))
		d %= Day
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if d != 0 {
		b.WriteString(s)
	}
	return b.String()
}

var durationUnits = []string{"ns", "us", "µs", "ms", "s", "m", "h", "d"}

// ParseDuration reads a Go duration in which whole days (d) may lead: 7d, 1d12h,
// -2d.
func ParseDuration(text string) (Duration, error) {
	body := strings.TrimPrefix(text, "-")
	var days, rest Duration
	clock := body
	if head, tail, ok := strings.Cut(body, "d"); ok && head != "" && strings.Trim(head, "0123456789") == "" {
		n, err := strconv.ParseInt(head, 10, 64)
		if err != nil || n > math.MaxInt64/int64(Day) {
			return 0, tooLong(text)
		}
		days, clock = Duration(n)*Day, tail
	}
	if clock != "" || clock == body {
		if strings.HasPrefix(clock, "-") || strings.HasPrefix(clock, "+") {
			return 0, notDuration(text)
		}
		d, err := time.ParseDuration(clock)
		if err != nil {
			return 0, durationError(text, clock)
		}
		rest = Duration(d)
	}
	sum := days + rest
	if sum < 0 {
		return 0, tooLong(text)
	}
	if body != text {
		sum = -sum
	}
	return sum, nil
}

func notDuration(text string) *wrong {
	return &wrong{reason: fmt.Sprintf("%q is no duration; write one such as 500ms, 20s, 5m, 1h30m or 7d", text)}
}

func tooLong(text string) error {
	return &wrong{reason: fmt.Sprintf("%s is longer than can be counted (292 years)", text)}
}

// durationWords are units as people write them, without the s of the plural.
var durationWords = map[string]string{
	"sec": "s", "second": "s", "min": "m", "minute": "m", "hr": "h", "hour": "h", "day": "d",
	"msec": "ms", "milli": "ms", "millisecond": "ms", "m": "m", "h": "h", "d": "d",
}

// durationError tells a missing unit and an unknown one from the rest.
func durationError(text, clock string) error {
	number := strings.TrimRight(clock, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ ")
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return notDuration(text)
	}
	unit := strings.TrimSpace(clock[len(number):])
	switch {
	case unit == "":
		return &wrong{reason: text + " needs a unit: ns, us, ms, s, m, h or d"}
	case unit == "d":
		return &wrong{reason: fmt.Sprintf("%q: days are whole; write hours beside them, such as 1d12h", text)}
	case slices.Contains(durationUnits, unit) && !strings.Contains(clock, " "):
		return tooLong(text)
	}
	w := &wrong{reason: fmt.Sprintf("%q is no duration: the units are ns, us, ms, s, m, h and d", text)}
	lower := strings.ToLower(unit)
	if u, ok := durationWords[strings.TrimSuffix(lower, "s")]; ok && !slices.Contains(durationUnits, lower) {
		w.nearest = number + u
	} else if slices.Contains(durationUnits, lower) {
		w.nearest = number + lower
	}
	return w
}

func (d *Duration) parse(text string) error { return set(d, text, ParseDuration) }

// Bytes is a size: 64KB is 64,000, 64KiB is 65,536.
type Bytes int64

var byteUnits = []struct {
	name string
	size int64
}{
	{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9},
	{"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}, {"B", 1},
}

// String returns b in the largest unit that divides it, binary before decimal.
func (b Bytes) String() string {
	if b == 0 {
		return "0"
	}
	for _, u := range byteUnits {
		if int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// ParseBytes reads a size, a number with or without fraction and a unit; 0 needs
// none.
func ParseBytes(text string) (Bytes, error) {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit := strings.TrimSpace(text[len(number):])
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(number, "xX_") {
		return 0, &wrong{reason: fmt.Sprintf("%q is no size; write one such as 64KB, 512MiB or 2GiB", text)}
	}
	if f < 0 {
		return 0, &wrong{reason: fmt.Sprintf("%s is below zero", text)}
	}
	if unit == "" && f == 0 {
		return 0, nil
	}
	for _, u := range byteUnits {
		if u.name != unit {
			continue
		}
		if f *= float64(u.size); f >= math.MaxInt64 {
			return 0, &wrong{reason: fmt.Sprintf("%s is more than can be counted", text)}
		}
		return Bytes(math.Round(f)), nil
	}
	return 0, byteUnitError(text, number, unit)
}

func byteUnitError(text, number, unit string) error {
	if unit == "" {
		return &wrong{reason: fmt.Sprintf("%s needs a unit: B, KB, MB, GB, TB or KiB, MiB, GiB, TiB", text), nearest: text + "B"}
	}
	w := &wrong{reason: fmt.Sprintf("%q is no unit of size; use B, KB, MB, GB, TB or KiB, MiB, GiB, TiB", unit)}
	for _, u := range byteUnits {
		if strings.EqualFold(u.name, unit) || strings.EqualFold(strings.TrimSuffix(u.name, "B"), unit) ||
			strings.EqualFold(strings.TrimSuffix(u.name, "iB"), unit) {
			w.nearest = number + u.name
			break
		}
	}
	return w
}

func (b *Bytes) parse(text string) error { return set(b, text, ParseBytes) }

// Time is a moment in Unix nanoseconds, or reading.NoTime.
type Time int64

// Given reports whether there is a time.
func (t Time) Given() bool { return int64(t) != reading.NoTime }

// String returns the time as RFC 3339, and nothing for no time.
func (t Time) String() string {
	if !t.Given() {
		return ""
	}
	return time.Unix(0, int64(t)).UTC().Format(time.RFC3339Nano)
}

// ParseTime reads RFC 3339 with a zone, or a whole number of Unix milliseconds.
func ParseTime(text string) (Time, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		if ms > math.MaxInt64/1_000_000 || ms < math.MinInt64/1_000_000 {
			return 0, &wrong{reason: text + " is out of range: Unix milliseconds between the years 1678 and 2262"}
		}
		return Time(ms * 1_000_000), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		w := &wrong{reason: fmt.Sprintf("%q is no time; write RFC 3339 with a zone, such as 2026-05-03T10:03:00Z, or Unix milliseconds", text)}
		if _, err := time.Parse("2006-01-02T15:04:05", text); err == nil {
			w.nearest = text + "Z"
		}
		return 0, w
	}
	if t.Year() < 1678 || t.Year() > 2261 {
		return 0, &wrong{reason: text + " is out of range: years 1678 to 2261"}
	}
	return Time(t.UnixNano()), nil
}

func (t *Time) parse(text string) error { return set(t, text, ParseTime) }

// URL is an address without user or password.
type URL struct{ url.URL }

// String returns the address.
func (u URL) String() string { return u.URL.String() }

// parse never repeats what may be a password: what stands before an @.
func (u *URL) parse(text string) error {
	p, err := url.Parse(text)
	if err != nil {
		return notURL(text)
	}
	if p.User != nil {
		return &wrong{reason: "an address holds no user or password; write them under login"}
	}
	if p.Scheme == "" || p.Host == "" {
		return notURL(text)
	}
	if port := p.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return &wrong{reason: fmt.Sprintf("%s is no port: 1 to 65535", clip(port))}
		}
	}
	u.URL = *p
	return nil
}

func notURL(text string) *wrong {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		text = "…" + text[i:]
	}
	return &wrong{reason: fmt.Sprintf("%q is no address; write one such as mqtts://broker.example:8883", clip(text))}
}

// Path is a file. A relative one is taken from the configuration's directory.
type Path string

// String returns the path.
func (p Path) String() string { return string(p) }

// Socket is where the running gateway of the store p answers the command line:
// beside it and named like it, so that two gateways never share one.
func (p Path) Socket() string {
	return strings.TrimSuffix(string(p), filepath.Ext(string(p))) + ".sock"
}

// Zone is a time zone by its IANA name.
type Zone struct{ *time.Location }

// UTC returns the default zone.
func UTC() Zone { return Zone{time.UTC} }

func (z *Zone) parse(text string) error {
	loc, err := time.LoadLocation(text)
	if err != nil || text == "" || text == "Local" {
		return &wrong{reason: fmt.Sprintf("%q is no time zone; write an IANA name such as UTC or Europe/Berlin", text)}
	}
	z.Location = loc
	return nil
}

// Pattern is a name in which * stands for any run of characters and ? for one
// byte. The empty Pattern holds for every name.
type Pattern string

// Match reports whether name fits.
func (p Pattern) Match(name string) bool { return p == "" || glob(string(p), name) }

// Patterns hold where one of them does; none hold for every name. In the file one
// pattern or a list.
type Patterns []Pattern

// Match reports whether name fits one of the patterns, or there is none.
func (p Patterns) Match(name string) bool {
	return len(p) == 0 || slices.ContainsFunc(p, func(x Pattern) bool { return x.Match(name) })
}

// glob walks both strings once and goes back to the last star on a mismatch: no
// pattern takes more than len(pattern)·len(name) steps.
func glob(pattern, name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
