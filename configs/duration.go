package configs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // small devices have no zones of their own
)

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
