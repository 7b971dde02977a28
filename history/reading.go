package history

import (
	"encoding/json"
	"strings"

	"tidemark/reading"
	"tidemark/windowing"
)

// Reading is a reading as people and their programs see it. The names are those
// of the records that go upstream; a time that is not known is empty.
type Reading struct {
	Input     string `json:"input"`
	Asset     string `json:"asset"`
	Device    string `json:"device"`
	Lifecycle string `json:"lifecycle"`
	Sensor    string `json:"sensor"`

	ID  string  `json:"id"`
	Seq *uint64 `json:"seq"` // null where the source counts nothing

	Value         json.RawMessage `json:"value"`
	Unit          string          `json:"unit"`
	Quality       string          `json:"quality"`
	QualityStatus uint32          `json:"quality_status"`

	SourceTime     string   `json:"source_time"`      // as read
	SourceTimeSent string   `json:"source_time_sent"` // where that says more than source_time
	IngestTime     string   `json:"ingest_time"`
	EventTime      string   `json:"event_time"`     // decides the window; empty unless accepted
	EventErrorMS   *float64 `json:"event_error_ms"` // null if no bound is known

	Verdict  Verdict  `json:"verdict"`
	Reason   string   `json:"reason"` // of a quarantine, a pending, a late or an excluded one; else empty
	Flags    []string `json:"flags"`
	Delivery []string `json:"delivery"` // initial, historical, redelivered, rejudged, released
	Clock    string   `json:"clock"`    // state of the gateway's clock at arrival
}

// Verdict is what became of a reading.
type Verdict string

// The verdicts. A reading that is late for one feature's window and in time for
// another's is late.
const (
	Accepted    Verdict = "accepted"
	Late        Verdict = "late"
	Excluded    Verdict = "excluded" // accepted, its time too uncertain for this window
	Duplicate   Verdict = "duplicate"
	Quarantined Verdict = "quarantined"
	Pending     Verdict = "pending"
	Initial     Verdict = "initial" // sets a held value only
	Unjudged    Verdict = "unjudged"
)

var verdicts = [...]Verdict{
	windowing.OutcomeUnjudged: Unjudged, windowing.OutcomeAccepted: Accepted, windowing.OutcomeDuplicate: Duplicate,
	windowing.OutcomeQuarantined: Quarantined, windowing.OutcomePending: Pending, windowing.OutcomeInitial: Initial,
}

// VerdictOf names an outcome of the engine.
func VerdictOf(o windowing.Outcome) Verdict { return verdicts[min(int(o), len(verdicts)-1)] }

// Judged names what the clock rules alone make of a reading.
func Judged(r *reading.Reading) Verdict {
	switch r.Stamp.Disposition {
	case reading.Accept, reading.Flag:
		if r.Delivery.Has(reading.Initial) {
			return Initial
		}
		return Accepted
	case reading.Quarantine:
		return Quarantined
	case reading.Pending:
		return Pending
	}
	return Unjudged
}

// Show renders a reading with its verdict.
func Show(r *reading.Reading, v Verdict) Reading {
	s := r.Tag.Value()
	out := Reading{
		Input: s.Input, Asset: s.Asset, Device: s.Device, Lifecycle: s.Lifecycle, Sensor: s.Sensor,
		ID: r.ID, Value: r.Value.AppendJSON(nil), Unit: r.Unit,
		Quality: r.Quality.Level.String(), QualityStatus: r.Quality.Status,
		SourceTime: Time(r.Source.NS), SourceTimeSent: r.Source.Raw, IngestTime: Time(r.IngestNS), EventTime: Time(r.Stamp.EventNS),
		Verdict: v, Flags: r.Stamp.Flags.Names(), Delivery: r.Delivery.Names(), Clock: reading.ClockUnknown.String(),
	}
	if r.HasSeq {
		seq := r.Seq
		out.Seq = &seq
	}
	if r.Stamp.EventNS != reading.NoTime && r.Stamp.EventBound.Known() {
		ms := float64(r.Stamp.EventBound.NS()) / 1e6
		out.EventErrorMS = &ms
	}
	if v == Quarantined || v == Pending {
		out.Reason = r.Stamp.Reason.String()
	}
	if seg := r.Stamp.Clock; seg != nil {
		out.Clock = seg.State.String()
	}
	if out.Flags == nil {
		out.Flags = []string{}
	}
	if out.Delivery == nil {
		out.Delivery = []string{}
	}
	return out
}

// Name is the series as a person types it; an empty level is _, as in topics.
func Name(asset, sensor string) string {
	if asset == "" {
		asset = "_"
	}
	return asset + "/" + sensor
}

// ParseName is the inverse of Name. A sensor may contain slashes, an asset not.
func ParseName(s string) (asset, sensor string, ok bool) {
	asset, sensor, ok = strings.Cut(s, "/")
	if asset == "_" {
		asset = ""
	}
	return asset, sensor, ok && sensor != ""
}

// Time is a moment in Unix nanoseconds as RFC 3339, empty for none.
func Time(ns int64) string {
	if ns == reading.NoTime {
		return ""
	}
	return strings.Trim(string(reading.AppendJSONTime(nil, ns)), `"`)
}

// TimeMS is Time of Unix milliseconds.
func TimeMS(ms int64) string {
	if ms == reading.NoTime {
		return ""
	}
	return strings.Trim(string(reading.AppendJSONTimeMS(nil, ms)), `"`)
}
