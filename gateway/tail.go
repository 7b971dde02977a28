package gateway

import (
	"sync"
	"sync/atomic"

	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing"
)

// tails are the readers of what is committed, as it is committed
// (`tidemark tail`). A tail that does not keep up loses readings, counted; it never
// holds the pipeline back.
type tails struct {
	watched atomic.Int32 // how many there are

	mu   sync.Mutex
	list []*tail // under mu
}

// tail is one of them.
type tail struct {
	asset, sensor string // what it wants; an empty sensor is everything

	staged []seen // the pipeline's, with what follows
	over   uint64

	mu      sync.Mutex
	queue   []seen // under mu
	dropped uint64 // under mu; for want of room, not told yet
	more    chan struct{}
}

// seen is a reading with what became of it.
type seen struct {
	r       reading.Reading
	verdict history.Verdict
}

// tailQueue is how many readings wait for a tail at most.
const tailQueue = 4096

func (ts *tails) add(asset, sensor string) *tail {
	t := &tail{asset: asset, sensor: sensor, more: make(chan struct{}, 1)}
	ts.mu.Lock()
	ts.list = append(ts.list, t)
	ts.watched.Store(int32(len(ts.list)))
	ts.mu.Unlock()
	return t
}

func (ts *tails) remove(t *tail) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for i := range ts.list {
		if ts.list[i] == t {
			ts.list = append(ts.list[:i:i], ts.list[i+1:]...)
			break
		}
	}
	ts.watched.Store(int32(len(ts.list)))
}

func (ts *tails) all() []*tail {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.list
}

// stage keeps what a batch brings for each tail until it is on disk.
func (ts *tails) stage(rs []reading.Reading, out *windowing.Output) {
	if ts.watched.Load() == 0 {
		return
	}
	late := map[*reading.Reading]bool{}
	for i := range out.Emissions {
		if e := &out.Emissions[i]; e.Kind == windowing.EmitLate {
			late[e.Reading] = true
		}
	}
	for _, t := range ts.all() {
		for i := range rs {
			if s := rs[i].Tag.Value(); t.sensor != "" && (s.Sensor != t.sensor || s.Asset != t.asset) {
				continue
			}
			if len(t.staged) == tailQueue {
				t.over++
				continue
			}
			v := history.VerdictOf(out.Outcomes[i])
			if late[&rs[i]] {
				v = history.Late
			}
			t.staged = append(t.staged, seen{rs[i], v})
		}
	}
}

// post hands out what is on disk.
func (ts *tails) post() {
	if ts.watched.Load() == 0 {
		return
	}
	for _, t := range ts.all() {
		t.post()
	}
}

func (t *tail) post() {
	if len(t.staged) == 0 && t.over == 0 {
		return
	}
	t.mu.Lock()
	room := max(0, min(tailQueue-len(t.queue), len(t.staged)))
	t.queue = append(t.queue, t.staged[:room]...)
	t.dropped += t.over + uint64(len(t.staged)-room)
	t.mu.Unlock()
	clear(t.staged)
	t.staged, t.over = t.staged[:0], 0
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// take returns what waits, and how many readings were dropped after it.
func (t *tail) take() (list []seen, dropped uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, dropped = t.queue, t.dropped
	t.queue, t.dropped = nil, 0
	return list, dropped
}
