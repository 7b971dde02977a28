package opcua

import (
	"context"
	"time"

	"github.com/gopcua/opcua/ua"
)

// lastCommits is how long the end waits for what was delivered to be on disk.
const lastCommits = 2 * time.Second

// leave ends the connection in peace: what is on disk is acknowledged, the rest
// stays with the server, as do the subscriptions.
func (r *Reader) leave(s *session) {
	if r.cfg.OnStall != nil && len(r.open) > 0 {
		r.cfg.OnStall()
	}
	late := time.NewTimer(lastCommits)
	defer late.Stop()
	for waiting := true; waiting && len(r.open) > 0; {
		select {
		case <-r.commits:
			r.acknowledge()
		case <-late.C:
			waiting = false
		case <-s.ch.closed:
			return
		}
	}
	if len(r.acks) > 0 {
		// The answer would come with the next news, for which nobody waits.
		ctx, cancel := context.WithTimeout(context.Background(), hangUpTimeout/4)
		_, _ = s.send(ctx, &ua.PublishRequest{SubscriptionAcknowledgements: r.acks}, requestTimeout)
		cancel()
	}
	s.leave(context.Background())
}
