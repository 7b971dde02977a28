package trace

import (
	"fmt"
	"strings"

	"tidemark/reading"
)

// enum reads a name of an enumeration whose values, from the zero value to last,
// spell themselves by name. A missing token is the value that to has.
func enum[T ~uint8](field string, v token, last T, name func(T) string, to *T) error {
	text, err := v.text(field)
	if err != nil || v == nil {
		return err
	}
	var known []string
	for c := T(0); c <= last; c++ {
		if n := name(c); n == string(text) {
			*to = c
			return nil
		} else if n != "" {
			known = append(known, n)
		}
	}
	return fmt.Errorf("unknown %s %s: it is one of %s", field, quote(text), strings.Join(known, ", "))
}

// bits reads a list of names; bit i is called names[i].
func bits[T ~uint8 | ~uint16](field string, v token, names []string, to *T) error {
	if v == nil {
		return nil
	}
	return list(field, v, func(i int, v token) error {
		text, err := v.text(field)
		if err != nil {
			return err
		}
		for bit, n := range names {
			if n == string(text) {
				*to |= 1 << bit
				return nil
			}
		}
		return fmt.Errorf("unknown %s %s: it is one of %s", field, quote(text), strings.Join(names, ", "))
	})
}

var (
	deliveryNames = (^reading.Delivery(0)).Names()
	flagNames     = (^reading.Flags(0)).Names()
)

var markNames = [...]string{
	reading.MarkExists: "exists", reading.MarkRemove: "remove", reading.MarkWatermark: "watermark",
	reading.MarkIdle: "idle", reading.MarkActive: "active",
	reading.MarkCatchUpBegin: "catchup", reading.MarkCatchUpEnd: "catchup",
}
