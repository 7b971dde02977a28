package windowing

import (
	"fmt"
	"strconv"
	"strings"

	"tidemark/reading"
)

// statistic is what a function computes.
type statistic uint8

const (
	statCount statistic = iota
	statSum
	statMean
	statMin
	statMax
	statRange
	statFirst
	statLast
	statDelta
	statStddev
	statVariance
	statRMS
	statSlope
	statPercentile
	statTimeWeightedMean
	statIntegral
	statStateDuration
	statStateShare
	statTransitions
)

var statNames = map[string]statistic{
	"count": statCount, "sum": statSum, "mean": statMean, "min": statMin, "max": statMax, "range": statRange,
	"first": statFirst, "last": statLast, "delta": statDelta, "stddev": statStddev, "variance": statVariance,
	"rms": statRMS, "slope": statSlope, "time_weighted_mean": statTimeWeightedMean, "integral": statIntegral,
	"transitions": statTransitions,
}

// function is a parsed function name.
type function struct {
	name string
	stat statistic
	// rank is a percentile in parts of 10^scale: p99_9 is 999 at scale 1.
	rank, scale uint64
	state       state // statStateDuration, statStateShare
}

// state recognises a value by its written form.
type state struct {
	text   uint64 // hash of the name
	number reading.Value
}

// parseFunction reads a function name as the contract lists them.
func parseFunction(name string) (function, error) {
	if s, ok := statNames[name]; ok {
		return function{name: name, stat: s}, nil
	}
	if s, ok := strings.CutPrefix(name, "state_duration_s."); ok && s != "" {
		return function{name: name, stat: statStateDuration, state: parseState(s)}, nil
	}
	if s, ok := strings.CutPrefix(name, "state_share."); ok && s != "" {
		return function{name: name, stat: statStateShare, state: parseState(s)}, nil
	}
	if s, ok := strings.CutPrefix(name, "p"); ok {
		if rank, scale, ok := parsePercent(s); ok {
			return function{name: name, stat: statPercentile, rank: rank, scale: scale}, nil
		}
	}
	return function{}, fmt.Errorf("unknown function %q: there are count, sum, mean, min, max, range, first, last, delta, stddev, "+
		"variance, rms, slope, p50 (any percentile, p99_9 with a fraction), time_weighted_mean, integral, "+
		"state_duration_s.{state}, state_share.{state} and transitions", name)
}

// parsePercent reads 95 or 99_9: above 0, at most 100, up to six decimals.
func parsePercent(s string) (rank, scale uint64, ok bool) {
	whole, frac, has := strings.Cut(s, "_")
	if has && frac == "" || len(whole) == 0 || len(whole) > 3 || len(frac) > 6 {
		return 0, 0, false
	}
	digits := whole + frac
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, 0, false
		}
	}
	rank, _ = strconv.ParseUint(digits, 10, 64)
	hundred := uint64(100)
	for range frac {
		hundred *= 10
	}
	return rank, uint64(len(frac)), rank > 0 && rank <= hundred
}

func parseState(s string) state {
	st := state{text: hashText(s)}
	switch s {
	case "true", "false":
		st.number = reading.BoolValue(s == "true")
		return st
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		st.number = reading.IntValue(i)
	} else if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		st.number = reading.UintValue(u)
	} else if f, err := strconv.ParseFloat(s, 64); err == nil {
		st.number = reading.FloatValue(f)
	}
	return st
}

// is reports whether a kept value is this state. A float that is a whole number
// is the state of that integer.
func (s *state) is(kind reading.Kind, bits uint64) bool {
	if kind == reading.Text {
		return bits == s.text
	}
	v := makeValue(kind, bits)
	if kind == reading.Bool || s.number.Kind() == reading.Bool || s.number.Kind() == reading.Missing {
		return v.Kind() != reading.Missing && v == s.number
	}
	return compareNumbers(v, s.number) == 0
}

// needs are the parts of state that a feature's functions call for.
type needs struct {
	sum, extremes, edges bool
	squares, slope       bool
	samples              bool // kept readings
	order                bool // kept readings in the order of (time, id, value)
}

func (n *needs) add(f function) {
	switch f.stat {
	case statSum, statMean:
		n.sum = true
	case statMin, statMax, statRange:
		n.extremes = true
	case statFirst, statLast, statDelta:
		n.edges = true
	case statStddev, statVariance, statRMS:
		n.sum, n.squares = true, true
	case statSlope:
		n.sum, n.slope = true, true
	case statPercentile:
		n.samples = true
	case statTimeWeightedMean, statIntegral, statStateDuration, statStateShare, statTransitions:
		n.samples, n.order = true, true
	}
}

// FunctionUnit returns the UCUM unit of a function over values with the given
// unit; empty for pure numbers and where the unit is not known.
func FunctionUnit(name, unit string) string {
	f, err := parseFunction(name)
	if err != nil {
		return ""
	}
	switch f.stat {
	case statStateDuration:
		return "s"
	case statCount, statStateShare, statTransitions:
		return ""
	}
	if unit == "" || unit == "1" {
		return map[statistic]string{statSlope: "/s", statIntegral: "s"}[f.stat]
	}
	switch f.stat {
	case statVariance:
		return "(" + unit + ")2"
	case statSlope:
		return unit + "/s"
	case statIntegral:
		return unit + ".s"
	}
	return unit
}
