package gateway

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/uplink"
	"tidemark/windowing"
)

// Whatever is kept is read back as the record that was to go upstream, under the
// generation that it was made under and in its uplink's way.
func TestEvidenceIsReadBack(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	now := b.clk.Now().WallNS
	b.bring(now, now-30*dayNS) // one is too old
	closed := windowing.AppendEmission(nil, &windowing.Emission{
		Kind: windowing.EmitClosed, Feature: windowing.FeatureID{Name: "f", Version: 1}, Sensor: "temp", Revision: 2, Final: true,
	})
	record := func(kind byte, data []byte) uplink.SetAside {
		return uplink.SetAside{Record: uplink.Record{Kind: kind, Generation: 7, Data: data}, Reason: "too large"}
	}
	b.pipe.undeliverable("up", false, record(uplink.KindEmission, closed))
	b.pipe.undeliverable("finals", true, record(uplink.KindEmission, closed))
	b.pipe.undeliverable("up", false, record(uplink.KindEvent, []byte(`{"kind":"gap"}`)))
	r := reading.Reading{Tag: reading.MakeTag(reading.Series{Input: "in", Sensor: "temp"}), Value: reading.IntValue(3), Source: sourceTime(now)}
	b.pipe.undeliverable("up", false, uplink.SetAside{Record: uplink.Record{Kind: uplink.KindReading, Generation: 7, Reading: &r}, Reason: "too large"})
	odd := func() {
		b.pipe.readMail() // what was told comes first
		b.pipe.countReject(&rejected{"in", reading.Reject{Kind: reading.Malformed, Reason: "not_json", ID: "1"}})
		b.pipe.evidence = append(b.pipe.evidence, buffer.Evidence{Kind: 200, AtMS: 1}, buffer.Evidence{Kind: evidenceRange, AtMS: 1, Data: []byte("short")})
	}
	if err := b.pipe.ask(context.Background(), odd); err != nil {
		t.Fatal(err)
	}
	b.bring(now + 1)
	want := []string{
		"quarantined quarantine TOO_OLD", "undeliverable closed, up: too large", "undeliverable feature final, finals: too large",
		"undeliverable event gap, up: too large", "unsent raw, up: too large", "rejected event malformed not_json",
		" cannot be read: a later version wrote it", "quarantined cannot be read: a stored record is too short to name its generation",
	}
	check := func(j Journal, generation uint64) {
		t.Helper()
		var got []string
		all := EvidenceSelection{FromMS: reading.NoTime, ToMS: reading.NoTime}
		if err := ReadEvidence(t.Context(), j, all, func(e *Evidence) error {
			got = append(got, evidenceLine(t, e, generation))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	generation := b.pipe.generation.Load()
	check(storedJournal{b.store}, generation)
	b.end()
	j, err := OpenJournal(store)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	check(j, generation)
}

// evidenceLine is a piece in short. What was set aside is of generation 7, the rest of
// the store's.
func evidenceLine(t *testing.T, e *Evidence, generation uint64) string {
	t.Helper()
	if e.Fault != "" {
		return string(e.Kind) + " cannot be read: " + e.Fault
	}
	var r struct {
		Type, Kind, Status, Reason string
		Generation                 uint64
	}
	if err := json.Unmarshal(e.Record, &r); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(e.Kind)+" "+r.Type+" "+r.Kind+" "+r.Status+" "+r.Reason), " ")
	if e.Uplink != "" {
		generation = 7
		text += ", " + e.Uplink + ": " + e.Reason
	}
	if r.Generation != generation {
		t.Errorf("%s is of generation %d, want %d", text, r.Generation, generation)
	}
	return text
}
