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

// cargo is what a message carries.
type cargo struct {
	first place
	last  Record
	count int // records; 0 for a message of another kind
}

// alone is the cargo of a message of one record.
func alone(r *Record) cargo { return cargo{first: r.place(), last: *r, count: 1} }

type entry struct {
	cargo
	upTo     marks // is delivered with this entry and those before it
	answered bool
	refused  bool // answered, and to be sent again: the mark stands before it
}

// marks are positions by lane; 0 says nothing of a lane.
type marks [lanes]uint64

func (m *marks) raise(o marks) {
	for i := range m {
		m[i] = max(m[i], o[i])
	}
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

// add enters a message and returns its packet identifier; false if the window is
// full.
func (w *window) add(c cargo) (id uint16, ok bool) {
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
	e := entry{cargo: c}
	if c.count > 0 {
		e.upTo[c.last.lane] = c.last.Seq
	}
	w.entries = append(w.entries, e)
	w.waiting++
	return id, true
}

// pass says that a lane has nothing up to seq but what was entered. It returns
// what that settles: all of it, if nothing is in the window.
func (w *window) pass(lane Lane, seq uint64) (m marks) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head == len(w.entries) {
		m[lane] = seq
		return m
	}
	last := &w.entries[len(w.entries)-1]
	last.upTo[lane] = max(last.upTo[lane], seq)
	return m
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

// lookup returns the message that waits for the answer to a packet identifier.
func (w *window) lookup(id uint16) (c cargo, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.find(id); e != nil {
		return e.cargo, true
	}
	return cargo{}, false
}

// answer marks an entry as answered and returns up to where everything sent is
// done, as far as that moved. A refused entry holds it back.
func (w *window) answer(id uint16, refused bool) (m marks) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.find(id)
	if e == nil {
		return m
	}
	e.answered, e.refused = true, refused
	w.waiting--
	w.answers++
	if e.count > 0 {
		w.limit = min(w.limit+1, w.most)
	}
	for w.head < len(w.entries) && w.entries[w.head].answered && !w.entries[w.head].refused {
		m.raise(w.entries[w.head].upTo)
		w.entries[w.head] = entry{}
		w.head++
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return m
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
func (w *window) unanswered() (waiting int, first cargo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head < len(w.entries) {
		first = w.entries[w.head].cargo
	}
	return w.waiting, first
}

// progress returns how many entries wait for an answer and how many have got one.
func (w *window) progress() (waiting int, answers uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting, w.answers
}
