package uplink

import (
	"tidemark/reading"
	"tidemark/windowing"
)

// Schema is the version of the records' JSON form.
const Schema = 1

// Encoder renders what the gateway says as records. It is a value, safe for use
// by several goroutines.
type Encoder struct {
	Gateway    string // part of every key and topic
	Generation uint64 // trusted wall time of the store's birth, in µs since 1970
	// Prefix is the first levels of every topic; it may contain slashes.
	Prefix string
	// Finals renders a closing that carries the window's last result as that
	// result, with the status final.
	Finals bool
}

// head is what a record's user properties repeat of its content.
type head struct {
	kind     string // the record's type
	revision uint32 // 0 for records that are never revised
	updateID [updateIDLen]byte
	clock    reading.ClockState
}

// AppendReplay appends e as a line of `tidemark replay` without the line break.
// after is the number of the operation that caused it. A replay has no gateway:
// what belongs to one is left out, as are empty names and unknown times.
func AppendReplay(dst []byte, after int, e *windowing.Emission) []byte {
	o := object{append(dst, '{')}
	o.int("after", int64(after))
	o.str("type", typeName(e.Kind))
	(&emissionWriter{object: &o, e: e}).body()
	o.end()
	return o.b
}

// appendEmission appends e as the record that goes upstream: one JSON object
// without a line break. Duplicates and watermarks have a form too; they are not
// sent.
func (c *Encoder) appendEmission(dst []byte, e *windowing.Emission, known *memo) ([]byte, head) {
	h := head{kind: typeName(e.Kind), revision: e.Revision, updateID: c.emissionID(e, known), clock: clockState(e)}
	o := object{append(dst, '{')}
	c.head(&o, &h)
	(&emissionWriter{object: &o, e: e, upstream: true, known: known}).body()
	o.end()
	return o.b, h
}

// head writes what every record begins with.
func (c *Encoder) head(o *object, h *head) {
	o.str("type", h.kind)
	o.int("schema", Schema)
	o.str("gateway", c.Gateway)
	o.uint("generation", c.Generation)
	o.uint("revision", uint64(h.revision))
	o.key("update_id")
	o.b = append(o.b, '"')
	o.b = append(o.b, h.updateID[:]...)
	o.b = append(o.b, '"')
}

// clockState is the clock state of a record: of a feature, the worst that its
// readings saw; of a reading, the one at its arrival.
func clockState(e *windowing.Emission) reading.ClockState {
	if e.Reading == nil {
		return e.Clock.State
	}
	return stampClock(e.Reading)
}

func stampClock(r *reading.Reading) reading.ClockState {
	if seg := r.Stamp.Clock; seg != nil {
		return seg.State
	}
	return reading.ClockUnknown
}

// typeName is the type of an emission's record.
func typeName(k windowing.EmissionKind) string {
	if k >= windowing.EmitSilent {
		return typeEvent
	}
	return k.String()
}

const (
	typeFeature = "feature"
	typeEvent   = "event"
	typeRaw     = "raw"
	typeBatch   = "batch"
)

// emissionWriter renders one emission, upstream or as a line of a replay.
type emissionWriter struct {
	*object
	e        *windowing.Emission
	upstream bool
	known    *memo
}

func (w *emissionWriter) body() {
	switch w.e.Kind {
	case windowing.EmitFeature:
		w.feature()
	case windowing.EmitClosed:
		w.closed()
	case windowing.EmitLate:
		w.late()
	case windowing.EmitDuplicate:
		w.duplicate()
	case windowing.EmitQuarantine:
		w.quarantine()
	case windowing.EmitWatermark:
		w.str("feature", w.e.Feature.Name)
		w.int("version", int64(w.e.Feature.Version))
		w.timeMS("time", w.e.WatermarkMS)
	case windowing.EmitSilent:
		w.silence(EventSilent)
	case windowing.EmitResumed:
		w.silence(EventResumed)
	}
}

// name writes a name that a replay leaves out where it is empty.
func (w *emissionWriter) name(key, v string) {
	if w.upstream || v != "" {
		w.str(key, v)
	}
}

// moment writes a time that a replay leaves out where there is none.
func (w *emissionWriter) moment(key string, ns int64) {
	if w.upstream || ns != reading.NoTime {
		w.time(key, ns)
	}
}

// windowKey writes the key of a window, the gateway excepted.
func (w *emissionWriter) windowKey() {
	e := w.e
	w.name("asset", e.Asset)
	w.name("lifecycle", e.Lifecycle)
	w.str("sensor", e.Sensor)
	w.str("feature", e.Feature.Name)
	w.int("version", int64(e.Feature.Version))
	if w.upstream {
		w.hash("definition", e.Feature.Definition)
		w.hash("tuning", e.Feature.Tuning)
	}
	w.timeMS("window_start", e.StartMS)
	w.timeMS("window_end", e.EndMS)
}

// marks ends a record: where the watermark stood, and when it was written.
func (w *emissionWriter) marks() {
	w.timeMS("watermark", w.e.WatermarkMS)
	if w.upstream {
		w.committed("materialized_at")
	}
}

// committed is the wall time of the commit, null if it is not known.
func (w *emissionWriter) committed(name string) {
	if w.e.MaterializedNS == 0 {
		w.null(name)
		return
	}
	w.time(name, w.e.MaterializedNS)
}

// revision stands in the head of a record, and in the body of a replay's line.
func (w *emissionWriter) revision() {
	if !w.upstream {
		w.uint("revision", uint64(w.e.Revision))
	}
}

func (w *emissionWriter) feature() {
	e := w.e
	w.windowKey()
	w.revision()
	w.str("status", e.Status())
	w.str("cause", e.Cause.String())
	if e.Reason != windowing.ReasonNone {
		w.str("reason", e.Reason.String()) // a window closed before its time
	}
	if e.PartialStart {
		w.bool("partial_start", true)
	}
	w.values()
	w.units()
	w.coverage()
	w.qualities()
	if w.upstream {
		w.clockSummary()
	}
	w.open("inputs")
	w.list("active", e.Inputs.Active)
	w.list("idle", e.Inputs.Idle)
	w.list("stalled", e.Inputs.Stalled)
	w.int("active_count", int64(e.Inputs.ActiveCount))
	w.int("idle_count", int64(e.Inputs.IdleCount))
	w.int("stalled_count", int64(e.Inputs.StalledCount))
	w.end()
	w.marks()
}

// qualities counts the readings by quality.
func (w *emissionWriter) qualities() {
	q := &w.e.Quality
	w.open("quality")
	w.int("good", q.Good)
	w.int("uncertain", q.Uncertain)
	w.int("bad", q.Bad)
	w.end()
}

// clockSummary is the worst that the readings say about their times.
func (w *emissionWriter) clockSummary() {
	c := &w.e.Clock
	w.open("clock")
	w.str("state", c.State.String())
	w.bound("max_error_ms", c.MaxBound)
	w.list("flags", c.Flags.Names())
	w.end()
}

func (w *emissionWriter) values() {
	w.open("values")
	for i := range w.e.Values {
		v := &w.e.Values[i]
		w.member(v.Name)
		w.b = v.Value.AppendJSON(w.b)
	}
	w.end()
}

// units names the unit of each statistic that has one.
func (w *emissionWriter) units() {
	w.open("units")
	for i := range w.e.Values {
		if unit := w.known.unit(w.e.Values[i].Name, w.e.Unit); unit != "" {
			w.member(w.e.Values[i].Name)
			w.b = reading.AppendJSONString(w.b, unit)
		}
	}
	w.end()
}

// member starts a member whose name comes from the configuration or the data.
func (o *object) member(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = reading.AppendJSONString(o.b, name)
	o.b = append(o.b, ':')
}

// coverage leaves null what the configuration gives no ground to know.
func (w *emissionWriter) coverage() {
	c := &w.e.Coverage
	w.open("coverage")
	w.count("expected", c.Expected)
	w.int("observed", c.Observed)
	if c.Expected > 0 {
		w.float("ratio", float64(c.Observed)/float64(c.Expected))
	} else {
		w.null("ratio")
	}
	w.count("longest_gap_ms", c.LongestGapMS)
	w.count("covered_ms", c.CoveredMS)
	w.int("certain", c.Certain)
	w.end()
}

// silence renders a sensor that fell silent, or speaks again, as an event.
func (w *emissionWriter) silence(kind string) {
	w.str("kind", kind)
	if w.upstream {
		w.committed("at")
		w.clockState(w.e.Clock.State)
	}
	w.name("asset", w.e.Asset)
	w.name("lifecycle", w.e.Lifecycle)
	w.str("sensor", w.e.Sensor)
	w.timeMS("last_event_time", w.e.StartMS)
	w.int("quiet_ms", w.e.QuietMS)
}

func (w *emissionWriter) closed() {
	w.windowKey()
	w.revision()
	if w.upstream {
		w.text("reason", w.e.Reason.String())
		w.clockState(w.e.Clock.State)
	} else if w.e.Reason != windowing.ReasonNone {
		w.str("reason", w.e.Reason.String())
	}
	w.marks()
}
