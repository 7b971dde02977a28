package mqtt

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
)

// unpacker takes compressed payloads apart. What it returns is valid until the next
// call.
type unpacker struct {
	limit int // bytes that may come out: a kilobyte can hold a megabyte of nothing
	in    bytes.Reader
	gzip  *gzip.Reader
	zlib  io.ReadCloser // a zlib.Resetter too
	out   []byte
}

var errUnpacked = errors.New("too large when unpacked")

// maxKept is up to which size the space for unpacked payloads is kept.
const maxKept = 1 << 20

// isGzip reports whether b begins as gzip does (RFC 1952).
func isGzip(b []byte) bool { return len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8 }

// unGzip unpacks gzip (RFC 1952). Its error is errUnpacked or says what is wrong.
func (u *unpacker) unGzip(b []byte) ([]byte, error) {
	u.in.Reset(b)
	if u.gzip == nil {
		u.gzip = new(gzip.Reader)
	}
	if err := u.gzip.Reset(&u.in); err != nil {
		return nil, err
	}
	return u.read(u.gzip)
}

// unZlib unpacks zlib (RFC 1950), which others call DEFLATE.
func (u *unpacker) unZlib(b []byte) (_ []byte, err error) {
	u.in.Reset(b)
	if u.zlib == nil {
		u.zlib, err = zlib.NewReader(&u.in)
	} else {
		err = u.zlib.(zlib.Resetter).Reset(&u.in, nil)
	}
	if err != nil {
		return nil, err
	}
	return u.read(u.zlib)
}

func (u *unpacker) read(r io.Reader) ([]byte, error) {
	if cap(u.out) > maxKept {
		u.out = nil
	}
	b := bytes.NewBuffer(u.out[:0])
	n, err := b.ReadFrom(io.LimitReader(r, int64(u.limit)+1))
	u.out = b.Bytes()
	switch {
	case err != nil:
		return nil, err
	case n > int64(u.limit):
		return nil, errUnpacked
	}
	return u.out, nil
}

// unpacked is what unpacking gave, or rejects the message at hand.
func (d *Decoder) unpacked(b []byte, err error) (_ []byte, ok bool) {
	switch {
	case err == errUnpacked:
		d.malformed("too_large", "the payload unpacks to more than max_payload; send smaller messages or raise it")
	case err != nil:
		d.malformed("not_unpacked", "the payload cannot be unpacked: "+err.Error())
	}
	return b, err == nil
}
