package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// demoKind is what kind of thing a demoEvent tells. The text is what people read.
type demoKind string

const (
	demoProvisional demoKind = "provisional"
	demoCorrected   demoKind = "corrected"
	demoClosed      demoKind = "closed"
	demoLate        demoKind = "late"
	demoSetAside    demoKind = "set aside"
	demoMachine     demoKind = "machine" // what a simulated machine does
	demoClock       demoKind = "clock"
)

// demoEvent is one thing that the demo tells, free of where it came from.
type demoEvent struct {
	Kind   demoKind
	At     time.Time // when it showed
	Series string    // asset/sensor; of a machine, its name
	Words  string    // of what is no result: what happened

	// Of a window.
	Start, End     time.Time
	Revision       int
	Count          int64
	Mean, Min, Max float64 // NaN where there is none
	Unit           string
}

// isWindow reports whether e is about a row of the table.
func (e *demoEvent) isWindow() bool {
	return e.Kind == demoProvisional || e.Kind == demoCorrected || e.Kind == demoClosed
}

// demoRecord is what the demo reads of an upstream record.
type demoRecord struct {
	Type, Asset, Sensor, Status, Reason string
	WindowStart                         time.Time `json:"window_start"`
	WindowEnd                           time.Time `json:"window_end"`
	Revision                            int
	Values                              struct {
		Count          int64
		Mean, Min, Max *float64
	}
	Units      struct{ Mean string }
	SourceTime *time.Time `json:"source_time"`
	IngestTime *time.Time `json:"ingest_time"`
	SentTime   any        `json:"source_time_sent"`
}

// readDemoRecord turns an upstream record into what the demo tells of it; false
// for what it does not tell, such as definitions.
func readDemoRecord(payload []byte, at time.Time) (e demoEvent, ok bool, err error) {
	var r demoRecord
	if err := json.Unmarshal(payload, &r); err != nil {
		return e, false, fmt.Errorf("cannot read a record: %w", err)
	}
	e = demoEvent{At: at, Series: r.Asset + "/" + r.Sensor, Start: r.WindowStart, End: r.WindowEnd, Revision: r.Revision}
	switch r.Type {
	case "feature":
		e.Kind = demoKind(r.Status)
		e.Count, e.Unit = r.Values.Count, r.Units.Mean
		e.Mean, e.Min, e.Max = orNaN(r.Values.Mean), orNaN(r.Values.Min), orNaN(r.Values.Max)
	case "closed":
		e.Kind = demoClosed
	case "late":
		e.Kind, e.Words = demoLate, r.lateWords()
	case "quarantine":
		e.Kind, e.Words = demoSetAside, r.setAsideWords()
	default:
		return e, false, nil
	}
	return e, true, nil
}

func orNaN(f *float64) float64 {
	if f == nil {
		return math.NaN()
	}
	return *f
}

func (r *demoRecord) lateWords() string {
	after := "late"
	if r.SourceTime != nil && r.IngestTime != nil {
		after = demoSeconds(r.IngestTime.Sub(*r.SourceTime)) + " late"
	}
	why := "window " + demoSpan(r.WindowStart, r.WindowEnd) + " is closed"
	if r.Reason == "before_generation" {
		why = "it is older than the store"
	}
	return "came " + after + ": " + why + ", kept as evidence"
}

// setAsideReasons says in words why a reading is not trusted.
var setAsideReasons = map[string]string{
	"SOURCE_DECLARED_BAD": "the device itself says that its clock has failed",
	"FROZEN":              "its clock stands still while its values move",
	"UPTIME_COUNTER":      "it sends its uptime for a time",
	"REGRESSION":          "its clock went backward",
	"UNIT_MISMATCH":       "its time is in another unit than agreed",
	"TS_UNPARSEABLE":      "its time cannot be read",
	"TS_SENTINEL":         "its time is a placeholder",
	"OFFSET_AHEAD":        "its clock is proven to be ahead",
	"OFFSET_BEHIND":       "its clock is proven to be behind",
	"TZ_SHAPED":           "its clock is off by a time zone",
	"TAI_SHAPED":          "its clock runs on TAI",
	"GPS_SHAPED":          "its clock runs on GPS time",
	"FUTURE":              "it is stamped in the future",
	"TOO_OLD":             "it is stamped too far in the past",
	"BOUND_TOO_WIDE":      "its time is less certain than a window is long",
	"SOURCE_TIME_RANGE":   "its time is outside of what can be counted",
}

func (r *demoRecord) setAsideWords() string {
	words := setAsideReasons[r.Reason]
	switch {
	case words == "":
		words = strings.ToLower(strings.ReplaceAll(r.Reason, "_", " "))
	case r.Reason == "FUTURE" && r.SourceTime != nil && r.IngestTime != nil:
		words = "it is stamped " + demoSeconds(r.SourceTime.Sub(*r.IngestTime)) + " in the future"
	case r.Reason == "UNIT_MISMATCH" && r.SourceTime != nil:
		words += fmt.Sprintf(": read so it would be %s", r.SourceTime.UTC().Format("January 2006"))
	}
	return words
}

// demoSeconds is a length of time in seconds to a tenth.
func demoSeconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// demoSpan is a window as people read it, UTC: 12:00:10–20.
func demoSpan(start, end time.Time) string {
	if end.Sub(start) < time.Minute {
		return start.UTC().Format("15:04:05") + "–" + end.UTC().Format("05")
	}
	return start.UTC().Format("15:04:05") + "–" + end.UTC().Format("15:04:05")
}
