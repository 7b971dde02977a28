package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"tidemark/gateway"
	"tidemark/history"
)

// Everything that a user sees of `tidemark evidence` is printed in this file.

// evidenceFace is what people are shown of a record, whatever its type.
type evidenceFace struct {
	Type        string          `json:"type"`
	Kind        string          `json:"kind"` // of an event
	Input       string          `json:"input"`
	Asset       string          `json:"asset"`
	Sensor      string          `json:"sensor"`
	Member      string          `json:"member"` // the sensor, where Sensor is its group
	Value       json.RawMessage `json:"value"`
	Unit        string          `json:"unit"`
	SourceTime  string          `json:"source_time"`
	SentTime    json.RawMessage `json:"source_time_sent"`
	Feature     string          `json:"feature"`
	WindowStart string          `json:"window_start"`
	Revision    uint64          `json:"revision"`
	Reason      string          `json:"reason"`
	Detail      string          `json:"detail"`
	Count       uint64          `json:"count"`
	FirstBlock  uint64          `json:"first_block"`
	LastBlock   uint64          `json:"last_block"`
}

// printEvidence prints one piece in one line.
func printEvidence(w io.Writer, e *gateway.Evidence) error {
	var f evidenceFace
	what := "it cannot be read: " + e.Fault
	if e.Fault == "" {
		_ = json.Unmarshal(e.Record, &f) // a member of another form is not shown
		what = f.text(e)
	}
	_, err := fmt.Fprintf(w, "%s  %-13s  %s\n", moment(e.KeptAt), cmp.Or(e.Kind, "-"), what)
	return err
}

func (f *evidenceFace) text(e *gateway.Evidence) string {
	switch {
	case e.Kind == gateway.EvidenceLate:
		return fmt.Sprintf("%s, for %s: %s", f.reading(), f.window(), f.Reason)
	case e.Kind == gateway.EvidenceQuarantined && f.Count > 0:
		return fmt.Sprintf("%d more of %s, in blocks %d to %d of the journal: %s", f.Count, printable(f.Input), f.FirstBlock, f.LastBlock, f.Reason)
	case e.Kind == gateway.EvidenceQuarantined:
		return fmt.Sprintf("%s: %s", f.reading(), f.Reason)
	case e.Kind == gateway.EvidenceRejected:
		return fmt.Sprintf("%s, of %s: %s, %s", f.Kind, printable(f.Input), f.Reason, printable(f.Detail))
	}
	return fmt.Sprintf("%s, for uplink %s: %s", f.record(), e.Uplink, e.Reason)
}

// record names a record of any type.
func (f *evidenceFace) record() string {
	switch {
	case f.Kind != "":
		return f.Type + " " + f.Kind
	case len(f.Value) > 0:
		return f.Type + " " + f.reading()
	case f.WindowStart != "":
		return fmt.Sprintf("%s %s %s, revision %d", f.Type, printable(history.Name(f.Asset, f.Sensor)), f.window(), f.Revision)
	}
	return strings.TrimSpace(f.Type + " " + printable(f.Feature))
}

// reading is what a reading said, and of when.
func (f *evidenceFace) reading() string {
	text := fmt.Sprintf("%s %s", printable(history.Name(f.Asset, cmp.Or(f.Member, f.Sensor))), clip(valueText(&history.Reading{Value: f.Value, Unit: f.Unit}), 40))
	switch {
	case f.SourceTime != "":
		return text + " of " + f.SourceTime
	case len(f.SentTime) > 0 && string(f.SentTime) != "null":
		return text + " of " + string(f.SentTime)
	}
	return text + " without a source time"
}

func (f *evidenceFace) window() string { return printable(f.Feature) + " " + f.WindowStart }

// evidenceSteps says what to do about each kind.
var evidenceSteps = map[gateway.EvidenceKind]string{
	gateway.EvidenceLate:          "tidemark reconcile rebuilds their windows with them; tidemark advise shows which allowed_lateness would take them",
	gateway.EvidenceQuarantined:   "tidemark quarantine list says what to set; tidemark quarantine release has them judged again",
	gateway.EvidenceRejected:      "mend the device, or the input's format and paths; tidemark status counts them by reason",
	gateway.EvidenceUndeliverable: handOver,
	gateway.EvidenceUnsent:        handOver,
}

const handOver = "mend the broker as the lines say; they are not sent again: --json has them for the consumer"

// printEvidenceTotals says how much there is of each kind, and what to do.
func printEvidenceTotals(w io.Writer, counts map[gateway.EvidenceKind]uint64) error {
	text := ""
	for _, k := range gateway.EvidenceKinds() {
		if n := counts[k]; n > 0 {
			text += fmt.Sprintf("\n%d %s: %s", n, k, evidenceSteps[k])
		}
	}
	_, err := fmt.Fprintln(w, cmp.Or(text, "no such evidence is kept"))
	return err
}
