package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/uplink"
)

// feed is the store as an uplink sees it. In the outbox every record begins with
// the generation in force when it was made, so that a record is sent under its
// own even if it waited while the generation changed.
type feed struct {
	outbox     *buffer.Outbox
	ordered    bool   // what waited goes first
	generation uint64 // of records that were made before there was one
	wants      func(*reading.Reading) bool
	raw        rawBlock
	buf        []buffer.StoredRecord
	log        zerolog.Logger
}

// rawBlock is the block of the journal whose readings are being sent.
type rawBlock struct {
	seq      uint64
	readings []reading.Reading
	at       int // the next of them
	waited   bool
}

// generationLen is the length of the generation before each record's own data.
const generationLen = 8

// appendGeneration appends what every record in the store begins with.
func appendGeneration(b []byte, generation uint64) []byte {
	return binary.LittleEndian.AppendUint64(b, generation)
}

// cutGeneration takes it off again. It fails on a record that lost it, which the
// store's checksum rules out.
func cutGeneration(record []byte) (generation uint64, data []byte, err error) {
	if len(record) < generationLen {
		return 0, nil, errors.New("a stored record is too short to name its generation")
	}
	return binary.LittleEndian.Uint64(record), record[generationLen:], nil
}

// Begin begins a connection.
func (f *feed) Begin() {
	f.outbox.Begin(f.ordered)
	f.raw = rawBlock{}
}

// Rewind goes back to what is not delivered.
func (f *feed) Rewind() {
	f.outbox.Rewind()
	f.raw = rawBlock{}
}

// Next appends up to limit records of a lane after its read position.
func (f *feed) Next(lane uplink.Lane, dst []uplink.Record, limit, maxBytes int) ([]uplink.Record, uint64, error) {
	if lane == uplink.Raw {
		return f.nextReadings(dst, limit)
	}
	var upTo uint64
	var err error
	f.buf, upTo, err = f.outbox.Next(outboxLane(lane), f.buf[:0], limit, maxBytes)
	for _, r := range f.buf {
		gen, data, err := cutGeneration(r.Data)
		if err != nil {
			return dst, upTo, err
		}
		if gen == 0 {
			gen = f.generation
		}
		dst = append(dst, uplink.Record{Seq: r.Seq, Kind: r.Kind, Waited: lane == uplink.Backlog, Generation: gen, Data: data})
	}
	return dst, upTo, err
}

func outboxLane(l uplink.Lane) buffer.Lane {
	if l == uplink.Backlog {
		return buffer.Backlog
	}
	return buffer.Live
}

// nextReadings appends up to limit readings of the journal that the uplink takes:
// those that were accepted.
func (f *feed) nextReadings(dst []uplink.Record, limit int) ([]uplink.Record, uint64, error) {
	if f.wants == nil {
		return dst, 0, nil
	}
	b := &f.raw
	for limit > 0 {
		if b.at == len(b.readings) {
			if more, err := f.nextBlock(); !more || err != nil {
				return dst, b.position(), err
			}
			continue
		}
		r := &b.readings[b.at]
		b.at++
		if !r.Stamp.Disposition.Accepted() || !f.wants(r) {
			continue
		}
		limit--
		dst = append(dst, uplink.Record{
			Seq: rawSeq(buffer.Position{Block: b.seq, Index: b.at}), Kind: uplink.KindReading, Waited: b.waited,
			Generation: f.generation, Reading: r,
		})
	}
	return dst, b.position(), nil
}

// nextBlock reads on in the journal.
func (f *feed) nextBlock() (more bool, err error) {
	b, from, waited, ok, err := f.outbox.NextBlock()
	if !ok || err != nil {
		return false, err
	}
	batch, err := reading.DecodeBatch(b.Data)
	if err != nil {
		return false, fmt.Errorf("journal block %d: %w", b.Seq, err)
	}
	f.raw = rawBlock{seq: b.Seq, readings: batch.Readings, at: min(from, len(batch.Readings)), waited: waited}
	return true, nil
}

// position is where the readings that were passed on end.
func (b *rawBlock) position() uint64 {
	if b.seq == 0 {
		return 0
	}
	if b.at >= len(b.readings) {
		return rawSeq(buffer.Position{Block: b.seq + 1})
	}
	return rawSeq(buffer.Position{Block: b.seq, Index: b.at})
}

// An uplink numbers what it sends: a reading by its block and its place there.
const rawIndexBits = 24

func rawSeq(p buffer.Position) uint64 { return p.Block<<rawIndexBits | uint64(p.Index) }

func rawPosition(seq uint64) buffer.Position {
	return buffer.Position{Block: seq >> rawIndexBits, Index: int(seq & (1<<rawIndexBits - 1))}
}

// Wait returns when there is something that was not there before.
func (f *feed) Wait(ctx context.Context) error { return f.outbox.Wait(ctx) }

// Delivered says that the broker has everything of a lane up to seq.
func (f *feed) Delivered(lane uplink.Lane, seq uint64) {
	if lane == uplink.Raw {
		f.outbox.DeliveredReadings(rawPosition(seq))
		return
	}
	f.outbox.Delivered(outboxLane(lane), seq)
}

// Waiting returns how many records the broker does not have.
func (f *feed) Waiting() int64 {
	w, err := f.outbox.Waiting()
	if err != nil {
		f.log.Warn().Err(err).Msg("cannot count the backlog")
	}
	return w.Records
}
