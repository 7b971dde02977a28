package reading

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// blockVersion is the first byte of every block and of every single reading.
// DESIGN.md has the bytes; whoever changes them raises it and keeps reading the
// older ones.
const blockVersion = 1

// How the body of a block is stored.
const (
	bodyPlain byte = iota
	bodyZstd
)

// Bodies outside these sizes are stored plain: small ones gain nothing, and the
// upper bound is what keeps a damaged block from claiming any amount of memory.
const (
	minCompress = 96
	maxCompress = 1 << 20
)

// ErrNewer is wrapped by the errors about a block that a later version of the
// program wrote. The block is sound; this program cannot read it.
var ErrNewer = errors.New("written by a newer version of tidemark: install that version or a later one")

// AppendBatch appends b's block to dst: everything in b, exactly, except that an
// empty list reads back as nil. Equal batches have equal bodies. There is no
// checksum in it; the store has one.
func AppendBatch(dst []byte, b *Batch) []byte {
	e := newEncoder()
	defer e.release()
	body := e.batch(b)
	if len(body) >= minCompress && len(body) <= maxCompress {
		head := len(dst)
		dst = append(dst, blockVersion, bodyZstd)
		dst = binary.AppendUvarint(dst, uint64(len(body)))
		if dst = zstdEncoder().EncodeAll(body, dst); len(dst)-head < len(body)+2 {
			return dst
		}
		dst = dst[:head]
	}
	return append(append(dst, blockVersion, bodyPlain), body...)
}

// DecodeBatch reads a block back. It shares no memory with src. Damage gives an
// error that says where; a block of a newer version gives one that wraps
// ErrNewer.
func DecodeBatch(src []byte) (*Batch, error) {
	body, err := blockBody(src)
	if err != nil {
		return nil, fmt.Errorf("journal block: %w", err)
	}
	d := decoder{cursor: cursor{src: body}}
	b := d.batch()
	if d.err == nil && d.at < len(body) {
		d.fail("%d bytes left over", len(body)-d.at)
	}
	if d.err != nil {
		return nil, fmt.Errorf("journal block: %w", d.err)
	}
	return b, nil
}

// AppendReading appends r to dst in a form that stands alone and knows its own
// end. Equal readings have equal bytes.
func AppendReading(dst []byte, r *Reading) []byte {
	e := newEncoder()
	defer e.release()
	return append(append(dst, blockVersion), e.single(r)...)
}

// DecodeReading reads what AppendReading wrote from the front of src and returns
// what follows it. Errors are as DecodeBatch has them.
func DecodeReading(src []byte) (r Reading, rest []byte, err error) {
	if err := checkVersion(src); err != nil {
		return Reading{}, nil, fmt.Errorf("stored reading: %w", err)
	}
	d := decoder{cursor: cursor{src: src[1:]}}
	d.tables()
	readings := d.readings(1)
	if d.err == nil && len(readings) != 1 {
		d.fail("%d readings instead of one", len(readings))
	}
	if d.err != nil {
		return Reading{}, nil, fmt.Errorf("stored reading: %w", d.err)
	}
	return readings[0], d.src[d.at:], nil
}

func checkVersion(src []byte) error {
	switch {
	case len(src) == 0:
		return errors.New("is empty")
	case src[0] == 0:
		return errors.New("byte 0: version 0 does not exist")
	case src[0] > blockVersion:
		return fmt.Errorf("format version %d, this program reads up to %d: %w", src[0], blockVersion, ErrNewer)
	}
	return nil
}

// blockBody takes the frame of a block off.
func blockBody(src []byte) ([]byte, error) {
	if err := checkVersion(src); err != nil {
		return nil, err
	}
	if len(src) < 2 {
		return nil, errors.New("byte 1: ends before the storage method")
	}
	switch src[1] {
	case bodyPlain:
		return src[2:], nil
	case bodyZstd:
		return unpack(src[2:])
	}
	return nil, fmt.Errorf("byte 1: unknown storage method %d", src[1])
}

func unpack(src []byte) ([]byte, error) {
	size, n := binary.Uvarint(src)
	if n <= 0 || size > maxCompress {
		return nil, fmt.Errorf("byte 2: claims %d bytes unpacked, at most %d are allowed", size, maxCompress)
	}
	body, err := zstdDecoder().DecodeAll(src[n:], make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("byte %d: cannot unpack: %w", 2+n, err)
	}
	if uint64(len(body)) != size {
		return nil, fmt.Errorf("byte 2: claims %d bytes unpacked, there are %d", size, len(body))
	}
	return body, nil
}

// One encoder and one decoder serve the process: both are stateless between
// calls, safe to share, and cost half a megabyte to make.
var (
	zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithWindowSize(64<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
		if err != nil {
			panic(fmt.Sprintf("zstd refuses fixed options: %v", err))
		}
		return e
	})
	zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxCompress))
		if err != nil {
			panic(fmt.Sprintf("zstd refuses fixed options: %v", err))
		}
		return d
	})
)
