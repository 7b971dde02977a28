package gateway

import (
	"context"
	"sync"

	"tidemark/reading"
)

// inbox is how other goroutines reach the pipeline's. Its methods may be called
// from any of them.
type inbox struct {
	in     chan reading.Parcel
	urgent chan struct{} // a source has run out of in-flight window
	asked  chan func()   // questions to the pipeline's own state
	posted chan struct{} // there is mail
	ended  chan struct{} // closed when the pipeline has returned

	mu   sync.Mutex
	mail []func() // under mu; what others have told
}

// parcelQueue is how many parcels wait between the readers and the pipeline. A
// parcel holds up to about a thousand readings, a reading takes some 200 bytes.
const parcelQueue = 16

func newInbox() inbox {
	return inbox{
		in: make(chan reading.Parcel, parcelQueue), urgent: make(chan struct{}, 1),
		asked: make(chan func()), posted: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// Deliver takes a parcel from a reader (reading.Sink).
func (b *inbox) Deliver(ctx context.Context, pc reading.Parcel) error {
	select {
	case b.in <- pc:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Hurry asks for a commit as soon as the cadence allows: a source has run out of
// in-flight window and stands still until it is acknowledged.
func (b *inbox) Hurry() {
	select {
	case b.urgent <- struct{}{}:
	default:
	}
}

// ask runs f on the pipeline's goroutine, between two of its steps, so that f
// sees a consistent state, and waits for it.
func (b *inbox) ask(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case b.asked <- func() { f(); close(done) }:
	case <-b.ended:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-b.ended:
		return errStopping
	}
}

// tell has the pipeline run f before long; it never blocks.
func (b *inbox) tell(f func()) {
	b.mu.Lock()
	b.mail = append(b.mail, f)
	b.mu.Unlock()
	select {
	case b.posted <- struct{}{}:
	default:
	}
}

// readMail runs what others have told.
func (b *inbox) readMail() {
	b.mu.Lock()
	mail := b.mail
	b.mail = nil
	b.mu.Unlock()
	for _, f := range mail {
		f()
	}
}
