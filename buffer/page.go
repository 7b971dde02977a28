package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// This file reads bbolt's pages without bbolt, which trusts what it finds and
// faults where that is wrong. Integers on its pages are in the machine's order;
// every machine we run on is little endian.
//
//	page     id u64 ‖ flags u16 ‖ count u16 ‖ overflow u32 ‖ elements
//	meta     page ‖ magic u32 ‖ version u32 ‖ page size u32 ‖ flags u32 ‖ root u64 ‖ sequence u64 ‖
//	         freelist u64 ‖ high water u64 ‖ txid u64 ‖ FNV-64a of the meta before it
//	branch   pos u32 ‖ key length u32 ‖ page u64
//	leaf     flags u32 ‖ pos u32 ‖ key length u32 ‖ value length u32
//	bucket   root u64 ‖ sequence u64 ‖ the page itself if root is 0
const (
	pageHeadLen   = 16
	metaLen       = 64 // without the page's head
	pageElemLen   = 16
	bucketHeadLen = 16

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10

	elemBucket = 0x01

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = 1<<64 - 1
)

// metaPage is one of the two pages that name the root.
type metaPage struct {
	root     uint64
	freelist uint64
	high     uint64 // the first page that was never used
	txid     uint64
}

var errMeta = errors.New("neither of the two meta pages is whole")

func decodeMeta(p []byte) (m metaPage, ok bool) {
	if len(p) < pageHeadLen+metaLen {
		return m, false
	}
	le, b := binary.LittleEndian, p[pageHeadLen:]
	sum := fnv.New64a()
	sum.Write(b[:56])
	if le.Uint32(b) != boltMagic || le.Uint32(b[4:]) != boltVersion || le.Uint32(b[8:]) != pageSize || le.Uint64(b[56:]) != sum.Sum64() {
		return m, false
	}
	return metaPage{root: le.Uint64(b[16:]), freelist: le.Uint64(b[32:]), high: le.Uint64(b[40:]), txid: le.Uint64(b[48:])}, true
}

// pageFile reads pages of a file.
type pageFile struct {
	r    io.ReaderAt
	size int64
	meta metaPage
	// torn: only one of the meta pages is whole. The other is what a power cut
	// in the middle of a commit left, or held a commit that is lost with it.
	torn bool
}

// openPages reads the meta page in force.
func openPages(r io.ReaderAt, size int64) (*pageFile, error) {
	f := &pageFile{r: r, size: size}
	whole := 0
	for i := range int64(2) {
		p := make([]byte, pageSize)
		if _, err := r.ReadAt(p, i*pageSize); err != nil {
			continue
		}
		if m, ok := decodeMeta(p); ok {
			whole++
			if whole == 1 || m.txid > f.meta.txid {
				f.meta = m
			}
		}
	}
	if whole == 0 {
		return f, errMeta
	}
	f.torn = whole == 1
	if have := f.size / pageSize; f.meta.high < 4 || f.meta.high > uint64(have) {
		return f, fmt.Errorf("the file is cut off: it has %d pages of %d", have, f.meta.high)
	}
	return f, nil
}

// page is a page in memory with what follows it.
type page struct {
	id       uint64
	flags    uint16
	count    int
	overflow uint64
	data     []byte // from the page's head on
	offset   int64  // of data in the file
}

// PageError is a page that is not what it should be.
type PageError struct {
	Page   uint64 `json:"page"`
	Offset int64  `json:"offset"` // in the file
	What   string `json:"what"`
}

func (e *PageError) Error() string {
	return fmt.Sprintf("page %d at offset %d: %s", e.Page, e.Offset, e.What)
}

func pageError(id uint64, format string, args ...any) *PageError {
	return &PageError{Page: id, Offset: int64(id) * pageSize, What: fmt.Sprintf(format, args...)}
}

// read reads page id and checks its head.
func (f *pageFile) read(id uint64) (*page, error) {
	if id < 2 || id >= f.meta.high {
		return nil, pageError(id, "is outside of the file's %d pages", f.meta.high)
	}
	data := make([]byte, pageSize)
	if _, err := f.r.ReadAt(data, int64(id)*pageSize); err != nil {
		return nil, pageError(id, "cannot be read: %v", err)
	}
	p := parsePage(data)
	p.offset = int64(id) * pageSize
	switch {
	case p.id != id:
		return nil, pageError(id, "says that it is page %d", p.id)
	case p.overflow > 0 && id+p.overflow >= f.meta.high:
		return nil, pageError(id, "has %d pages more, beyond the end", p.overflow)
	case p.overflow > 0:
		rest := make([]byte, p.overflow*pageSize)
		if _, err := f.r.ReadAt(rest, int64(id+1)*pageSize); err != nil {
			return nil, pageError(id, "cannot be read: %v", err)
		}
		p.data = append(p.data, rest...)
	}
	return p, nil
}

func parsePage(data []byte) *page {
	le := binary.LittleEndian
	return &page{
		id: le.Uint64(data), flags: le.Uint16(data[8:]), count: int(le.Uint16(data[10:])),
		overflow: uint64(le.Uint32(data[12:])), data: data,
	}
}

// element is one entry of a branch or leaf page; key and value alias the page.
type element struct {
	key, value []byte
	bucket     bool   // of a leaf: value is a bucket
	child      uint64 // of a branch
	offset     int64  // of the key in the file
}

// element returns entry i and whether it lies within the page.
func (p *page) element(i int) (e element, ok bool) {
	at := pageHeadLen + i*pageElemLen
	if i < 0 || i >= p.count || at+pageElemLen > len(p.data) {
		return e, false
	}
	le, b := binary.LittleEndian, p.data[at:]
	var pos, klen, vlen uint64
	if p.flags == flagBranch {
		pos, klen, e.child = uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint64(b[8:])
	} else {
		e.bucket = le.Uint32(b)&elemBucket != 0
		pos, klen, vlen = uint64(le.Uint32(b[4:])), uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:]))
	}
	from := uint64(at) + pos
	if from+klen+vlen > uint64(len(p.data)) {
		return e, false
	}
	e.key, e.value = p.data[from:from+klen:from+klen], p.data[from+klen:from+klen+vlen:from+klen+vlen]
	e.offset = p.offset + int64(from)
	return e, true
}

// freelist reads the list of free pages; nil if the file has none.
func (f *pageFile) freelist() ([]uint64, error) {
	if f.meta.freelist == noFreelist {
		return nil, nil
	}
	p, err := f.read(f.meta.freelist)
	if err != nil {
		return nil, err
	}
	if p.flags != flagFreelist {
		return nil, pageError(p.id, "is no list of free pages")
	}
	le, body, n := binary.LittleEndian, p.data[pageHeadLen:], p.count
	if n == 0xFFFF { // the count did not fit
		n, body = int(min(le.Uint64(body), 1<<30)), body[8:]
	}
	if n > len(body)/8 {
		return nil, pageError(p.id, "lists %d free pages, more than it holds", n)
	}
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = le.Uint64(body[i*8:])
		if ids[i] < 2 || ids[i] >= f.meta.high || i > 0 && ids[i] <= ids[i-1] {
			return nil, pageError(p.id, "lists page %d, which cannot be free there", ids[i])
		}
	}
	return ids, nil
}
