package buffer

import "slices"

// This file is how records go by one of two lanes; DESIGN.md has the picture.

// Lane is a way through the outbox. Each has its own position and its own mark.
type Lane int

const (
	// Live is what came after Begin, but for chains that began before it.
	Live Lane = iota
	// Backlog is what waited at Begin, and whatever continues its chains.
	Backlog
)

// Ahead is a run of records that were delivered before those that waited: of the
// records (After, To] those of no chain, and of chains that began after Block.
type Ahead struct {
	After uint64 `json:"after"`
	To    uint64 `json:"to"`
	Block uint64 `json:"block"`
	Left  uint64 `json:"left,omitempty"` // of (After, To], records that are not delivered
}

func (a Ahead) took(seq, since uint64) bool {
	return a.After < seq && seq <= a.To && beganAfter(since, a.Block)
}

func beganAfter(since, block uint64) bool { return since == 0 || since > block }

// aheadMax bounds what is remembered of outages that came while the backlog of an
// earlier one was being sent. Beyond it what waits counts as live: it is sent with
// the new records, in order, and merely not as slowly.
const aheadMax = 32

// Begin begins a connection, before anything is read over it: whatever is not
// delivered by now is its backlog, and reading starts anew. With ordered, Live has
// nothing until all of the backlog was read; else it goes beside it.
func (o *Outbox) Begin(ordered bool) {
	st := o.s.snapshot()
	o.mu.Lock()
	o.after, o.block, o.ordered = st.Outbox.Next-1, st.Journal.Next-1, ordered
	o.apart = o.mark < o.after
	if n := len(o.ahead); n == aheadMax {
		o.after, o.block = o.ahead[n-1].After, o.ahead[n-1].Block
	}
	o.mu.Unlock()
	o.raw.begin(st)
	o.Rewind()
}

// Rewind moves the read positions back to the first records that are not
// delivered, as after a refusal.
func (o *Outbox) Rewind() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.merged, o.left, o.later = 0, nil, nil
	o.next = [2]uint64{Live: o.mark + 1, Backlog: o.mark + 1}
	if o.apart {
		o.next[Live] = o.after + 1
		if n := len(o.ahead); n > 0 && o.ahead[n-1].After == o.after {
			o.next[Live] = o.ahead[n-1].To + 1
		}
	}
	o.raw.rewind()
}

// end is where a lane's records end now.
func (o *Outbox) end(lane Lane) uint64 {
	if lane == Live {
		if o.held() {
			return 0
		}
		return o.s.outboxNext()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.apart || o.merged > 0 {
		return 0
	}
	return o.next[Live]
}

// held reports whether the live lane waits for the backlog to be read.
func (o *Outbox) held() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.apart && o.ordered && o.merged == 0
}

// merge makes one of the lanes if the backlog has been read as far as the live
// one: what comes now follows everything of its chain.
func (o *Outbox) merge() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.apart && o.merged == 0 && o.next[Backlog] >= o.next[Live] {
		o.merged = o.next[Live] - 1
		o.unite()
	}
}

// unite forgets the lanes once everything from before they merged is delivered.
// mu is held.
func (o *Outbox) unite() {
	if o.apart && o.merged > 0 && o.mark >= o.merged {
		if n := len(o.ahead); n > 0 {
			o.mark = max(o.mark, o.ahead[n-1].To)
		}
		o.apart, o.ahead, o.merged, o.left, o.later = false, nil, 0, nil, nil
	}
}

// filter returns what tells the records of a lane.
func (o *Outbox) filter(lane Lane) func(*StoredRecord) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	after, block, ahead := o.after, o.block, slices.Clone(o.ahead)
	switch {
	case !o.apart || o.merged > 0:
		return func(*StoredRecord) bool { return true }
	case lane == Live:
		return func(r *StoredRecord) bool { return beganAfter(r.Since, block) }
	}
	return func(r *StoredRecord) bool {
		if r.Seq > after {
			return !beganAfter(r.Since, block)
		}
		return !slices.ContainsFunc(ahead, func(a Ahead) bool { return a.took(r.Seq, r.Since) })
	}
}

// Delivered says that everything of the lane up to and including record seq has
// arrived. The marks never go back, and are on disk with the next Commit or
// FlushCursors. Records of both lanes must be passed on in the order in which Next
// gave them.
func (o *Outbox) Delivered(lane Lane, seq uint64) {
	seq = min(seq, o.s.outboxNext()-1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if lane == Live && o.apart {
		if seq > o.after {
			o.goAhead(seq)
		}
	} else {
		o.catchUp(seq)
		o.mark = max(o.mark, seq)
	}
	o.settle()
}

// leave notes what Live left for Backlog, and what Backlog gave of such records.
func (o *Outbox) leave(left []uint64, lane Lane, given []StoredRecord) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = append(o.left, left...)
	if lane == Backlog {
		for i := range given {
			o.later = append(o.later, given[i].Seq)
		}
	}
}

// catchUp counts what Backlog delivered of the records that Live had left. mu is
// held.
func (o *Outbox) catchUp(seq uint64) {
	for ; len(o.later) > 0 && o.later[0] <= seq; o.later = o.later[1:] {
		one := o.later[0]
		if i := slices.IndexFunc(o.ahead, func(a Ahead) bool { return a.After < one && one <= a.To }); i >= 0 {
			o.ahead[i].Left--
		} else if i, there := slices.BinarySearch(o.left, one); there {
			o.left = slices.Delete(o.left, i, i+1)
		}
	}
}

// goAhead notes what the live lane has delivered. mu is held.
func (o *Outbox) goAhead(seq uint64) {
	n := len(o.ahead)
	if n == 0 || o.ahead[n-1].After != o.after {
		o.ahead = append(o.ahead, Ahead{After: o.after, To: o.after, Block: o.block})
		n++
	}
	run := &o.ahead[n-1]
	run.To = max(run.To, seq)
	for ; len(o.left) > 0 && o.left[0] <= run.To; o.left = o.left[1:] {
		run.Left++
	}
}

// settle forgets what the mark has passed. mu is held.
func (o *Outbox) settle() {
	o.unite()
	o.ahead = passed(o.ahead, o.mark)
}

// passed returns the runs that are not wholly behind the mark.
func passed(ahead []Ahead, mark uint64) []Ahead {
	for len(ahead) > 0 && ahead[0].To <= mark {
		ahead = ahead[1:]
	}
	return ahead
}
