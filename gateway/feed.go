package gateway

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/rs/zerolog"

	"tidemark/buffer"
	"tidemark/uplink"
)

// feed is the outbox as an uplink sees it. In the store every record begins with
// the generation in force when it was made, so that a record is sent under its
// own even if it waited while the generation changed.
type feed struct {
	outbox     *buffer.Outbox
	generation uint64 // of records that were made before there was one
	buf        []buffer.StoredRecord
	log        zerolog.Logger
}

// generationLen is the length of the generation before each record's own data.
const generationLen = 8

// appendGeneration appends what every record in the store begins with.
func appendGeneration(b []byte, generation uint64) []byte {
	return binary.LittleEndian.AppendUint64(b, generation)
}

// errShort is a record that lost its generation; the store's checksum rules it
// out.
var errShort = errors.New("an outbox record is too short to name its generation")

// Next appends up to limit records after the read position.
func (f *feed) Next(dst []uplink.Record, limit, maxBytes int) ([]uplink.Record, error) {
	var err error
	f.buf, err = f.outbox.Next(f.buf[:0], limit, maxBytes)
	for _, r := range f.buf {
		if len(r.Data) < generationLen {
			return dst, errShort
		}
		gen := binary.LittleEndian.Uint64(r.Data)
		if gen == 0 {
			gen = f.generation
		}
		dst = append(dst, uplink.Record{Seq: r.Seq, Kind: r.Kind, Generation: gen, Data: r.Data[generationLen:]})
	}
	return dst, err
}

// Wait returns when there is something after the read position.
func (f *feed) Wait(ctx context.Context) error { return f.outbox.Wait(ctx) }

// Rewind goes back to the first undelivered record.
func (f *feed) Rewind() { f.outbox.Rewind() }

// Delivered says that the broker has every record up to seq.
func (f *feed) Delivered(seq uint64) { f.outbox.Delivered(seq) }

// Backlog returns how many records the broker does not have.
func (f *feed) Backlog() int64 {
	b, err := f.outbox.Backlog()
	if err != nil {
		f.log.Warn().Err(err).Msg("cannot count the backlog")
	}
	return b.Records
}
