package configs

import (
	"fmt"
	"math"
	"net/url"
	"path/filepath"
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
