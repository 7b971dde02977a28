package gateway

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/buffer"
	"tidemark/uplink"
)

// spoil flips a bit in the middle of a block's data, wherever it stands in the file.
func spoil(t *testing.T, path string, block buffer.Block) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hole := block.Data[len(block.Data)/2:]
	found := 0
	for at := bytes.Index(file, hole); at >= 0; at = bytes.Index(file, hole) {
		file[at] ^= 4
		found++
	}
	if err := os.WriteFile(path, file, 0o600); err != nil || found == 0 {
		t.Fatal(found, err)
	}
}

// crash ends the session as a kill does: no checkpoint is written.
func (b *bench) crash() {
	b.t.Helper()
	if err := b.pipe.ask(b.t.Context(), func() { b.pipe.cost = 0 }); err != nil { // nothing to write
		b.t.Fatal(err)
	}
	b.end()
}

// One damaged block costs that block: it is counted, what follows is emitted anew
// under a new generation, once, and nothing else of the store is lost.
func TestDamagedBlockCostsOneBlock(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	b := start(t, store, "local")
	base := b.clk.Now().WallNS
	for i := range int64(6) {
		b.bring(base + i*5e9)
	}
	gen := b.pipe.generation.Load()
	blocks := readBlocks(t, b.store)
	records := len(outbox(t, b.store))
	b.crash()
	spoil(t, store, blocks[len(blocks)-3])

	b = start(t, store, "local")
	if again := b.pipe.generation.Load(); again != gen+1 {
		t.Errorf("generation %d, want %d", again, gen+1)
	}
	b.bring(base + 40e9)
	var said []string
	held := outbox(t, b.store)
	for _, r := range held {
		if r.Kind == uplink.KindEvent {
			said = append(said, string(r.Data))
		}
	}
	all := strings.Join(said, "\n")
	if len(held) <= records || !strings.Contains(all, `"damaged_blocks":1`) || !strings.Contains(all, `"lost_blocks":1`) {
		t.Errorf("%d records, before %d; the events are %q", len(held), records, said)
	}
	var lost uint64
	if err := b.pipe.ask(t.Context(), func() { lost = b.pipe.ledger.Counts.Lost[string(buffer.LossRaw)] }); err != nil {
		t.Fatal(err)
	}
	if lost != 1 {
		t.Errorf("%d readings counted as lost, want 1", lost)
	}
	b.crash()

	b = start(t, store, "local")
	if again := b.pipe.generation.Load(); again != gen+1 {
		t.Errorf("generation %d at the next start, want %d again", again, gen+1)
	}
	b.end()
	if r, err := buffer.Check(store, nil); err != nil || r.FaultCount != 0 || len(r.Gaps) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
