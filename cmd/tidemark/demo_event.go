package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
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
	demoQuarantined demoKind = "quarantined"
	demoMachine     demoKind = "machine" // what a simulated machine does
	demoClock       demoKind = "clock"
)

// demoEvent is one thing that the demo tells, free of where it came from.
type demoEvent struct {
	Kind   demoKind
	At     time.Time // when it showed
	Series string    // asset/sensor; of a machine, its name
	Words  string    // of what is no result: what happened
	Fold   string    // what is alike is told as one, where Kind and Series are too; empty: never
	Times  int       // that it happened, after folding

	// Of a window.
	Start, End     time.Time
	Revision       int
	Partial        bool // the gateway was not there when the window began
	Count          int64
	Mean, Min, Max float64 // NaN where there is none
	Unit           string
	Made           time.Time     // when the result was; zero if not known
	Was            *demoRevision // of a correction, what it corrects; nil if that was not seen
}

// demoRevision is what a correction replaces.
type demoRevision struct {
	Count int64
	Mean  float64
}

// asset is the machine that the event is about.
func (e *demoEvent) asset() string {
	asset, _, _ := strings.Cut(e.Series, "/")
	return asset
}

// count is the number of readings, with that before the correction.
func (e *demoEvent) count() string {
	if e.Was == nil {
		return strconv.FormatInt(e.Count, 10)
	}
	return fmt.Sprintf("%d → %d", e.Was.Count, e.Count)
}

// mean is the mean, with that before the correction.
func (e *demoEvent) mean() string {
	if e.Was == nil {
		return demoNumber(e.Mean)
	}
	return demoNumber(e.Was.Mean) + " → " + demoNumber(e.Mean)
}

// told is what the lane says of the event.
func (e *demoEvent) told() string {
	if e.Kind != demoCorrected {
		return e.Words
	}
	words := fmt.Sprintf("%s: %s, %s readings", demoSpan(e.Start, e.End), e.mean(), e.count())
	if !e.Made.IsZero() {
		words += ", " + demoSeconds(e.Made.Sub(e.End)) + " after its end"
	}
	return words
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
	MaterializedAt                      time.Time `json:"materialized_at"`
	PartialStart                        bool      `json:"partial_start"`
	Revision                            int
	Values                              struct {
		Count          int64
		Mean, Min, Max *float64
	}
	Units      struct{ Mean string }
	SourceTime *time.Time `json:"source_time"`
	IngestTime *time.Time `json:"ingest_time"`
	SentTime   any        `json:"source_time_sent"` // a number or a text, as the device sent it
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
		e.Partial, e.Made = r.PartialStart, r.MaterializedAt
	case "closed":
		e.Kind = demoClosed
	case "late":
		e.Kind, e.Words, e.Fold = demoLate, r.lateWords(), r.Reason
	case "quarantine":
		e.Kind, e.Words, e.Fold = demoQuarantined, r.quarantineWords(), r.Reason
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
	words := "late"
	if r.SourceTime != nil && r.IngestTime != nil {
		words = demoSeconds(r.IngestTime.Sub(*r.SourceTime)) + " late"
	}
	if r.Reason == "before_generation" {
		return words + ", older than the store"
	}
	return words + ", window " + demoSpan(r.WindowStart, r.WindowEnd) + " is closed"
}

// quarantineReasons says in words why a reading is not trusted.
var quarantineReasons = map[string]string{
	"SOURCE_DECLARED_BAD": "the device says its clock has failed",
	"FROZEN":              "its clock stands still, its values move",
	"UPTIME_COUNTER":      "sends its uptime for a time",
	"REGRESSION":          "its clock went backward",
	"UNIT_MISMATCH":       "stamped in another unit than agreed",
	"TS_UNPARSEABLE":      "its time cannot be read",
	"TS_SENTINEL":         "its time is a placeholder",
	"OFFSET_AHEAD":        "its clock is proven to be ahead",
	"OFFSET_BEHIND":       "its clock is proven to be behind",
	"TZ_SHAPED":           "its clock is off by a time zone",
	"TAI_SHAPED":          "its clock runs on TAI",
	"GPS_SHAPED":          "its clock runs on GPS time",
	"FUTURE":              "stamped in the future",
	"TOO_OLD":             "stamped too far in the past",
	"BOUND_TOO_WIDE":      "its time is too uncertain for a window",
	"SOURCE_TIME_RANGE":   "its time is outside of what can be counted",
}

func (r *demoRecord) quarantineWords() string {
	sent, number := r.SentTime.(float64)
	timed := r.SourceTime != nil && r.IngestTime != nil
	switch {
	case r.Reason == "FUTURE" && timed:
		return "stamped " + demoSeconds(r.SourceTime.Sub(*r.IngestTime)) + " in the future"
	case r.Reason == "UNIT_MISMATCH" && timed && number:
		return "stamped in " + stampUnit(sent, *r.IngestTime) + ", not " + stampUnit(sent, *r.SourceTime)
	}
	if words := quarantineReasons[r.Reason]; words != "" {
		return words
	}
	return strings.ToLower(strings.ReplaceAll(r.Reason, "_", " "))
}

// stampUnit is the unit in which a number since 1970 comes closest to t.
func stampUnit(n float64, t time.Time) string {
	best, off := "", math.Inf(1)
	for _, u := range []struct {
		name    string
		seconds float64
	}{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}} {
		if d := math.Abs(n*u.seconds - float64(t.UnixNano())/1e9); d < off {
			best, off = u.name, d
		}
	}
	return best
}

// demoSeconds is a length of time in seconds, to a tenth below ten.
func demoSeconds(d time.Duration) string {
	if d.Abs() >= 10*time.Second {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func demoNumber(f float64) string {
	if math.IsNaN(f) {
		return "–"
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// demoSpan is a window as people read it, UTC: 12:00:10–20.
func demoSpan(start, end time.Time) string {
	if end.Sub(start) < time.Minute {
		return start.UTC().Format("15:04:05") + "–" + end.UTC().Format("05")
	}
	return start.UTC().Format("15:04:05") + "–" + end.UTC().Format("15:04:05")
}
