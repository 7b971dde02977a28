package windowing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"tidemark/reading"
)

// wire reads or writes a binary form, so that one function per type describes
// both directions: each method writes *p when writing and sets it when reading.
// After the first error reading goes on with zeros and empty lists.
type wire struct {
	buf     []byte
	at      int
	reading bool
	out     func(part []byte) error // takes what was written so far, when it has become long; nil keeps it
	sum     uint32                  // CRC-32C of what out took
	scratch []uint64                // of the identities that are being written
	version byte                    // of the form that is read or written
	names   *Names
	err     error
}

var errShort = errors.New("it ends early")

func (w *wire) fail(err error) {
	if w.err == nil {
		w.err = fmt.Errorf("byte %d: %w", w.at, err)
	}
}

// partLen is about how much is written before it is passed on.
const partLen = 64 << 10

// part passes on what was written; after an error it is dropped.
func (w *wire) part() {
	if w.err == nil {
		w.sum = crc32.Update(w.sum, castagnoli, w.buf)
		if err := w.out(w.buf); err != nil {
			w.err = err
		}
	}
	w.buf = w.buf[:0]
}

func (w *wire) left() int {
	if w.err != nil {
		return 0
	}
	return len(w.buf) - w.at
}

func (w *wire) u64(p *uint64) {
	if !w.reading {
		w.buf = binary.AppendUvarint(w.buf, *p)
		if w.out != nil && len(w.buf) >= partLen {
			w.part()
		}
		return
	}
	*p = 0
	if w.err != nil {
		return
	}
	v, n := binary.Uvarint(w.buf[w.at:])
	if n <= 0 {
		w.fail(errShort)
		return
	}
	*p, w.at = v, w.at+n
}

func (w *wire) i64(p *int64) {
	u := uint64(*p<<1) ^ uint64(*p>>63)
	w.u64(&u)
	*p = int64(u>>1) ^ -int64(u&1)
}

// dropped is a number that forms after the given version do not have; v is what
// an older one says.
func (w *wire) dropped(after byte, v int64) {
	if w.version <= after {
		w.i64(&v)
	}
}

// time is a time in milliseconds, NoTime, or never.
func (w *wire) time(p *int64) {
	w.i64(p)
	if t := *p; w.reading && t != reading.NoTime && t != never && (t < 2*minTimeMS || t > 2*maxTimeMS) {
		w.fail(fmt.Errorf("%d ms is out of range", t))
		*p = reading.NoTime
	}
}

// fixed is eight bytes, for what does not get shorter as a varint.
func (w *wire) fixed(p *uint64) {
	if !w.reading {
		w.buf = binary.LittleEndian.AppendUint64(w.buf, *p)
		return
	}
	*p = 0
	if w.left() < 8 {
		w.fail(errShort)
		return
	}
	*p = binary.LittleEndian.Uint64(w.buf[w.at:])
	w.at += 8
}

func (w *wire) integer(p *int) {
	v := int64(*p)
	w.i64(&v)
	*p = int(v)
}

func (w *wire) u32(p *uint32) {
	v := uint64(*p)
	w.u64(&v)
	if v > math.MaxUint32 {
		w.fail(fmt.Errorf("%d is too large here", v))
		v = 0
	}
	*p = uint32(v)
}

// code is an enumeration or flags of one byte that may be at most top.
func code[T ~uint8](w *wire, p *T, top T) {
	v := uint64(*p)
	w.u64(&v)
	if v > uint64(top) {
		w.fail(fmt.Errorf("unknown code %d, the highest is %d: written by a newer version?", v, top))
		v = 0
	}
	*p = T(v)
}

func (w *wire) flag(p *bool) {
	var v uint8
	if *p {
		v = 1
	}
	code(w, &v, 1)
	*p = v == 1
}

func (w *wire) flags(p *reading.Flags) {
	v := uint32(*p)
	w.u32(&v)
	if v > math.MaxUint16 {
		w.fail(fmt.Errorf("unknown flags %#x", v))
		v = 0
	}
	*p = reading.Flags(v)
}

func (w *wire) str(p *string) {
	n := len(*p)
	w.count(&n, 1)
	if !w.reading {
		w.buf = append(w.buf, *p...)
		return
	}
	*p = w.names.text(w.buf[w.at : w.at+n])
	w.at += n
}

// count is the number of things that follow, each of at least size bytes.
func (w *wire) count(n *int, size int) {
	v := uint64(*n)
	w.u64(&v)
	if w.reading && v > uint64(w.left()/size) {
		w.fail(fmt.Errorf("%d entries are announced and %d bytes are left", v, w.left()))
		v = 0
	}
	*n = int(v)
}

// list reads or writes *s, entry by entry; an empty list is nil when read.
func list[T any](w *wire, s *[]T, each func(*wire, *T)) {
	n := len(*s)
	w.count(&n, 1)
	if w.reading {
		*s = nil
		if n > 0 {
			*s = make([]T, n)
		}
	}
	for i := range *s {
		each(w, &(*s)[i])
	}
}

func (w *wire) strings(s *[]string) { list(w, s, (*wire).str) }

// value is a Value of any kind.
func (w *wire) value(p *reading.Value) {
	kind, bits := p.Bits()
	code(w, &kind, reading.Text)
	switch kind {
	case reading.Missing:
		bits = 0
	case reading.Float:
		w.fixed(&bits)
	case reading.Text:
		text := p.Text()
		w.str(&text)
		*p = reading.TextValue(text)
		return
	case reading.Int:
		i := int64(bits)
		w.i64(&i)
		bits = uint64(i)
	default:
		w.u64(&bits)
	}
	*p = makeValue(kind, bits)
}

// makeValue is the inverse of reading.Value.Bits for all kinds but text.
func makeValue(kind reading.Kind, bits uint64) reading.Value {
	switch kind {
	case reading.Bool:
		return reading.BoolValue(bits == 1)
	case reading.Int:
		return reading.IntValue(int64(bits))
	case reading.Uint:
		return reading.UintValue(bits)
	case reading.Float:
		return reading.FloatValue(math.Float64frombits(bits))
	}
	return reading.Value{}
}
