package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"tidemark/gateway"
	"tidemark/history"
)

// printSample shows what each input makes of a payload.
func printSample(w io.Writer, s *gateway.Sample) error {
	var b strings.Builder
	for i := range s.Inputs {
		in := &s.Inputs[i]
		fmt.Fprintf(&b, "%s, %s, to input %s: %s, %d refused\n", printable(s.Topic), count(s.Bytes, "byte"), in.Input,
			count(len(in.Readings), "reading"), len(in.Refused))
		sampledReadings(&b, in)
		for _, m := range in.Presence {
			fmt.Fprintf(&b, "device %s is %s\n", cmp.Or(printable(m.Device), "_"), map[bool]string{true: "gone", false: "there"}[m.Gone])
		}
		for _, r := range in.Refused {
			fmt.Fprintf(&b, "refused (%s, %s): %s\n", r.Kind, r.Reason, cmp.Or(r.Detail, "for the same reason as those above"))
			if r.Excerpt != "" {
				fmt.Fprintf(&b, "  in %s\n", printable(r.Excerpt))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func sampledReadings(b *strings.Builder, in *gateway.SampledInput) {
	if len(in.Readings) == 0 {
		return
	}
	rows := [][]string{{"SENSOR", "DEVICE", "VALUE", "SOURCE TIME", "IDENTITY", "VERDICT NOW", "FEATURES"}}
	var steps []string
	for i := range in.Readings {
		r := &in.Readings[i]
		name := history.Name(r.Asset, r.Sensor)
		if r.Lifecycle != "" {
			name += " (" + r.Lifecycle + ")"
		}
		identity := "time and value"
		switch {
		case r.ID != "":
			identity = "id " + r.ID
		case r.Seq != nil:
			identity = "seq " + fmt.Sprint(*r.Seq)
		case r.SourceTime == "":
			identity = "none"
		}
		rows = append(rows, []string{
			printable(name), cmp.Or(printable(r.Device), "_"), valueText(&r.Reading), cmp.Or(r.SourceTime, printable(r.SourceTimeSent), "none"),
			printable(identity), verdictText(&r.Reading), cmp.Or(strings.Join(r.Features, ", "), "none"),
		})
		if r.NextStep != "" {
			step := r.Reason + ": " + r.NextStep
			if len(steps) == 0 || steps[len(steps)-1] != step {
				steps = append(steps, step)
			}
		}
	}
	table(b, rows, "llrllll")
	for _, s := range steps {
		fmt.Fprintln(b, s)
	}
}
