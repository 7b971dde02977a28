package windowing

import (
	"errors"
	"fmt"

	"tidemark/reading"
)

// emissionVersion is the first byte of an encoded emission.
const emissionVersion = 2

// AppendEmission appends the canonical binary form of m, which knows its own end:
// equal emissions have equal bytes.
func AppendEmission(dst []byte, m *Emission) []byte {
	w := wire{buf: append(dst, emissionVersion), version: emissionVersion}
	copied := *m
	w.emission(&copied)
	return w.buf
}

// Names reads emissions and shares their texts, which are the same few names. It
// is for one goroutine. The zero value is ready for use.
type Names struct{ known map[string]string }

// namesMax bounds what is remembered.
const namesMax = 1 << 14

func (n *Names) text(b []byte) string {
	if n == nil {
		return string(b)
	}
	if s, ok := n.known[string(b)]; ok {
		return s
	}
	if n.known == nil || len(n.known) >= namesMax {
		n.known = make(map[string]string)
	}
	s := string(b)
	n.known[s] = s
	return s
}

// DecodeEmission reads one emission from the front of src and returns what
// follows it. It fails on damage and on a form of a newer version.
func (n *Names) DecodeEmission(src []byte) (m Emission, rest []byte, err error) {
	if len(src) == 0 {
		return m, nil, errors.New("stored emission: it is empty")
	}
	if src[0] == 0 || src[0] > emissionVersion {
		return m, nil, fmt.Errorf("stored emission: version %d is not known here (%d is): use the release that wrote it", src[0], emissionVersion)
	}
	w := wire{buf: src, at: 1, reading: true, version: src[0], names: n}
	w.emission(&m)
	if w.err != nil {
		return Emission{}, nil, fmt.Errorf("stored emission: %w", w.err)
	}
	return m, src[w.at:], nil
}

// StoredKind returns the kind of an encoded emission, 0 if it cannot be told.
func StoredKind(src []byte) EmissionKind {
	if len(src) < 2 {
		return 0
	}
	return EmissionKind(src[1])
}

func (w *wire) emission(m *Emission) {
	code(w, &m.Kind, EmitResumed)
	if w.reading && m.Kind == 0 {
		w.fail(errors.New("kind 0"))
	}
	switch m.Kind {
	case EmitFeature:
		w.featureID(&m.Feature)
		w.place(m)
		w.u32(&m.Revision)
		w.featureBody(m)
		w.i64(&m.WatermarkMS)
		w.i64(&m.MaterializedNS)
	case EmitClosed:
		w.featureID(&m.Feature)
		w.place(m)
		w.u32(&m.Revision)
		code(w, &m.Reason, ReasonRetired)
		if w.version > 1 {
			w.flag(&m.Final)
		}
		if m.Final {
			w.featureBody(m)
		} else {
			w.clock(&m.Clock)
		}
		w.i64(&m.WatermarkMS)
		w.i64(&m.MaterializedNS)
	case EmitLate:
		w.featureID(&m.Feature)
		w.place(m)
		code(w, &m.Reason, ReasonRetired)
		w.i64(&m.WatermarkMS)
		w.read(&m.Reading)
	case EmitDuplicate:
		w.flag(&m.Conflict)
		w.read(&m.Reading)
	case EmitQuarantine:
		w.read(&m.Reading)
	case EmitWatermark:
		w.featureID(&m.Feature)
		w.i64(&m.WatermarkMS)
	case EmitSilent, EmitResumed:
		w.place(m)
		w.i64(&m.QuietMS)
		w.clock(&m.Clock)
		w.i64(&m.WatermarkMS)
		w.i64(&m.MaterializedNS)
	}
}

func (w *wire) clock(c *ClockSummary) {
	code(w, &c.State, reading.ClockUnreliable)
	code(w, &c.MaxBound, ^reading.Bound(0))
	w.flags(&c.Flags)
}

// place is the key and the window.
func (w *wire) place(m *Emission) {
	w.str(&m.Asset)
	w.str(&m.Lifecycle)
	w.str(&m.Sensor)
	w.i64(&m.StartMS)
	w.i64(&m.EndMS)
}

func (w *wire) featureBody(m *Emission) {
	code(w, &m.Cause, CauseStateLimit)
	list(w, &m.Values, func(w *wire, v *NamedValue) {
		w.str(&v.Name)
		w.value(&v.Value)
	})
	w.str(&m.Unit)
	for _, p := range [...]*int64{
		&m.Coverage.Expected, &m.Coverage.Observed, &m.Coverage.LongestGapMS, &m.Coverage.CoveredMS, &m.Coverage.Certain,
		&m.Quality.Good, &m.Quality.Uncertain, &m.Quality.Bad,
	} {
		w.i64(p)
	}
	w.clock(&m.Clock)
	for _, p := range [...]*[]string{&m.Inputs.Active, &m.Inputs.Idle, &m.Inputs.Stalled} {
		w.strings(p)
	}
	for _, p := range [...]*int{&m.Inputs.ActiveCount, &m.Inputs.IdleCount, &m.Inputs.StalledCount} {
		w.integer(p)
	}
	w.flag(&m.PartialStart)
}

// read is the reading that the emission is about; it must have one.
func (w *wire) read(p **reading.Reading) {
	if !w.reading {
		w.buf = reading.AppendReading(w.buf, *p)
		return
	}
	if w.err != nil {
		return
	}
	r, rest, err := reading.DecodeReading(w.buf[w.at:])
	if err != nil {
		w.fail(err)
		return
	}
	*p, w.at = &r, len(w.buf)-len(rest)
}
