package buffer_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tidemark/buffer"
)

// cutCommits is how many commits the recorded process makes.
const cutCommits = 40

// cutCommit is commit number n of the recorded process.
func cutCommit(n uint64) *buffer.Commit {
	c := &buffer.Commit{
		Block: block(n, int(n*977%9000)), KeepFrom: n, AtMS: int64(n) * 1000, Meta: map[string][]byte{"ledger": pattern(n, 900)},
	}
	for range n % 7 {
		c.Records = append(c.Records, buffer.Record{Kind: byte(n), Data: pattern(n, int(n*31%500))})
		c.Evidence = append(c.Evidence, buffer.Evidence{Kind: 1, AtMS: int64(n), Data: pattern(n, 60)})
	}
	if n%5 == 0 {
		c.Checkpoint = whole(cutSnapshot(n))
	}
	return c
}

// cutSnapshot is small, or takes a part or two that are written ahead of the commit.
func cutSnapshot(n uint64) []byte { return pattern(n, int(n%3)*550_000+4000) }

// writeStore is the recorded process: after each commit it says so.
func writeStore(path string) {
	s, _, err := buffer.Open(path, cutOptions())
	if err != nil {
		os.Exit(1)
	}
	for n := uint64(1); n <= cutCommits; n++ {
		if s.Commit(cutCommit(n)) != nil {
			os.Exit(1)
		}
		s.Outbox("plant").Delivered(buffer.Live, n)
		fmt.Printf("acked %d\n", n)
	}
	os.Exit(0) // like a power cut: nothing is closed
}

func cutOptions() buffer.Options {
	o := opts()
	o.Quota = 4 << 20
	return o
}

// op is one thing that the recorded process did to its files.
type op struct {
	kind  byte // w write, t truncate, s sync, a acknowledged, l link
	file  string
	off   int64
	data  []byte
	acked uint64
}

// TestPowerCut records what a process writes, cuts the power anywhere, keeps any
// part of what was not synced, sector by sector, and opens what is left. Whatever
// was acknowledged is there, all of it, and nothing that was not written.
func TestPowerCut(t *testing.T) {
	if os.Getenv("TIDEMARK_INTEROP") != "1" {
		t.Skip("set TIDEMARK_INTEROP=1 to run what needs installed programs; this needs strace")
	}
	ops := record(t)
	states := 3200
	if n, err := strconv.Atoi(os.Getenv("TIDEMARK_CUTS")); err == nil {
		states = n
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	dir := t.TempDir()
	outcomes := map[string]int{}
	for i := range states {
		at := 1 + rnd.IntN(len(ops)-1)
		if i < 60 {
			at = min(1+i, len(ops)-1)
		}
		outcome, err := cut(t, dir, ops[:at], rnd)
		if err != nil {
			t.Fatalf("cut %d after %d of %d operations: %v", i, at, len(ops), err)
		}
		outcomes[outcome]++
	}
	t.Log(len(ops), "operations,", states, "cuts:", outcomes)
}

var (
	writeRE   = regexp.MustCompile(`pwrite64\((\d+)<[^>]*>, "((?:\\x..)*)", \d+, (\d+)\) += \d+`)
	truncRE   = regexp.MustCompile(`ftruncate\((\d+)<[^>]*>, (\d+)\) += 0`)
	syncRE    = regexp.MustCompile(`f(?:data)?sync\((\d+)<([^>]*)>\) += 0`)
	ackRE     = regexp.MustCompile(`write\(1<[^>]*>, "((?:\\x..)*)"`)
	linkRE    = regexp.MustCompile(`linkat\(.*\) += 0`)
	resumedRE = regexp.MustCompile(`<\.\.\. \w+ resumed>(.*)`)
	nameRE    = regexp.MustCompile(`<([^>]*)>`)
)

// record runs the process under strace and returns what it did.
func record(t *testing.T) (ops []op) {
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	cmd := exec.Command("strace", "-f", "-y", "-xx", "-s", "200000", "-e", "trace=pwrite64,ftruncate,fdatasync,fsync,write,linkat", "-o", trace, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=write", "TIDEMARK_BUFFER_PATH="+filepath.Join(dir, "t.db"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	begun := map[string]string{} // thread → the call that another's came between
	for lines.Scan() {
		pid, call, _ := strings.Cut(lines.Text(), " ")
		if head, cut := strings.CutSuffix(call, " <unfinished ...>"); cut {
			begun[pid] = head
			continue
		}
		if m := resumedRE.FindStringSubmatch(call); m != nil {
			call = begun[pid] + m[1]
		}
		o, ok := parseOp(call)
		if ok {
			ops = append(ops, o)
		} else if strings.Contains(call, "pwrite64") || strings.Contains(call, "sync(") || strings.Contains(call, "ftruncate") {
			t.Fatalf("not understood: %.200s", call)
		}
	}
	if n := len(ops); n < 4*cutCommits || ops[n-1].acked != cutCommits {
		t.Fatalf("only %d operations were understood", n)
	}
	return ops
}

func parseOp(line string) (op, bool) {
	name := func() string {
		m := nameRE.FindStringSubmatch(line)
		return string(unhex(m[1]))
	}
	switch {
	case writeRE.MatchString(line):
		m := writeRE.FindStringSubmatch(line)
		off, _ := strconv.ParseInt(m[3], 10, 64)
		return op{kind: 'w', file: name(), off: off, data: unhex(m[2])}, true
	case truncRE.MatchString(line):
		m := truncRE.FindStringSubmatch(line)
		size, _ := strconv.ParseInt(m[2], 10, 64)
		return op{kind: 't', file: name(), off: size}, true
	case syncRE.MatchString(line):
		return op{kind: 's', file: name()}, true
	case linkRE.MatchString(line):
		return op{kind: 'l'}, true
	case ackRE.MatchString(line):
		n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(string(unhex(ackRE.FindStringSubmatch(line)[1]))), "acked "), 10, 64)
		return op{kind: 'a', acked: n}, err == nil
	}
	return op{}, false
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
	if err != nil {
		return []byte(s) // strace prints names as they are
	}
	return b
}

// cut builds the file as a cut after ops may have left it, and opens it.
func cut(t *testing.T, dir string, ops []op, rnd *rand.Rand) (string, error) {
	img, linked, acked := image(ops, rnd)
	path := filepath.Join(dir, "c.db")
	for _, old := range []string{path, path + ".damaged-1", path + ".damaged-1.reason"} {
		os.Remove(old)
	}
	if !linked {
		if acked > 0 {
			return "", fmt.Errorf("%d commits are acknowledged, and there is no file", acked)
		}
		return "no file yet", nil
	}
	if err := os.WriteFile(path, img, 0o600); err != nil {
		t.Fatal(err)
	}
	s, did, err := buffer.Open(path, cutOptions())
	if err != nil || did.SetAside != "" {
		return "", fmt.Errorf("opened as %+v: %w", did, err)
	}
	defer s.Close()
	last, err := verifyCut(s)
	if err != nil {
		return "", err
	}
	if last < acked {
		return "", fmt.Errorf("%d commits of %d acknowledged", last, acked)
	}
	if err := s.Commit(cutCommit(last + 1)); err != nil {
		return "", fmt.Errorf("going on: %w", err)
	}
	if _, err := verifyCut(s); err != nil {
		return "", fmt.Errorf("after going on: %w", err)
	}
	return map[bool]string{true: "one more than acknowledged", false: "as acknowledged"}[last > acked], nil
}

// image is the file after ops: what was synced, and some of what was not.
func image(ops []op, rnd *rand.Rand) (img []byte, linked bool, acked uint64) {
	synced := -1
	for i, o := range ops {
		switch o.kind {
		case 's':
			synced = i
		case 'a':
			acked = o.acked
		case 'l':
			linked = true // the directory is synced before anything is acknowledged; a link that was lost is no file
		}
	}
	share := rnd.Float64()
	for i, o := range ops {
		fate := rnd.Float64()
		switch {
		case i < synced:
			fate = 0
		case o.kind == 't' && fate >= 0.5:
			continue
		}
		switch o.kind {
		case 't':
			img = resize(img, o.off)
		case 'w':
			img = resize(img, max(int64(len(img)), o.off+int64(len(o.data))))
			for at := 0; at < len(o.data); at += 512 {
				if i < synced || fate < 0.35 || fate < 0.7 && rnd.Float64() < share {
					copy(img[o.off+int64(at):], o.data[at:min(at+512, len(o.data))])
				}
			}
		}
	}
	return img, linked, acked
}

func resize(img []byte, n int64) []byte {
	if int64(len(img)) >= n {
		return img[:n]
	}
	return append(img, make([]byte, n-int64(len(img)))...)
}

// verifyCut checks that the store holds exactly the first so many commits.
func verifyCut(s *buffer.Store) (last uint64, err error) {
	got, faults := read(s)
	if len(faults) > 0 {
		return 0, faults[0]
	}
	want := contents{blocks: map[uint64]string{}, records: map[uint64]string{}, evidence: map[uint64]string{}}
	var record, evidence uint64
	for n := uint64(1); n <= got.last; n++ {
		c := cutCommit(n)
		b := c.Block
		want.blocks[n] = fmt.Sprintf("%d %d %d %x %d %x", b.MinMS, b.MaxMS, c.AtMS, b.Digest, b.Readings, b.Data)
		for _, r := range c.Records {
			record++
			want.records[record] = fmt.Sprintf("%d %d %x", r.Kind, c.AtMS, r.Data)
		}
		for _, e := range c.Evidence {
			evidence++
			want.evidence[evidence] = fmt.Sprintf("%d %d %x", e.Kind, e.AtMS, e.Data)
		}
		if c.Checkpoint != nil {
			want.checkpoint, want.seq = string(cutSnapshot(n)), n
		}
	}
	// What was delivered is not shown again, once that was written too: with the next
	// commit, or a part of its checkpoint.
	for seq := range want.records {
		if seq <= got.last && got.records[seq] == "" {
			delete(want.records, seq)
		}
	}
	switch {
	case !maps.Equal(got.blocks, want.blocks):
		return 0, fmt.Errorf("%d blocks, want %d", len(got.blocks), len(want.blocks))
	case !maps.Equal(got.evidence, want.evidence):
		return 0, fmt.Errorf("evidence differs")
	case got.checkpoint != want.checkpoint || got.seq != want.seq:
		return 0, fmt.Errorf("checkpoint of %d, want %d", got.seq, want.seq)
	case got.last > 0 && got.meta["ledger"] != string(pattern(got.last, 900)):
		return 0, fmt.Errorf("named value differs")
	}
	for seq, v := range want.records {
		if got.records[seq] != v && seq > got.last {
			return 0, fmt.Errorf("record %d differs", seq)
		}
	}
	return got.last, nil
}
