package uplink

import (
	"encoding/base64"
	"unicode/utf8"

	"tidemark/reading"
	"tidemark/windowing"
)

// Kinds of events; each has its own topic below event/.
const (
	EventLoss            = "loss"             // something was dropped: what, how much, why
	EventGap             = "gap"              // a source skipped something
	EventSilent          = "silent"           // an input stopped speaking
	EventResumed         = "resumed"          // and speaks again
	EventClock           = "clock"            // the gateway's clock changed its state
	EventEpochCorrection = "epoch_correction" // maps ingest times of an earlier clock epoch
	EventStoreSetAside   = "store_set_aside"  // a store that could not be opened
	EventStoreRestored   = "store_restored"   // a store that was brought back from a backup
	EventConfig          = "config"           // another configuration is in force, or was refused
	EventMismatch        = "mismatch"         // the journal, stepped again, gave other results; they follow in a new generation
	EventQuarantine      = "quarantine"       // a flood: how many more readings went there, in which blocks
	EventRelease         = "release"          // somebody had quarantined readings judged again
	EventMalformed       = "malformed"        // received, and unreadable
	EventUnmatched       = "unmatched"        // received, and of no configured tag
)

// Event is a rare record. Its members stand in the order in which they are
// given; the names type, schema, gateway, generation, revision, update_id, kind,
// at and clock are taken.
type Event struct{ o object }

// NewEvent begins an event of that kind which happened at the Unix nanosecond
// atNS while the gateway's clock was in that state.
func NewEvent(kind string, atNS int64, clock reading.ClockState) *Event {
	e := &Event{object{append(make([]byte, 0, 256), '{')}}
	e.o.str("kind", kind)
	e.o.time("at", atNS)
	e.o.clockState(clock)
	return e
}

// Str adds text.
func (e *Event) Str(name, v string) *Event { e.o.str(name, v); return e }

// Int adds a whole number.
func (e *Event) Int(name string, v int64) *Event { e.o.int(name, v); return e }

// Uint adds a whole number.
func (e *Event) Uint(name string, v uint64) *Event { e.o.uint(name, v); return e }

// Time adds a moment in Unix nanoseconds, null for reading.NoTime.
func (e *Event) Time(name string, ns int64) *Event { e.o.time(name, ns); return e }

// Millis adds a length of time, given in nanoseconds, in milliseconds. The name
// should end in _ms.
func (e *Event) Millis(name string, ns int64) *Event { e.o.millis(name, ns); return e }

// List adds texts.
func (e *Event) List(name string, vs []string) *Event { e.o.list(name, vs); return e }

// Record returns the event as an outbox record of KindEvent. Nothing may be added
// afterwards.
func (e *Event) Record() []byte { e.o.end(); return e.o.b }

// RejectEvent tells of received data that became no reading. The excerpt is text
// where it is UTF-8, else base64.
func RejectEvent(input string, r *reading.Reject, clock reading.ClockState) *Event {
	e := NewEvent(r.Kind.String(), r.IngestNS, clock)
	e.Str("input", input).Str("reason", r.Reason).Str("detail", r.Detail).Str("place", r.Place)
	e.o.text("id", r.ID)
	if utf8.Valid(r.Excerpt) {
		return e.Str("excerpt", string(r.Excerpt))
	}
	return e.Str("excerpt_base64", base64.StdEncoding.EncodeToString(r.Excerpt))
}

// DefinitionRecord returns the definition of a feature as an outbox record of
// KindDefinition, in force from the Unix nanosecond atNS. spec is the JSON value that
// says what determines the feature's values; it must be valid.
func DefinitionRecord(id windowing.FeatureID, atNS int64, clock reading.ClockState, spec []byte) []byte {
	o := object{append(make([]byte, 0, 256+len(spec)), '{')}
	o.str("feature", id.Name)
	o.int("version", int64(id.Version))
	o.hash("definition", id.Definition)
	o.hash("tuning", id.Tuning)
	o.time("at", atNS)
	o.clockState(clock)
	o.key("spec")
	o.b = append(o.b, spec...)
	o.end()
	return o.b
}
