package buffer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
)

// A blob is a value of any length under a key, stored as chunks so that bbolt
// packs two of them into a page and rewrites no neighbour. Chunk i of the blob
// under prefix has the key prefix ‖ i (u16, big endian) and the value
//
//	payload ‖ CRC32C(tag ‖ key ‖ payload)
//
// where tag is the bucket's letter. The checksum covers the place, so that a
// value found where another belongs is not taken for it. The payload of chunk 0
// begins with a head:
//
//	1                                        the blob has this one chunk
//	2 ‖ chunks u16 ‖ length u32 ‖ crc u32    it has more; crc is of the content
//
// All integers are big endian.
const (
	chunkMax = 994 // bytes of a value: two with their keys and elements fill a page
	crcLen   = 4
	headOne  = 1
	headMany = 2
	headLen  = 1 + 2 + 4 + 4
	perChunk = chunkMax - crcLen
	// contentMax is the longest content that fits the head's count of chunks.
	contentMax = (1<<16-1)*perChunk - headLen
	// elementLen is what bbolt adds to a key and its value.
	elementLen = 16
	// numberedKeyLen is of a chunk's key where prefixes are sequence numbers.
	numberedKeyLen = 8 + 2
)

// tag is a bucket's letter in the checksums.
type tag byte

const (
	tagJournal    tag = 'J'
	tagOutbox     tag = 'O'
	tagEvidence   tag = 'E'
	tagCheckpoint tag = 'C'
	tagState      tag = 'S'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(t tag, key, payload []byte) uint32 {
	sum := crc32.Update(0, castagnoli, []byte{byte(t)})
	return crc32.Update(crc32.Update(sum, castagnoli, key), castagnoli, payload)
}

func chunkKey(prefix []byte, i int) []byte {
	return binary.BigEndian.AppendUint16(append([]byte(nil), prefix...), uint16(i))
}

func seqPrefix(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// chunkCount is how many chunks a content of n bytes takes.
func chunkCount(n int) int {
	if n+1 <= perChunk {
		return 1
	}
	return (n + headLen + perChunk - 1) / perChunk
}

// arena owns the values of one transaction: bbolt keeps no copy of them before
// the commit. It is used again by the next.
type arena struct{ buf []byte }

func (a *arena) reset() { a.buf = a.buf[:0] }

// put stores content, at most contentMax bytes, under prefix and returns the
// bytes it takes in the file.
func (a *arena) put(b *bolt.Bucket, t tag, prefix, content []byte) (int64, error) {
	n := chunkCount(len(content))
	var size int64
	rest := content
	for i := range n {
		key := chunkKey(prefix, i)
		value := a.chunk(t, key, &rest, i, n, content)
		if err := b.Put(key, value); err != nil {
			return 0, err
		}
		size += int64(len(key) + len(value) + elementLen)
	}
	return size, nil
}

// blobHeadOf is what stands before the content of a blob of n chunks.
func blobHeadOf(n, length int, crc uint32) []byte {
	if n == 1 {
		return []byte{headOne}
	}
	h := binary.BigEndian.AppendUint16([]byte{headMany}, uint16(n))
	h = binary.BigEndian.AppendUint32(h, uint32(length))
	return binary.BigEndian.AppendUint32(h, crc)
}

// chunk encodes chunk i of n and takes its part off rest.
func (a *arena) chunk(t tag, key []byte, rest *[]byte, i, n int, content []byte) []byte {
	start := len(a.buf)
	if i == 0 {
		a.buf = append(a.buf, blobHeadOf(n, len(content), crc32.Checksum(content, castagnoli))...)
	}
	part := min(len(*rest), perChunk-(len(a.buf)-start))
	a.buf = append(a.buf, (*rest)[:part]...)
	*rest = (*rest)[part:]
	a.buf = binary.BigEndian.AppendUint32(a.buf, checksum(t, key, a.buf[start:]))
	return a.buf[start:len(a.buf):len(a.buf)]
}

var (
	errChecksum = errors.New("checksum does not match")
	errMissing  = errors.New("chunk is missing")
	errHead     = errors.New("head of the value is no head")
)

// blobHead is what chunk 0 says about its blob.
type blobHead struct {
	chunks int
	length int
	crc    uint32
	first  []byte // the content's part in chunk 0
}

// openChunk checks a chunk and returns its payload, which aliases value.
func openChunk(t tag, key, value []byte) ([]byte, error) {
	if len(value) < crcLen {
		return nil, errChecksum
	}
	payload := value[:len(value)-crcLen]
	if binary.BigEndian.Uint32(value[len(payload):]) != checksum(t, key, payload) {
		return nil, errChecksum
	}
	return payload, nil
}

// openHead reads chunk 0 of a blob.
func openHead(t tag, key, value []byte) (blobHead, error) {
	p, err := openChunk(t, key, value)
	if err != nil {
		return blobHead{}, err
	}
	switch {
	case len(p) >= 1 && p[0] == headOne:
		return blobHead{chunks: 1, length: len(p) - 1, first: p[1:]}, nil
	case len(p) >= headLen && p[0] == headMany:
		h := blobHead{
			chunks: int(binary.BigEndian.Uint16(p[1:])),
			length: int(binary.BigEndian.Uint32(p[3:])),
			crc:    binary.BigEndian.Uint32(p[7:]),
			first:  p[headLen:],
		}
		if chunkCount(h.length) != h.chunks || len(h.first) > h.length {
			return blobHead{}, errHead
		}
		return h, nil
	}
	return blobHead{}, errHead
}

// readBlob copies out the blob whose chunk 0 the cursor stands on, with that
// chunk's key and value, and leaves the cursor on the last chunk.
func readBlob(c *bolt.Cursor, t tag, key, value []byte) ([]byte, error) {
	h, err := openHead(t, key, value)
	if err != nil {
		return nil, err
	}
	content := make([]byte, 0, h.length)
	content = append(content, h.first...)
	prefix := key[:len(key)-2]
	for i := 1; i < h.chunks; i++ {
		k, v := c.Next()
		if string(k) != string(chunkKey(prefix, i)) {
			return nil, errMissing
		}
		p, err := openChunk(t, k, v)
		if err != nil {
			return nil, err
		}
		content = append(content, p...)
	}
	return content, h.verify(content)
}

// verify checks the whole content against the head.
func (h *blobHead) verify(content []byte) error {
	if len(content) != h.length || h.chunks > 1 && crc32.Checksum(content, castagnoli) != h.crc {
		return errChecksum
	}
	return nil
}

// getBlob copies out the blob under prefix; nil without an error if there is
// none.
func getBlob(b *bolt.Bucket, t tag, prefix []byte) ([]byte, error) {
	c := b.Cursor()
	first := chunkKey(prefix, 0)
	k, v := c.Seek(first)
	if string(k) != string(first) {
		return nil, nil
	}
	return readBlob(c, t, k, v)
}

// deleteBlob removes the blob under prefix, damaged or not, and returns the
// bytes it took. What is not there is not missed.
func deleteBlob(b *bolt.Bucket, prefix []byte) (int64, error) {
	var keys [][]byte
	var size int64
	c := b.Cursor()
	for k, v := c.Seek(chunkKey(prefix, 0)); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if len(k) == len(prefix)+2 {
			keys = append(keys, bytes.Clone(k))
			size += int64(len(k) + len(v) + elementLen)
		}
	}
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return 0, err
		}
	}
	return size, nil
}
