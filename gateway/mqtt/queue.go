package mqtt

import (
	"time"

	"tidemark/reading"
)

// item is a parcel on its way to the sink.
type item struct {
	parcel reading.Parcel
	empty  bool // there is no parcel
	// stalled asks for an immediate commit once the parcel is delivered, hold
	// later.
	stalled bool
	hold    time.Duration
}

// queue is between the connection and the sink, so that a sink that blocks holds
// up neither reconnecting nor keep-alives. The reader's lock guards it.
type queue struct {
	items  []item
	weight int // readings and rejects in it
}

func (q *queue) push(it item) {
	q.items = append(q.items, it)
	q.weight += it.weight()
}

func (q *queue) pop() (it item, ok bool) {
	if len(q.items) == 0 {
		return it, false
	}
	it = q.items[0]
	q.items[0] = item{}
	if q.items = q.items[1:]; len(q.items) == 0 {
		q.items = nil
	}
	q.weight -= it.weight()
	return it, true
}

func (it *item) weight() int { return len(it.parcel.Readings) + len(it.parcel.Rejects) }
