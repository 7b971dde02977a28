package buffer

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Report is what Check found in a file.
type Report struct {
	Path      string `json:"path"`
	FileBytes int64  `json:"file_bytes"`
	FreeBytes int64  `json:"free_bytes"` // inside the file; 0 if the file has no list of free pages
	Torn      bool   `json:"torn"`       // see Opened.Torn

	Schema      int               `json:"schema"` // 0 if the state cannot be read; then what follows is empty
	CreatedMS   int64             `json:"created_ms"`
	LatestMS    int64             `json:"latest_ms"`
	Commits     uint64            `json:"commits"`
	Journal     Range             `json:"journal"`
	Readings    int64             `json:"readings"`
	Outbox      Range             `json:"outbox"`
	Evidence    Range             `json:"evidence"`
	Checkpoints []uint64          `json:"checkpoints"` // the blocks after which they hold, the newer first
	Cursors     map[string]uint64 `json:"cursors"`     // uplink → last delivered record
	Gaps        []Gap             `json:"gaps"`        // left by salvage
	Losses      []Loss            `json:"losses"`      // not reported yet

	Buckets map[string]BucketReport `json:"buckets"`

	Faults     []Fault `json:"faults"` // at most faultsMax of them
	FaultCount int     `json:"fault_count"`
}

// BucketReport is what a bucket holds.
type BucketReport struct {
	Values int64 `json:"values"` // chunks
	Bytes  int64 `json:"bytes"`  // with their keys
}

// Fault is one thing that is wrong, and where.
type Fault struct {
	Offset int64  `json:"offset"`           // in the file; -1 for what is missing
	Bucket string `json:"bucket,omitempty"` // empty for the file's own structure
	Key    string `json:"key,omitempty"`    // what it belongs to
	What   string `json:"what"`
}

const faultsMax = 1000

// Check reads the store in the file path from end to end and reports what it
// holds and what is wrong. It changes nothing, and needs no sound file. The error
// says that there is nothing to look at: no file, no permission, a *LockedError, a
// *ForeignError.
func Check(path string, progress Progress) (*Report, error) {
	f, err := lockToRead(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	c := &checker{runs: map[string][]Gap{}, r: &Report{
		Path: path, FileBytes: info.Size(), Checkpoints: []uint64{}, Cursors: map[string]uint64{},
		Gaps: []Gap{}, Losses: []Loss{}, Buckets: map[string]BucketReport{}, Faults: []Fault{},
	}}
	pages, err := openPages(f, info.Size())
	if err != nil {
		if foreign(f) {
			return nil, &ForeignError{Path: path}
		}
		c.fault(0, "", "", err.Error())
		return c.r, nil
	}
	c.r.Torn = pages.torn
	free, _ := pages.freelist()
	c.r.FreeBytes = int64(len(free)) * pageSize
	faulty := func(e *PageError) { c.fault(e.Offset, "", fmt.Sprintf("page %d", e.Page), e.What) }
	if err := checkPages(pages, c.entry, faulty, progress); err != nil {
		return nil, err
	}
	c.finishBlob()
	if c.st == nil && foreign(f) {
		return nil, &ForeignError{Path: path}
	}
	c.compare()
	return c.r, nil
}

// checker collects a Report from the values of a file in the order of their keys.
type checker struct {
	r  *Report
	st *state

	bucket string
	blob   *partBlob

	runs     map[string][]Gap         // sequence numbers found whole, per bucket
	slots    [2]map[int]checkpointRef // parts found whole
	readings int64
}

// partBlob is a blob whose chunks come one by one.
type partBlob struct {
	prefix  []byte
	head    blobHead
	next    int
	content []byte
	offset  int64
	bad     bool
}

func (c *checker) fault(offset int64, bucket, key, what string) {
	c.r.FaultCount++
	if len(c.r.Faults) < faultsMax {
		c.r.Faults = append(c.r.Faults, Fault{Offset: offset, Bucket: bucket, Key: key, What: what})
	}
}

// entry takes one value.
func (c *checker) entry(bucket []byte, e element) {
	name := string(bucket)
	t, known := buckets[name]
	switch {
	case !known:
		c.fault(e.offset, name, "", "is no bucket of a store")
		return
	case e.bucket || len(e.key) < 3:
		c.fault(e.offset, name, fmt.Sprintf("%x", e.key), "is no key of this bucket")
		return
	}
	b := c.r.Buckets[name]
	b.Values++
	b.Bytes += int64(len(e.key) + len(e.value))
	c.r.Buckets[name] = b
	prefix, i := e.key[:len(e.key)-2], int(binary.BigEndian.Uint16(e.key[len(e.key)-2:]))
	if i == 0 {
		c.finishBlob()
		c.bucket, c.blob = name, &partBlob{prefix: prefix, offset: e.offset}
		c.begin(t, e)
		return
	}
	p := c.blob
	if p == nil || c.bucket != name || string(p.prefix) != string(prefix) || p.next != i || !p.bad && i >= p.head.chunks {
		c.fault(e.offset, name, describe(name, prefix), fmt.Sprintf("chunk %d belongs to nothing", i))
		return
	}
	p.next++
	payload, err := openChunk(t, e.key, e.value)
	if err != nil {
		c.fault(e.offset, name, describe(name, prefix), fmt.Sprintf("chunk %d: %v", i, err))
		p.bad = true
		return
	}
	p.content = append(p.content, payload...)
}

func (c *checker) begin(t tag, e element) {
	p := c.blob
	p.next = 1
	h, err := openHead(t, e.key, e.value)
	if err != nil {
		c.fault(e.offset, c.bucket, describe(c.bucket, p.prefix), err.Error())
		p.bad = true
		return
	}
	p.head, p.content = h, slices.Clone(h.first)
}

// finishBlob looks at the blob whose last chunk has come.
func (c *checker) finishBlob() {
	p := c.blob
	c.blob = nil
	if p == nil || p.bad {
		return
	}
	err := errMissing
	if p.next == p.head.chunks {
		err = p.head.verify(p.content)
	}
	if err == nil {
		err = c.value(p)
	}
	if err != nil {
		c.fault(p.offset, c.bucket, describe(c.bucket, p.prefix), err.Error())
	}
}

// value takes one whole blob.
func (c *checker) value(p *partBlob) error {
	switch c.bucket {
	case "state":
		if string(p.prefix) == string(stateKey) {
			st, err := decodeState(p.content)
			if err == nil {
				c.st = st
			}
			return err
		}
	case "checkpoint":
		ref, _, err := decodeCheckpoint(p.content)
		if err != nil || len(p.prefix) != 3 || p.prefix[0] > 1 {
			return errCheckpoint
		}
		parts := &c.slots[p.prefix[0]]
		if *parts == nil {
			*parts = map[int]checkpointRef{}
		}
		(*parts)[int(binary.BigEndian.Uint16(p.prefix[1:]))] = ref
	case "journal":
		b, err := decodeBlock(0, p.content)
		if err != nil {
			return err
		}
		c.readings += int64(b.Readings)
		return c.numbered(p.prefix)
	case "outbox", "evidence":
		_, _, data, err := decodeRecord(p.content)
		if err == nil && c.bucket == "outbox" {
			_, _, err = decodeSince(data)
		}
		if err != nil {
			return err
		}
		return c.numbered(p.prefix)
	}
	return nil
}

// numbered notes that a sequence number is there.
func (c *checker) numbered(prefix []byte) error {
	if len(prefix) != 8 {
		return fmt.Errorf("key of %d bytes is no sequence number", len(prefix))
	}
	seq := binary.BigEndian.Uint64(prefix)
	runs := c.runs[c.bucket]
	if n := len(runs); n > 0 && runs[n-1].Next == seq {
		runs[n-1].Next++
		return nil
	}
	c.runs[c.bucket] = append(runs, Gap{First: seq, Next: seq + 1})
	return nil
}

// compare holds what was found against what the state says.
func (c *checker) compare() {
	st := c.st
	if st == nil {
		c.fault(-1, "state", "state", "is missing or damaged")
		return
	}
	r := c.r
	r.Schema, r.CreatedMS, r.LatestMS, r.Commits = st.Schema, st.CreatedMS, st.LastMS, st.Commits
	r.Journal, r.Readings, r.Outbox, r.Evidence = st.Journal, st.Readings, st.Outbox, st.Evidence
	r.Cursors, r.Gaps, r.Losses = st.Cursors, append(r.Gaps, st.Gaps...), append(r.Losses, st.Losses...)
	c.missing("journal", st.Journal, st.Gaps)
	c.missing("outbox", st.Outbox, nil)
	c.missing("evidence", st.Evidence, nil)
	leads := st.Journal.First == 1
	for _, slot := range st.newest() {
		want := st.Checkpoints[slot]
		if want.Generation == 0 {
			continue
		}
		r.Checkpoints = append(r.Checkpoints, want.Seq)
		whole := true
		for i := range want.Parts {
			if got := c.slots[slot][i]; got.Generation != want.Generation || got.Seq != want.Seq {
				c.fault(-1, "checkpoint", describe("checkpoint", partPrefix(slot, i)), errCheckpoint.Error())
				whole = false
			}
		}
		leads = leads || whole && st.Journal.First <= want.Seq+1
	}
	if !leads {
		c.fault(-1, "checkpoint", "recovery", fmt.Sprintf("no checkpoint leads to block %d: a gateway would set this store aside", st.Journal.Next-1))
	}
}

// missing reports the numbers of r that are neither there nor known to be gone,
// and those that are there and should not be.
func (c *checker) missing(bucket string, r Range, gone []Gap) {
	at := r.First
	skip := func() {
		for _, g := range gone {
			if g.First <= at && at < g.Next {
				at = g.Next
			}
		}
	}
	for _, run := range c.runs[bucket] {
		skip()
		if run.First > at {
			c.fault(-1, bucket, numbers(at, run.First), errMissing.Error())
		}
		if run.First < at || run.Next > r.Next {
			c.fault(-1, bucket, numbers(run.First, run.Next), fmt.Sprintf("is beyond the range [%d, %d) that the state names", r.First, r.Next))
		}
		at = max(at, run.Next)
	}
	if skip(); at < r.Next {
		c.fault(-1, bucket, numbers(at, r.Next), errMissing.Error())
	}
}

// numbers names those from first to the one before next.
func numbers(first, next uint64) string {
	if next == first+1 {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d to %d", first, next-1)
}

// describe names what a key prefix stands for.
func describe(bucket string, prefix []byte) string {
	switch {
	case bucket == "state" && string(prefix) == string(stateKey):
		return "state"
	case bucket == "state":
		return fmt.Sprintf("value %q", prefix[1:])
	case bucket == "checkpoint" && len(prefix) == 3:
		return fmt.Sprintf("slot %d, part %d", prefix[0], binary.BigEndian.Uint16(prefix[1:]))
	case len(prefix) == 8:
		return fmt.Sprintf("%d", binary.BigEndian.Uint64(prefix))
	}
	return fmt.Sprintf("%x", prefix)
}
