package buffer

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// These tests are inside, since the forms on disk are nobody else's business.

// chunks encodes content as put would, without a database.
func chunks(t tag, prefix, content []byte) (keys, values [][]byte) {
	a := &arena{}
	n := chunkCount(len(content))
	rest := content
	for i := range n {
		key := chunkKey(prefix, i)
		keys = append(keys, key)
		values = append(values, a.chunk(t, key, &rest, i, n, content))
	}
	return keys, values
}

func TestBlobRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOfN(rapid.Byte(), 0, 5*chunkMax).Draw(t, "content")
		keys, values := chunks(tagJournal, seqPrefix(7), content)
		h, err := openHead(tagJournal, keys[0], values[0])
		if err != nil || h.chunks != len(keys) || h.length != len(content) {
			t.Fatal(h, err)
		}
		got := bytes.Clone(h.first)
		for i := range values {
			if len(values[i]) > chunkMax {
				t.Fatalf("chunk of %d bytes", len(values[i]))
			}
			if i > 0 {
				p, err := openChunk(tagJournal, keys[i], values[i])
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, p...)
			}
			// A chunk found in another place is not taken.
			if _, err := openChunk(tagOutbox, keys[i], values[i]); err == nil {
				t.Fatal("taken for another bucket's")
			}
			if _, err := openChunk(tagJournal, chunkKey(seqPrefix(8), i), values[i]); err == nil {
				t.Fatal("taken for another block's")
			}
		}
		if !bytes.Equal(got, content) || h.verify(got) != nil {
			t.Fatal("content differs")
		}
	})
}

// Four chunks of the longest kind fill a page: one more byte and they would not.
func TestChunksFillAPage(t *testing.T) {
	const key = 8 + 2
	if n := pageHeadLen + 4*(elementLen+key+chunkMax); n > pageSize || n+4 <= pageSize {
		t.Errorf("four chunks take %d bytes of a page of %d", n, pageSize)
	}
}

func FuzzChunk(f *testing.F) {
	for _, n := range []int{0, 1, 100, perChunk - 1, perChunk, 3 * perChunk} {
		_, values := chunks(tagJournal, seqPrefix(1), bytes.Repeat([]byte{7}, n))
		f.Add(values[0])
		f.Add(values[len(values)-1])
	}
	key := chunkKey(seqPrefix(1), 0)
	f.Fuzz(func(t *testing.T, value []byte) {
		if h, err := openHead(tagJournal, key, value); err == nil && (h.chunks < 1 || len(h.first) > h.length || chunkCount(h.length) != h.chunks && h.chunks > 1) {
			t.Errorf("head %+v", h)
		}
		// Without its checksum the rest must hold up too.
		sum := checksum(tagJournal, key, value)
		value = append(bytes.Clone(value), byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
		if h, err := openHead(tagJournal, key, value); err == nil && (h.chunks < 1 || len(h.first) > h.length) {
			t.Errorf("head %+v", h)
		}
	})
}

func FuzzBlock(f *testing.F) {
	f.Add(appendBlock(nil, &Block{MinMS: math.MinInt64, MaxMS: 5, AtMS: 6, Readings: 7, Index: []byte("index"), Data: []byte("data")}))
	f.Add(appendBlock(nil, &Block{}))
	f.Add([]byte{blockVersion})
	f.Fuzz(func(t *testing.T, content []byte) {
		b, err := decodeBlock(9, content)
		if err != nil {
			return
		}
		if again := appendBlock(nil, &b); !bytes.Equal(again, content) {
			t.Errorf("%x became %x", content, again)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, 3, -1, []byte("data")))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, content []byte) {
		kind, at, data, err := decodeRecord(content)
		if err == nil && !bytes.Equal(appendRecord(nil, kind, at, data), content) {
			t.Errorf("%x came back different", content)
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(append(appendCheckpointHead(nil, checkpointRef{Generation: 1, Seq: 2}), "snapshot"...))
	f.Fuzz(func(t *testing.T, content []byte) {
		ref, snapshot, err := decodeCheckpoint(content)
		if err == nil && !bytes.Equal(append(appendCheckpointHead(nil, ref), snapshot...), content) {
			t.Errorf("%x came back different", content)
		}
	})
}

func FuzzState(f *testing.F) {
	s := newState(5)
	s.lose(Loss{Kind: LossRaw, MinMS: none})
	s.Cursors["plant"] = 4
	data, err := json.Marshal(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"schema":99}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeState(data)
		if err != nil || s.Schema > schema {
			return
		}
		// What is accepted leads nowhere outside of its ranges.
		if s.Journal.Len() > s.Journal.Next || s.heldFrom(0) < 1 || s.droppable() < s.Journal.First || s.Cursors == nil {
			t.Errorf("%s was accepted", data)
		}
	})
}

func FuzzPages(f *testing.F) {
	leaf := make([]byte, pageSize)
	leaf[8], leaf[10] = flagLeaf, 2
	f.Add(leaf)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < pageHeadLen {
			return
		}
		p := parsePage(data)
		for i := range p.count {
			if e, ok := p.element(i); ok && len(e.key)+len(e.value) > len(data) {
				t.Error("an entry is longer than its page")
			}
		}
		decodeMeta(data)
		file := append(make([]byte, 4*pageSize), data...)
		pages := &pageFile{r: bytes.NewReader(file), size: int64(len(file)), meta: metaPage{root: 4, freelist: 4, high: uint64(len(file)/pageSize) + 1}}
		_ = checkPages(pages, func([]byte, element) {}, func(*PageError) {}, nil)
	})
}
