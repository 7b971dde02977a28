package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"tidemark/buffer"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/uplink"
	"tidemark/windowing"
)

// Kinds of evidence beside those of emissions. Codes are stored: append, never
// renumber.
const (
	evidenceUndeliverable byte = 128 + iota // an outbox record that no broker would take
	evidenceReject                          // an event's record about received data that became no reading
	evidenceRange                           // an event's record about a range of blocks with quarantined readings
	evidenceUnsent                          // a reading that no broker would take
)

// refusedRecord is what is kept of a record that no broker would take.
type refusedRecord struct {
	Uplink     string `json:"uplink"`
	Reason     string `json:"reason"`
	Finals     bool   `json:"finals,omitempty"` // the uplink's way of rendering
	Kind       byte   `json:"kind"`             // the record's, in the outbox
	Generation uint64 `json:"generation"`
	Data       []byte `json:"data"` // of the outbox, or a reading
}

// undeliverable records that an uplink's broker can never take a record: it is
// kept as evidence, and the loss goes upstream.
func (p *pipeline) undeliverable(uplinkName string, finals bool, a uplink.SetAside) {
	p.tell(func() {
		r := refusedRecord{
			Uplink: uplinkName, Reason: a.Reason, Finals: finals,
			Kind: a.Record.Kind, Generation: a.Record.Generation, Data: a.Record.Data,
		}
		kind := evidenceUndeliverable
		if a.Record.Reading != nil {
			kind, r.Data = evidenceUnsent, reading.AppendReading(nil, a.Record.Reading)
		}
		data, _ := json.Marshal(&r) // texts and numbers always can be
		p.evidence = append(p.evidence, buffer.Evidence{Kind: kind, AtMS: reading.FloorMS(p.clk.Now().WallNS), Data: data})
		p.ledger.Counts.Lost[lostUndeliverable]++
		p.note(p.event(uplink.EventLoss).Str("what", lostUndeliverable).Str("uplink", uplinkName).
			Uint("seq", a.Record.Seq).Str("topic", a.Topic).Str("reason", a.Reason))
	})
}

// keep puts an event's record into the evidence of the next commit.
func (p *pipeline) keep(kind byte, atMS int64, e *uplink.Event) {
	data := append(appendGeneration(nil, p.ledger.Generation), e.Record()...)
	p.evidence = append(p.evidence, buffer.Evidence{Kind: kind, AtMS: atMS, Data: data})
}

// EvidenceKind says why something is kept to be looked up later.
type EvidenceKind string

// The kinds of evidence.
const (
	EvidenceLate          EvidenceKind = "late"          // a reading that came after its window was closed
	EvidenceQuarantined   EvidenceKind = "quarantined"   // a reading whose time could not be trusted, or a range of them
	EvidenceRejected      EvidenceKind = "rejected"      // received, and no reading
	EvidenceUndeliverable EvidenceKind = "undeliverable" // a record that an uplink's broker would not take
	EvidenceUnsent        EvidenceKind = "unsent"        // a reading that an uplink's broker would not take
)

// EvidenceKinds returns every kind.
func EvidenceKinds() []EvidenceKind {
	return []EvidenceKind{EvidenceLate, EvidenceQuarantined, EvidenceRejected, EvidenceUndeliverable, EvidenceUnsent}
}

// Evidence is what the store keeps to be looked up later, as it went upstream or
// would have gone.
type Evidence struct {
	Seq    uint64       `json:"seq"` // counts what was ever kept
	Kind   EvidenceKind `json:"kind"`
	KeptAt string       `json:"kept_at"` // wall time of the commit
	// Uplink and Reason are of what was not taken: by whose broker, and why.
	Uplink string `json:"uplink,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Record is the whole record; null if it cannot be read, for which Fault says
	// why.
	Record json.RawMessage `json:"record"`
	Fault  string          `json:"fault,omitempty"`
}

// EvidenceSelection chooses from the evidence.
type EvidenceSelection struct {
	Kinds        []EvidenceKind // none is all
	FromMS, ToMS int64          // when it was kept, wall time, without the last; reading.NoTime is no bound
}

// ReadEvidence calls fn with the chosen evidence, the oldest first, until fn returns
// an error, which ReadEvidence returns. fn must not keep what it is given.
func ReadEvidence(ctx context.Context, j Journal, sel EvidenceSelection, fn func(*Evidence) error) error {
	info, err := j.Info(ctx)
	if err != nil {
		return err
	}
	enc := uplink.Encoder{Gateway: info.Gateway, Generation: info.Generation}
	var m uplink.Message
	return j.Evidence(ctx, func(e buffer.StoredEvidence) error {
		out := Evidence{Seq: e.Seq, Kind: evidenceForms[e.Kind].kind, KeptAt: history.TimeMS(e.AtMS)}
		if len(sel.Kinds) > 0 && !slices.Contains(sel.Kinds, out.Kind) ||
			sel.FromMS != reading.NoTime && e.AtMS < sel.FromMS || sel.ToMS != reading.NoTime && e.AtMS >= sel.ToMS {
			return nil
		}
		if err := out.render(enc, &m, &e); err != nil {
			out.Record, out.Fault = nil, err.Error()
		}
		return fn(&out)
	})
}

// evidenceForms say of each code what it is kept for, and of which kind the record is
// that follows its generation; 0 is a refusedRecord.
var evidenceForms = map[byte]struct {
	kind   EvidenceKind
	record byte
}{
	byte(windowing.EmitLate):       {EvidenceLate, uplink.KindEmission},
	byte(windowing.EmitQuarantine): {EvidenceQuarantined, uplink.KindEmission},
	evidenceRange:                  {EvidenceQuarantined, uplink.KindEvent},
	evidenceReject:                 {EvidenceRejected, uplink.KindEvent},
	evidenceUndeliverable:          {EvidenceUndeliverable, 0},
	evidenceUnsent:                 {EvidenceUnsent, 0},
}

// render fills in the record of what is stored.
func (out *Evidence) render(enc uplink.Encoder, m *uplink.Message, e *buffer.StoredEvidence) (err error) {
	r := uplink.Record{Kind: evidenceForms[e.Kind].record}
	switch {
	case out.Kind == "":
		return errors.New("a later version wrote it")
	case r.Kind != 0:
		r.Generation, r.Data, err = cutGeneration(e.Data)
	default:
		var kept refusedRecord
		err = json.Unmarshal(e.Data, &kept)
		out.Uplink, out.Reason, enc.Finals = kept.Uplink, kept.Reason, kept.Finals
		r.Kind, r.Generation, r.Data = kept.Kind, kept.Generation, kept.Data
	}
	if err == nil && r.Kind == uplink.KindReading {
		var one reading.Reading
		one, _, err = reading.DecodeReading(r.Data)
		r.Reading = &one
	}
	if err == nil {
		err = enc.Encode(m, r)
	}
	out.Record = m.Payload
	return err
}
