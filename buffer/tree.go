package buffer

import (
	"bytes"
	"encoding/binary"
)

// tree walks the pages that the root reaches.
type tree struct {
	f    *pageFile
	seen []uint64 // a bit per page

	// leaves reads leaf pages too. Without it a walk reads one page in a hundred,
	// and knows every page that is in use but for those that belong to a large
	// value.
	leaves bool
	// entry is called with every value of a bucket; bucket aliases the page.
	entry func(bucket []byte, e element)
	// fault is called with what is wrong; the walk goes on beside it.
	fault func(*PageError)

	// visited is told how many bytes a page has that was read; an error ends the walk.
	visited func(bytes int64) error
	stopped error
}

func (t *tree) mark(id uint64) bool {
	bit := uint64(1) << (id % 64)
	if t.seen[id/64]&bit != 0 {
		return false
	}
	t.seen[id/64] |= bit
	return true
}

func (t *tree) isSeen(id uint64) bool { return t.seen[id/64]&(1<<(id%64)) != 0 }

// walk visits everything under the root.
func (t *tree) walk() {
	t.seen = make([]uint64, t.f.meta.high/64+1)
	root, err := t.f.read(t.f.meta.root)
	if err != nil {
		t.fault(asPageError(t.f.meta.root, err))
		return
	}
	// The root's leaves are few and name the buckets: they are always read.
	top := &tree{f: t.f, seen: t.seen, leaves: true, fault: t.fault, visited: t.visited}
	top.entry = func(_ []byte, e element) {
		if !e.bucket {
			t.fault(pageError(uint64(e.offset/pageSize), "a value stands among the buckets"))
			return
		}
		t.bucket(e)
	}
	top.page(nil, root, nil, 0)
}

// bucket walks the tree of one bucket.
func (t *tree) bucket(e element) {
	if len(e.value) < bucketHeadLen {
		t.fault(pageError(uint64(e.offset/pageSize), "bucket %q has no head", e.key))
		return
	}
	id := binary.LittleEndian.Uint64(e.value)
	if id != 0 {
		p, err := t.f.read(id)
		if err != nil {
			t.fault(asPageError(id, err))
			return
		}
		t.page(e.key, p, nil, 0)
		return
	}
	if len(e.value) < bucketHeadLen+pageHeadLen {
		t.fault(pageError(uint64(e.offset/pageSize), "bucket %q has no page", e.key))
		return
	}
	p := parsePage(e.value[bucketHeadLen:])
	p.offset = e.offset + int64(len(e.key)+bucketHeadLen)
	p.id = uint64(e.offset / pageSize)
	t.elements(e.key, p, nil, 0)
}

// depthMax is deeper than any tree of ours gets: a file that goes further is not
// one.
const depthMax = 16

func (t *tree) page(bucket []byte, p *page, first []byte, depth int) {
	for id := p.id; id <= p.id+p.overflow; id++ {
		if !t.mark(id) {
			t.fault(pageError(id, "is used twice"))
			return
		}
	}
	if t.stopped == nil {
		t.stopped = t.visited(int64(len(p.data)))
	}
	t.elements(bucket, p, first, depth)
}

// elements checks and visits the entries of a page; first is the key under which
// the branch above has it, nil if it does not say.
func (t *tree) elements(bucket []byte, p *page, first []byte, depth int) {
	if p.flags != flagBranch && p.flags != flagLeaf {
		t.fault(pageError(p.id, "is neither branch nor leaf (flags %#x)", p.flags))
		return
	}
	last := first
	for i := range p.count {
		e, ok := p.element(i)
		if !ok {
			t.fault(pageError(p.id, "entry %d of %d reaches beyond the page", i, p.count))
			return
		}
		if order := bytes.Compare(e.key, last); last != nil && (order < 0 || order == 0 && i > 0) {
			t.fault(pageError(p.id, "entry %d of %d is out of order", i, p.count))
			return
		}
		last = e.key
		if p.flags == flagLeaf && t.entry != nil {
			t.entry(bucket, e)
		}
	}
	if p.flags == flagBranch {
		t.descend(bucket, p, depth)
	}
}

// descend visits the pages below a branch. All leaves of a tree are at one depth,
// so where leaves are not wanted the first child tells for its sisters whether
// they have to be read.
func (t *tree) descend(bucket []byte, p *page, depth int) {
	if depth >= depthMax {
		t.fault(pageError(p.id, "is %d branches deep", depth))
		return
	}
	onlyMark := false
	for i := range p.count {
		e, _ := p.element(i)
		if t.stopped != nil {
			return
		}
		if onlyMark {
			if e.child < 2 || e.child >= t.f.meta.high || !t.mark(e.child) {
				t.fault(pageError(p.id, "names page %d, which is outside or used twice", e.child))
			}
			continue
		}
		c, err := t.f.read(e.child)
		if err != nil {
			t.fault(asPageError(e.child, err))
			continue
		}
		t.page(bucket, c, e.key, depth+1)
		onlyMark = !t.leaves && c.flags == flagLeaf
	}
}

// checkPages reports what is wrong with the pages of a file: the trees, and the
// free pages, which must not be in use. Values are passed to entry if it is not
// nil; without it leaf pages are not read. The error is that of progress.
func checkPages(f *pageFile, entry func(bucket []byte, e element), fault func(*PageError), progress Progress) error {
	free, err := f.freelist()
	if err != nil {
		fault(asPageError(f.meta.freelist, err))
	}
	done, total := int64(0), int64(f.meta.high-uint64(len(free)))*pageSize
	t := &tree{f: f, leaves: entry != nil, entry: entry, fault: fault, visited: func(bytes int64) error {
		done += bytes
		return progress.at(StepReading, done, total)
	}}
	t.walk()
	for _, id := range free {
		if t.isSeen(id) {
			fault(pageError(id, "is in use and listed as free"))
		}
	}
	return t.stopped
}

func asPageError(id uint64, err error) *PageError {
	if e, ok := err.(*PageError); ok {
		return e
	}
	return pageError(id, "%v", err)
}
