package mqtt

import "time"

// retry paces connection attempts. It is pure; times are on the boot line.
type retry struct {
	started bool
	failing int // connections in a row that did not last
	upNS    int64
	up      bool

	takeovers int   // within takeoverSpan
	firstNS   int64 // of those
}

const (
	retryFirst = 250 * time.Millisecond
	retryMax   = 30 * time.Second
	// A connection that lasted less than lasting and brought nothing is a failed
	// attempt like another.
	lasting = 10 * time.Second

	// Two gateways with one client id take the session from each other for ever.
	// After the third time within takeoverSpan we stand back for takeoverRetry.
	takeoverLimit = 3
	takeoverSpan  = 10 * time.Minute
	takeoverRetry = 5 * time.Minute
)

func (r *retry) connected(nowNS int64) { r.up, r.upNS = true, nowNS }

// lost notes the end of a connection, and whether it brought messages.
func (r *retry) lost(nowNS int64, useful bool) {
	if !r.up {
		return
	}
	r.up = false
	if !useful && nowNS-r.upNS < int64(lasting) {
		r.failing++
	} else {
		r.failing = 0
	}
}

// takenOver notes that another client took the session.
func (r *retry) takenOver(nowNS int64) {
	if r.takeovers == 0 || r.takeovers < takeoverLimit && nowNS-r.firstNS > int64(takeoverSpan) {
		r.takeovers, r.firstNS = 0, nowNS
	}
	r.takeovers++
}

// contended reports whether somebody else uses our client id; a connection that
// lasted takeoverSpan ends the suspicion.
func (r *retry) contended(nowNS int64) bool {
	if r.up && nowNS-r.upNS > int64(takeoverSpan) {
		r.takeovers = 0
	}
	return r.takeovers >= takeoverLimit
}

// delay is how long to wait before an attempt, the attempt-th since the last
// connection; dice in [0, 1) spreads the gateways of a plant. The first ever goes
// at once.
func (r *retry) delay(attempt int, nowNS int64, dice float64) time.Duration {
	if !r.started {
		r.started = true
		return 0
	}
	wait := takeoverRetry
	if !r.contended(nowNS) {
		wait = min(retryFirst<<min(attempt+r.failing, 10), retryMax)
	}
	return time.Duration(float64(wait) * (0.5 + dice/2))
}
