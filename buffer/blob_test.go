package buffer

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

// TestPutInPlace holds putInPlace to what put writes, whatever room there is.
func TestPutInPlace(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "db"), 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rapid.Check(t, func(t *rapid.T) {
		head := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "head")
		body := rapid.SliceOfN(rapid.Byte(), 0, 5*chunkMax).Draw(t, "body")
		content := append(bytes.Clone(head), body...)
		place := append(make([]byte, 0, len(body)+rapid.IntRange(0, 80).Draw(t, "room")), body...)
		_ = db.Update(func(tx *bolt.Tx) error {
			put := func(name string, put func(b *bolt.Bucket) (int64, error)) (pairs []string, size int64) {
				b, err := tx.CreateBucket([]byte(name))
				if err == nil {
					size, err = put(b)
				}
				if err != nil {
					t.Fatal(err)
				}
				_ = b.ForEach(func(k, v []byte) error { pairs = append(pairs, string(k), string(v)); return nil })
				return pairs, size
			}
			want, size := put("copied", func(b *bolt.Bucket) (int64, error) {
				return new(arena).put(b, tagCheckpoint, slotPrefix(1), content)
			})
			got, n := put("in place", func(b *bolt.Bucket) (int64, error) {
				return putInPlace(b, tagCheckpoint, slotPrefix(1), head, place)
			})
			if n != size || len(got) != len(want) {
				t.Fatalf("%d bytes in %d parts, want %d in %d", n, len(got), size, len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("part %d is %x, want %x", i, got[i], want[i])
				}
			}
			return errors.New("nothing is to stay") // nothing is to stay
		})
	})
}

// TestCheckpointRoom: with it no copy is made.
func TestCheckpointRoom(t *testing.T) {
	for _, n := range []int{0, 1, 900, 990, 5000, 1 << 20} {
		room := CheckpointRoom(n)
		chunks := chunkCount(n + checkpointHeadLen)
		head := len(blobHeadOf(chunks, n, 0))
		if need := head + checkpointHeadLen + chunks*crcLen; room < need || room > need+headLen {
			t.Errorf("room for %d bytes is %d, needed are %d", n, room, need)
		}
	}
}
