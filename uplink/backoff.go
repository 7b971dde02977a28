package uplink

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff spaces attempts: doubled from one to the next, up to a maximum, and
// drawn from the upper half of that, so that gateways which lost a broker
// together do not come back together.
type backoff struct {
	min, max time.Duration
	step     time.Duration
}

func (b *backoff) next() time.Duration {
	b.step = min(max(2*b.step, b.min), b.max)
	return b.step/2 + rand.N(b.step/2+1)
}

func (b *backoff) reset() { b.step = 0 }

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
