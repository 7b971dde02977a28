package uplink

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"tidemark/reading"
	"tidemark/windowing"
)

// updateIDLen is the length of an update_id: 16 bytes of SHA-256 in hex.
const updateIDLen = 32

// An update_id names one immutable record for ever: it is a hash of the record's
// type, key, generation and revision, and of the reading for records that carry
// one. A record that is sent again, or rendered again after a restart, has the
// same one.
type idHash struct{ b []byte }

func (c *Encoder) newID(room []byte, kind string) idHash {
	h := idHash{room}
	h.str("tidemark/1")
	h.str(kind)
	h.str(c.Gateway)
	h.num(c.Generation)
	return h
}

func (h *idHash) str(s string) {
	h.b = binary.AppendUvarint(h.b, uint64(len(s)))
	h.b = append(h.b, s...)
}

func (h *idHash) num(v uint64) { h.b = binary.LittleEndian.AppendUint64(h.b, v) }

func (h *idHash) sum() (id [updateIDLen]byte) {
	sum := sha256.Sum256(h.b)
	hex.Encode(id[:], sum[:updateIDLen/2])
	return id
}

func (c *Encoder) emissionID(e *windowing.Emission, known *memo) [updateIDLen]byte {
	kind := typeName(e.Kind)
	if e.Kind == windowing.EmitFeature && e.Final {
		kind = "final" // the last revision's values in another record
	}
	h := c.newID(known.room[:0], kind)
	if e.Kind != windowing.EmitQuarantine && e.Kind != windowing.EmitDuplicate {
		h.window(e)
		h.num(uint64(e.Revision))
	}
	if isReading(e.Kind) {
		h.reading(e.Reading)
	}
	switch e.Kind {
	case windowing.EmitWatermark:
		h.num(uint64(e.WatermarkMS))
	case windowing.EmitSilent, windowing.EmitResumed:
		h.num(uint64(e.Kind))
		h.num(uint64(e.QuietMS))
		h.num(uint64(e.MaterializedNS))
	}
	known.room = h.b
	return h.sum()
}

// window adds the key of a window, without the gateway.
func (h *idHash) window(e *windowing.Emission) {
	h.str(e.Asset)
	h.str(e.Lifecycle)
	h.str(e.Sensor)
	h.str(e.Feature.Name)
	h.num(uint64(e.Feature.Version))
	h.num(uint64(e.StartMS))
	h.num(uint64(e.EndMS))
}

// reading adds what tells one reading from another: who sent it, its identity,
// both times and its content.
func (h *idHash) reading(r *reading.Reading) {
	s := r.Tag.Value()
	h.str(s.Input)
	h.str(s.Device)
	h.str(s.Asset)
	h.str(s.Lifecycle)
	h.str(s.Sensor)
	h.str(r.ID)
	h.num(r.Seq)
	h.num(uint64(r.Source.NS))
	h.str(r.Source.Raw)
	h.num(uint64(r.IngestNS))
	kind, bits := r.Value.Bits()
	h.num(uint64(kind))
	h.num(bits)
	h.str(r.Value.Text())
	h.num(uint64(r.Quality.Level)<<32 | uint64(r.Quality.Status))
}
