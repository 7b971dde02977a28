package configs

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tidemark/reading"
)

// scalar decodes a single value. Strings take the text as it stands, so that 007
// and 1.10 stay what they are.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode || null(n) {
		if null(n) {
			d.fault(n, "", "has no value; give it one or take the key away")
		} else {
			d.fault(n, "", "wants a single value here, not %s", shape(n))
		}
		return
	}
	if err := d.text(n.Value, v); err != nil {
		w, ok := err.(*wrong)
		if !ok {
			w = &wrong{reason: err.Error()}
		}
		d.fault(n, w.nearest, "%s", clipReason(w.reason))
	}
}

func clipReason(s string) string {
	if r := []rune(s); len(r) > 300 {
		return string(r[:297]) + "..."
	}
	return s
}

func (d *decoder) text(s string, v reflect.Value) error {
	switch x := v.Addr().Interface().(type) {
	case texter:
		return x.parse(s)
	case enum:
		return oneOf(s, x.values(), v.SetString)
	case *reading.Policy:
		return oneOf(s, reading.PolicyNames(), func(s string) { *x, _ = reading.ParsePolicy(s) })
	case *reading.Level:
		return oneOf(s, []string{"good", "uncertain", "bad"}, func(s string) { *x, _ = reading.ParseLevel(s) })
	case *reading.TimeUnit:
		err := oneOf(s, timeUnits, func(s string) { *x = reading.TimeUnit(slices.Index(timeUnits, s)) })
		if w, ok := err.(*wrong); ok && w.nearest == "" {
			w.nearest = durationWords[strings.TrimSuffix(strings.ToLower(s), "s")]
		}
		return err
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		return boolean(s, v)
	case reflect.Int:
		return integer(s, v)
	case reflect.Float64:
		return float(s, v)
	default:
		panic("configs: no way to read a " + v.Type().String())
	}
	return nil
}

// timeUnits are in the order of reading's constants.
var timeUnits = []string{"rfc3339", "s", "ms", "us", "ns"}

func oneOf(s string, valid []string, set func(string)) error {
	if slices.Contains(valid, s) {
		set(s)
		return nil
	}
	return &wrong{fmt.Sprintf("%q is none of %s", clip(s), strings.Join(valid, ", ")), Nearest(s, valid)}
}

// boolean takes what YAML 1.1 does, as yaml/v4 for a typed bool.
func boolean(s string, v reflect.Value) error {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "y":
		v.SetBool(true)
	case "false", "no", "off", "n":
		v.SetBool(false)
	default:
		return &wrong{fmt.Sprintf("%q is neither true nor false", clip(s)), Nearest(s, []string{"true", "false"})}
	}
	return nil
}

func integer(s string, v reflect.Value) error {
	i, err := strconv.Atoi(s)
	if err != nil {
		return &wrong{reason: fmt.Sprintf("%q is no whole number", clip(s))}
	}
	v.SetInt(int64(i))
	return nil
}

func float(s string, v reflect.Value) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.EqualFold(s, ".nan") {
		return &wrong{reason: fmt.Sprintf("%q is no finite number", clip(s))}
	}
	v.SetFloat(f)
	return nil
}
