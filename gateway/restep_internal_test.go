package gateway

import (
	"path/filepath"
	"slices"
	"testing"
)

// A journal steps to what was committed with it, from its beginning and from the
// checkpoint of every stop; a block that says otherwise is named.
func TestRestep(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	base := b.clk.Now().WallNS
	b.bring(base-25e9, base)
	b.end()
	b = start(t, store, "local")
	b.bring(base + 1e6)
	blocks := readBlocks(t, b.store)
	b.end()
	var done, total int64
	watch := func(_ string, d, t int64) error { done, total = d, t; return nil }
	r, err := Restep(store, watch)
	if err != nil || !r.OK() || r.From != 1 || r.Readings != 3 || r.Checkpoints != 2 || int(r.Blocks) < len(blocks) {
		t.Errorf("sound: %+v, %v", r, err)
	}

	if done+1 != total || total != int64(r.Blocks) {
		t.Errorf("watched: %d of %d blocks, want %d", done, total, r.Blocks)
	}

	forged := filepath.Join(t.TempDir(), "f.db")
	forge(t, b.store, forged, blocks)
	last := blocks[len(blocks)-1].Seq
	r, err = Restep(forged, watch)
	if err != nil || r.OK() || r.DifferCount != 1 || !slices.Equal(r.Differ, []uint64{last}) {
		t.Errorf("forged: %+v, %v; want block %d", r, err, last)
	}
}
