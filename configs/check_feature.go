package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxSpan bounds window, lateness and out-of-orderness together, and each of the
// times beside them: cleanup times stay within int64 nanoseconds (SEMANTICS W4) for
// any reading of this century and the next.
const maxSpan = 30 * 365 * Day

// maxHops bounds how many windows one reading belongs to.
const maxHops = 1000

// tuning are the durations that `defaults` has and a feature may override.
var tuning = []struct {
	key string
	of  func(*Feature) Duration
}{
	{"window", func(f *Feature) Duration { return f.Window }},
	{"out_of_orderness", func(f *Feature) Duration { return f.OutOfOrderness }},
	{"allowed_lateness", func(f *Feature) Duration { return f.AllowedLateness }},
	{"idle_after", func(f *Feature) Duration { return f.IdleAfter }},
	{"correct_every", func(f *Feature) Duration { return f.CorrectEvery }},
	{"flush_after", func(f *Feature) Duration { return f.FlushAfter }},
	{"max_watermark_lag", func(f *Feature) Duration { return f.MaxWatermarkLag }},
}

// span reports a duration that the engine, which counts milliseconds, cannot use.
func (c *checker) span(path string, d, low Duration) bool {
	switch {
	case !c.places.given(path):
		return true
	case d < low || d > maxSpan:
		c.fault(path, "", "%v is out of range: %v to %v", d, low, maxSpan)
	case d%Duration(time.Millisecond) != 0:
		c.fault(path, "", "%v is no whole number of milliseconds", d)
	default:
		return true
	}
	return false
}

func (c *checker) spans(p string, f *Feature) (ok bool) {
	ok = true
	for _, t := range tuning {
		low := Duration(0)
		if t.key == "window" {
			low = Duration(time.Millisecond)
		}
		ok = c.span(p+"."+t.key, t.of(f), low) && ok
	}
	return ok
}

func (c *checker) defaults() {
	var f Feature
	f.setDefaults(c.Config)
	c.spans("defaults", &f)
	c.functions("defaults.functions", c.Defaults.Functions)
}

func (c *checker) features() {
	names := make([]string, len(c.Features))
	for i := range c.Features {
		names[i] = c.Features[i].Name
		c.feature(at("features", i), &c.Features[i])
	}
	c.unique("feature", "features", names)
}

func (c *checker) feature(p string, f *Feature) {
	c.name(p+".name", f.Name)
	within(c, p+".version", f.Version, 1, 1<<30)
	c.selection(p+".select", &f.Select)
	c.functions(p+".functions", f.Functions)
	if f.Group != "" {
		c.name(p+".group", f.Group)
	} else if f.GroupPerAsset {
		c.fault(p+".group_per_asset", "", "there is no group to be made per asset: give it a name with group")
	}
	c.span(p+".hold.max", f.Hold.Max, 0)
	if c.spans(p, f) {
		c.window(p, f)
	}
	for i := range c.Inputs {
		if in := &c.Inputs[i]; f.Select.Input.Match(in.Name) && in.shared() {
			c.notice(p, "feature %q takes input %q, which is shared: each gateway of the group has a part of every window, unless the broker gives a topic always to the same one; to share the work, give each gateway topics of its own", f.Name, in.Name)
		}
	}
	if n := c.selected(f); f.IdleAfter == 0 && n > 1 && f.Scope == ScopeInput && !c.places.given(p+".idle_after") {
		c.fault(p, "", "idle_after is 0 by defaults, and this feature takes %d inputs: one that falls silent would hold all windows open for ever; if that is meant, write idle_after: 0 into the feature", n)
	}
}

func (c *checker) window(p string, f *Feature) {
	if f.Window <= 0 {
		return // reported where it stands, in defaults
	}
	if f.Window+f.OutOfOrderness+f.AllowedLateness > maxSpan {
		c.fault(p+".allowed_lateness", "", "window, out_of_orderness and allowed_lateness come to %v, more than %v: closing times would overflow",
			f.Window+f.OutOfOrderness+f.AllowedLateness, maxSpan)
	}
	if f.Offset.abs() >= f.Window {
		c.fault(p+".offset", "", "offset %v must be shorter than the window, %v", f.Offset, f.Window)
	}
	switch {
	case f.Every%Duration(time.Millisecond) != 0:
		c.fault(p+".every", "", "%v is no whole number of milliseconds", f.Every)
	case f.Every <= 0 || f.Every > f.Window:
		c.fault(p+".every", "", "every %v must be above 0 and at most the window, %v", f.Every, f.Window)
	case f.Window/f.Every > maxHops:
		c.fault(p+".every", "", "a reading would belong to %d windows; at most %d", f.Window/f.Every, maxHops)
	}
	if f.Offset%Duration(time.Millisecond) != 0 {
		c.fault(p+".offset", "", "%v is no whole number of milliseconds", f.Offset)
	}
	c.widths(p, f)
}

func (d Duration) abs() Duration { return max(d, -d) }

// selected counts the inputs that a feature takes.
func (c *checker) selected(f *Feature) (n int) {
	for _, in := range c.Inputs {
		if f.Select.Input.Match(in.Name) {
			n++
		}
	}
	return n
}

// selection reports references to nothing.
func (c *checker) selection(p string, s *Select) {
	inputs := make([]string, len(c.Inputs))
	for i, in := range c.Inputs {
		inputs[i] = in.Name
	}
	if s.Input != "" {
		c.refer(p+".input", "input", s.Input, inputs)
	}
	known, all := c.sensorNames(s)
	for i, sensor := range s.Sensor {
		q := p + ".sensor"
		if c.places.given(at(q, i)) {
			q = at(q, i)
		}
		if sensor == "" {
			c.fault(q, "", "a name cannot be empty")
		} else if all {
			c.refer(q, "sensor of these inputs", sensor, known)
		}
	}
}

// refer reports a pattern that no name fits.
func (c *checker) refer(p, kind string, pattern Pattern, names []string) {
	if !slices.ContainsFunc(names, pattern.Match) {
		c.fault(p, Nearest(string(pattern), names), "there is no %s named %q; there %s", kind, clip(string(pattern)), listed(names))
	}
}

// listed says which names there are, the first few if they are many.
func listed(names []string) string {
	names = slices.Compact(sorted(names))
	switch n := len(names); {
	case n == 0:
		return "are none"
	case n == 1:
		return "is " + clip(names[0])
	case n > 8:
		return fmt.Sprintf("are %s and %d more", strings.Join(names[:8], ", "), n-8)
	}
	return "are " + strings.Join(names, ", ")
}

// sensorNames lists the sensors of the selected inputs, and whether the file
// names them all.
func (c *checker) sensorNames(s *Select) (names []string, all bool) {
	for _, in := range c.Inputs {
		if !s.Input.Match(in.Name) {
			continue
		}
		if in.MQTT == nil {
			return nil, false
		}
		for _, sub := range in.MQTT.Subscribe {
			if len(sub.Sensors) == 0 && sub.Sensor.Text == "" {
				return nil, false
			}
			for _, sensor := range sub.Sensors {
				names = append(names, sensor.Name)
			}
			if sub.Sensor.Text != "" {
				names = append(names, sub.Sensor.Text)
			}
		}
	}
	for _, a := range c.Assets {
		for _, now := range a.Aliases {
			names = append(names, now)
		}
	}
	return names, len(names) > 0
}

// functions are the statistics by name; percentiles and those that name a state
// follow functionForms.
var functions = []string{
	"count", "sum", "mean", "min", "max", "range", "first", "last", "delta", "stddev", "variance", "rms", "slope",
	"p50", "p95", "p99_9", "time_weighted_mean", "integral", "transitions",
}

var functionForms = regexp.MustCompile(`^(p[1-9][0-9]?(_[0-9]{1,6})?|p100|p0_[0-9]{0,5}[1-9]|state_(duration_s|share)\..+)$`)

// misfunctions are statistics as people call them elsewhere.
var misfunctions = map[string]string{
	"avg": "mean", "average": "mean", "median": "p50", "minimum": "min", "maximum": "max", "std": "stddev", "var": "variance",
	"total": "sum", "twa": "time_weighted_mean", "n": "count", "p99.9": "p99_9",
}

func (c *checker) functions(p string, list []string) {
	if !c.places.given(p) {
		return
	}
	if len(list) == 0 {
		c.fault(p, "", "a feature has at least one function, such as count")
	}
	for i, f := range list {
		q := at(p, i)
		if !slices.Contains(functions, f) && !functionForms.MatchString(f) {
			near := misfunctions[strings.ToLower(f)]
			if near == "" {
				near = Nearest(f, functions)
			}
			c.fault(q, near, "%s", unknownFunction(f, near))
		} else if slices.Index(list, f) < i {
			c.fault(q, "", "the function %s stands here twice", clip(f))
		}
	}
}

func unknownFunction(f, near string) string {
	reason := fmt.Sprintf("there is no function %q", clip(f))
	if near != "" {
		return reason
	}
	return reason + fmt.Sprintf("; there are %s, any percentile such as p90, state_duration_s.STATE and state_share.STATE", strings.Join(functions, ", "))
}
