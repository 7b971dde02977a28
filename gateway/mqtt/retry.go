package mqtt

import "time"

// retry paces connection attempts. It is pure; times are on the boot line.
type retry struct {
	started bool
	failing int // connections in a row that did not last
	upNS    int64
	up      bool

	takeovers int   // within takeoverSpan, or without an end to the contention
	firstNS   int64 // of those
	takenNS   int64 // the last of them
	hangups   int   // connections in a row that the broker closed soon and without a word
	hungNS    int64 // the last of them
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
	// The other one stands back for as long, and when it takes the session again so do
	// we: a fight that goes on shows itself within two pauses. After these and a minute
	// without a takeover it is over.
	takeoverQuiet = 2*takeoverRetry + time.Minute

	// A broker that speaks 3.1.1 inside (mosquitto before 2.0.12) closes the
	// connection of the gateway that lost its session without saying why. So does one
	// that will not have what we send. After hangupLimit connections in a row that it
	// accepted and then closed within hangupSpan, with none that it did not accept in
	// between, that is what we say, and stand back for hangupRetry.
	hangupLimit = 5
	hangupSpan  = 2 * time.Minute
	hangupRetry = retryMax
	// The next one would have come after a pause and a connection.
	hangupQuiet = hangupRetry + hangupSpan + hangupRetry
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

// hungUp notes that the broker closed a connection without a word.
func (r *retry) hungUp(nowNS int64) {
	if nowNS-r.upNS >= int64(hangupSpan) || nowNS-r.hungNS > int64(hangupQuiet) {
		r.hangups = 0
	}
	if nowNS-r.upNS < int64(hangupSpan) {
		r.hangups++
	}
	r.hungNS = nowNS
}

// unreachable notes an attempt that failed: a broker that is away closes
// connections too.
func (r *retry) unreachable() { r.hangups = 0 }

// suspicious reports whether somebody else may use our client id, until it has been
// quiet for hangupQuiet.
func (r *retry) suspicious(nowNS int64) bool {
	return r.hangups >= hangupLimit && nowNS-r.hungNS <= int64(hangupQuiet)
}

// takenOver notes that another client took the session.
func (r *retry) takenOver(nowNS int64) {
	if r.takeovers == 0 || !r.contended(nowNS) && nowNS-r.firstNS > int64(takeoverSpan) {
		r.takeovers, r.firstNS = 0, nowNS
	}
	r.takeovers++
	r.takenNS = nowNS
}

// contended reports whether somebody else uses our client id, until it has been quiet
// for takeoverQuiet.
func (r *retry) contended(nowNS int64) bool {
	return r.takeovers >= takeoverLimit && nowNS-r.takenNS <= int64(takeoverQuiet)
}

// delay is how long to wait before an attempt, the attempt-th since the last
// connection; dice in [0, 1) spreads the gateways of a plant. The first ever goes
// at once.
func (r *retry) delay(attempt int, nowNS int64, dice float64) time.Duration {
	if !r.started {
		r.started = true
		return 0
	}
	wait := min(retryFirst<<min(attempt+r.failing, 10), retryMax)
	switch {
	case r.contended(nowNS):
		wait = takeoverRetry
	case r.suspicious(nowNS):
		wait = hangupRetry
	}
	return time.Duration(float64(wait) * (0.5 + dice/2))
}
