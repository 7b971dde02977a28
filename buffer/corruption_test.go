package buffer_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tidemark/buffer"
)

// contents is everything that a store shows.
type contents struct {
	blocks     map[uint64]string
	records    map[uint64]string
	evidence   map[uint64]string
	meta       map[string]string
	checkpoint string
	seq, last  uint64
}

var metaNames = []string{"ledger", "clock", "large"}

// read reads everything there is to read. A part that cannot be read is left
// out, and the errors are returned.
func read(s *buffer.Store) (c contents, faults []error) {
	c = contents{blocks: map[uint64]string{}, records: map[uint64]string{}, evidence: map[uint64]string{}, meta: map[string]string{}}
	note := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	note(s.Blocks(0, func(b buffer.Block) error {
		c.blocks[b.Seq] = fmt.Sprintf("%d %d %d %x %d %x", b.MinMS, b.MaxMS, b.AtMS, b.Digest, b.Readings, b.Data)
		return nil
	}))
	note(s.Evidence(0, func(e buffer.StoredEvidence) error {
		c.evidence[e.Seq] = fmt.Sprintf("%d %d %x", e.Kind, e.AtMS, e.Data)
		return nil
	}))
	out := s.Outbox("plant")
	out.Rewind()
	for {
		recs, _, err := out.Next(buffer.Live, nil, 100, 1<<20)
		note(err)
		for _, r := range recs {
			c.records[r.Seq] = fmt.Sprintf("%d %d %x", r.Kind, r.AtMS, r.Data)
		}
		if len(recs) == 0 {
			break
		}
	}
	for _, name := range metaNames {
		if v := s.Meta(name); v != nil {
			c.meta[name] = string(v)
		}
	}
	cp, seq, last, err := s.Recover()
	note(err)
	c.checkpoint, c.seq, c.last = string(cp), seq, last
	return c, faults
}

// victim writes a store with a bit of everything, and returns its file and what
// it held after the last two commits.
func victim(t *testing.T) (file []byte, before, after contents) {
	path := filepath.Join(t.TempDir(), "v.db")
	s := open(t, path, opts())
	rnd := rand.New(rand.NewPCG(1, 2))
	for seq := uint64(1); seq <= 60; seq++ {
		c := &buffer.Commit{Block: block(seq, rnd.IntN(9000)), AtMS: int64(seq) * 1000, KeepFrom: seq,
			Meta: map[string][]byte{"ledger": pattern(seq, 700), "clock": pattern(seq, 300)}}
		for range rnd.IntN(12) {
			c.Records = append(c.Records, buffer.Record{Kind: 1, Data: pattern(seq, rnd.IntN(400))})
			c.Evidence = append(c.Evidence, buffer.Evidence{Kind: 4, AtMS: int64(seq), Data: pattern(seq, rnd.IntN(3000))})
		}
		if seq%10 == 0 {
			c.Checkpoint = whole(pattern(seq, 5000))
			c.Meta["large"] = pattern(seq, 20_000)
		}
		if seq == 60 {
			before, _ = read(s)
		}
		commit(t, s, c)
		if seq == 30 {
			s.Outbox("plant").Delivered(buffer.Live, 100)
		}
	}
	after, faults := read(s)
	if len(faults) > 0 || len(after.blocks) != 60 || len(after.records) < 100 {
		t.Fatal(faults, len(after.blocks), len(after.records))
	}
	s.Close()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file, before, after
}

// TestDamageIsNeverReadAsData damages the file in one place in many ways. Either
// all reads right, or there is an error, or the file is set aside: never is
// anything read that was not written.
func TestDamageIsNeverReadAsData(t *testing.T) {
	t.Parallel()
	file, before, after := victim(t)
	tries := 150
	if n, err := strconv.Atoi(os.Getenv("TIDEMARK_DAMAGE_TRIES")); err == nil {
		tries = n
	}
	path := filepath.Join(t.TempDir(), "v.db")
	outcomes := map[string]int{}
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range tries {
		damaged, how := spoil(rnd, file)
		outcome, err := judge(t, path, damaged, before, after, i%8 == 0)
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		outcomes[outcome]++
	}
	t.Log(outcomes)
	for _, want := range []string{"whole", "error", "set aside"} {
		if outcomes[want] == 0 {
			t.Errorf("never %s", want)
		}
	}
}

// spoil damages one place of a copy of file.
func spoil(rnd *rand.Rand, file []byte) (damaged []byte, how string) {
	damaged = bytes.Clone(file)
	at := rnd.IntN(len(file))
	if rnd.IntN(4) == 0 {
		at = rnd.IntN(6 * 4096) // the beginning deserves more
	}
	switch rnd.IntN(5) {
	case 0:
		return damaged[:at], fmt.Sprintf("cut at %d", at)
	case 1:
		sector := damaged[at&^511 : min(at&^511+512, len(damaged))]
		clear(sector)
		return damaged, fmt.Sprintf("sector zeroed at %d", at)
	case 2:
		from, to := at&^4095, rnd.IntN(len(file))&^4095
		copy(damaged[to:], file[from:min(from+4096, len(file))])
		return damaged, fmt.Sprintf("page %d copied over page %d", from/4096, to/4096)
	}
	bit := rnd.IntN(8)
	damaged[at] ^= 1 << bit
	return damaged, fmt.Sprintf("bit %d flipped at %d", bit, at)
}

func judge(t *testing.T, path string, file []byte, before, after contents, salvage bool) (string, error) {
	for _, old := range []string{path, path + ".damaged-1", path + ".damaged-1.reason"} {
		os.Remove(old)
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := buffer.Check(path, nil)
	if err != nil {
		return "", fmt.Errorf("check: %w", err)
	}
	if salvage {
		if err := salvages(path, after); err != nil {
			return "", err
		}
	}
	s, did, err := buffer.Open(path, opts())
	if err != nil {
		return "", fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	if did.SetAside != "" && report.FaultCount == 0 {
		return "", fmt.Errorf("set aside (%s), but the check finds nothing", did.Reason)
	}
	if did.SetAside != "" {
		kept, err := os.ReadFile(did.SetAside)
		if err != nil || !bytes.Equal(kept, file) {
			return "", fmt.Errorf("what was set aside is not the file: %v", err)
		}
		reason, err := os.ReadFile(did.SetAside + ".reason")
		if err != nil || !strings.Contains(string(reason), did.Reason) {
			return "", fmt.Errorf("reason %q: %v", reason, err)
		}
		return "set aside", nil
	}
	got, faults := read(s)
	if len(faults) > 0 && report.FaultCount == 0 {
		return "", fmt.Errorf("the check finds nothing, but: %w", faults[0])
	}
	for _, err := range faults {
		if !errors.As(err, new(*buffer.DamageError)) {
			return "", fmt.Errorf("not a damage: %w", err)
		}
	}
	want := after
	if did.Torn && got.last == before.last {
		want = before
	}
	if err := agrees(got, want, len(faults) == 0); err != nil {
		return "", err
	}
	// Writing on must not turn damage into data, nor crash.
	_ = s.Commit(&buffer.Commit{Block: block(got.last+1, 3000), Records: []buffer.Record{{Kind: 9}}})
	if len(faults) > 0 {
		return "error", nil
	}
	if did.Torn {
		return "torn", nil
	}
	return "whole", nil
}

// salvages checks that what can be brought back of a damaged file is what was
// written.
func salvages(path string, want contents) error {
	dst := path + ".salvaged"
	defer os.Remove(dst)
	found, err := buffer.Salvage(path, dst, nil)
	if err != nil {
		return err
	}
	s, did, err := buffer.Open(dst, opts())
	if err != nil || did.SetAside != "" {
		return fmt.Errorf("the salvaged store opens as %+v: %w", did, err)
	}
	defer s.Close()
	got, faults := read(s)
	if whole := len(faults) == 0; found.Complete && !whole || found.State && whole && !found.Complete {
		return fmt.Errorf("salvaged %+v, but reading says %v", found, faults)
	}
	for seq, v := range got.blocks {
		if want.blocks[seq] != v {
			return fmt.Errorf("salvaged block %d is not what was written", seq)
		}
	}
	if uint64(len(got.blocks)) != found.Blocks {
		return fmt.Errorf("%d blocks of %d salvaged", len(got.blocks), found.Blocks)
	}
	known := map[string]bool{}
	for _, v := range want.records {
		known[v] = true
	}
	for seq, v := range got.records {
		if !known[v] && found.State {
			return fmt.Errorf("salvaged record %d is not one of those written", seq)
		}
	}
	return nil
}

// agrees reports what was read that was not written, and, if all was read
// without an error, what is missing.
func agrees(got, want contents, whole bool) error {
	for what, pair := range map[string][2]map[uint64]string{
		"block": {got.blocks, want.blocks}, "record": {got.records, want.records}, "evidence": {got.evidence, want.evidence},
	} {
		for seq, v := range pair[0] {
			if pair[1][seq] != v {
				return fmt.Errorf("%s %d is not what was written", what, seq)
			}
		}
		if whole && len(pair[0]) != len(pair[1]) {
			return fmt.Errorf("%d of %s, want %d, without an error", len(pair[0]), what, len(pair[1]))
		}
	}
	if !maps.Equal(got.meta, want.meta) {
		return errors.New("named values differ")
	}
	if got.last == 0 {
		return nil // Recover failed
	}
	older := got.seq == want.seq-10 && got.last == want.last && got.checkpoint == string(pattern(got.seq, 5000))
	if !older && (got.checkpoint != want.checkpoint || got.seq != want.seq || got.last != want.last) {
		return fmt.Errorf("recovery from %d to %d, want %d to %d", got.seq, got.last, want.seq, want.last)
	}
	return nil
}
