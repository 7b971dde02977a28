package uplink

import "sync"

// window is what has been sent over one connection and is not yet answered. Its
// entries stand in the order of sending; packet identifiers are given out in that
// order too, so that an entry is found by arithmetic.
//
// A broker answers in the order of arrival (MQTT-4.6.0-2), so the window is
// counted by its span, from the oldest unanswered entry on: an answer out of
// order is kept until those before it are there.
type window struct {
	mu      sync.Mutex
	entries []entry
	head    int           // first entry of the window in entries
	nextID  uint16        // of the next entry; 0 stands for 1
	limit   int           // entries at a time
	most    int           // what limit may grow to: the broker's Receive Maximum, or less
	waiting int           // entries without an answer
	answers uint64        // that have come
	wake    chan struct{} // a token whenever something was answered
}

type entry struct {
	rec      Record // Seq 0 for what is no record
	answered bool
	refused  bool // answered, and to be sent again: the mark stands before it
}

// maxWindow keeps a packet identifier from being given out twice.
const maxWindow = 65535

func newWindow() *window {
	return &window{limit: 1, most: 1, wake: make(chan struct{}, 1)}
}

// open sets how many entries the window holds at a time. A cautious window begins
// with one and grows by one with every record that is answered: it doubles with
// every round trip.
func (w *window) open(most int, cautious bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most = max(1, min(most, maxWindow))
	if w.limit = w.most; cautious {
		w.limit = 1
	}
}

// add enters a record and returns its packet identifier; false if the window is
// full.
func (w *window) add(r Record) (id uint16, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.entries)-w.head >= w.limit {
		return 0, false
	}
	if w.head > w.limit { // bounds the slice at twice the window
		n := copy(w.entries, w.entries[w.head:])
		clear(w.entries[n:])
		w.entries, w.head = w.entries[:n], 0
	}
	id = max(w.nextID, 1)
	w.nextID = id%maxWindow + 1
	w.entries = append(w.entries, entry{rec: r})
	w.waiting++
	return id, true
}

// find returns the unanswered entry with that packet identifier, nil if there is
// none.
func (w *window) find(id uint16) *entry {
	span := len(w.entries) - w.head
	back := (int(w.nextID) - int(id) + maxWindow) % maxWindow
	if back == 0 {
		back = maxWindow
	}
	if id == 0 || back > span {
		return nil
	}
	if e := &w.entries[len(w.entries)-back]; !e.answered {
		return e
	}
	return nil
}

// lookup returns the record that waits for the answer to a packet identifier.
func (w *window) lookup(id uint16) (Record, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.find(id); e != nil {
		return e.rec, true
	}
	return Record{}, false
}

// answer marks an entry as answered and returns the record up to which everything
// sent is done; 0 if that did not move. A refused entry holds it back.
func (w *window) answer(id uint16, refused bool) (mark uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.find(id)
	if e == nil {
		return 0
	}
	e.answered, e.refused = true, refused
	w.waiting--
	w.answers++
	if e.rec.Seq != 0 {
		w.limit = min(w.limit+1, w.most)
	}
	for w.head < len(w.entries) && w.entries[w.head].answered && !w.entries[w.head].refused {
		mark = max(mark, w.entries[w.head].rec.Seq)
		w.entries[w.head] = entry{}
		w.head++
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return mark
}

// clear forgets answered entries behind a refused one, so that they can be sent
// again, and makes the window cautious: the refused one may be refused again.
// Nothing may be unanswered.
func (w *window) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.entries)
	w.entries, w.head, w.limit = w.entries[:0], 0, 1
}

// unanswered returns how many entries wait for an answer, and the first of the
// window.
func (w *window) unanswered() (waiting int, first Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head < len(w.entries) {
		first = w.entries[w.head].rec
	}
	return w.waiting, first
}

// progress returns how many entries wait for an answer and how many have got one.
func (w *window) progress() (waiting int, answers uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting, w.answers
}
