package opcua

import (
	"errors"
	"time"

	"github.com/gopcua/opcua/ua"
)

// retry paces connection attempts. It is pure; times are on the boot line.
type retry struct {
	failing int // attempts, or connections that did not last, in a row
	upNS    int64
	up      bool
}

const (
	retryFirst = 250 * time.Millisecond
	retryMax   = 30 * time.Second
	// A server that has no room for us, or that refuses our login, is not to be
	// pressed: sessions of ours that it still counts must time out first, and a
	// login that fails too often may be locked.
	retryReluctant = 15 * time.Second
	retryPatient   = 2 * time.Minute
	retryDistrust  = 5 * time.Second
	// A connection that lasted less than lasting is a failed attempt like another.
	lasting = 10 * time.Second
)

func (r *retry) connected(nowNS int64) { r.up, r.upNS = true, nowNS }

// failed notes the end of a connection or of an attempt.
func (r *retry) failed(nowNS int64) {
	if r.up && nowNS-r.upNS >= int64(lasting) {
		r.failing = 0
	}
	r.up = false
	r.failing++
}

// delay is how long to wait before the next attempt after err; dice in [0, 1)
// spreads the gateways of a plant.
func (r *retry) delay(err error, dice float64) time.Duration {
	first, longest := retryFirst, retryMax
	var distrust *mistrust
	switch {
	case errors.As(err, &distrust): // somebody may be about to approve it
		longest = retryDistrust
	case isReluctance(err):
		first, longest = retryReluctant, retryPatient
	}
	wait := min(first<<min(max(r.failing-1, 0), 10), longest)
	return time.Duration(float64(wait) * (0.5 + dice/2))
}

// reluctance are the answers of a server that pressing makes worse.
var reluctance = []ua.StatusCode{
	ua.StatusBadTooManySessions, ua.StatusBadTooManySubscriptions, ua.StatusBadTooManyOperations, ua.StatusBadTooManyMonitoredItems,
	ua.StatusBadOutOfMemory, ua.StatusBadResourceUnavailable, ua.StatusBadMaxConnectionsReached, ua.StatusBadTCPNotEnoughResources,
	ua.StatusBadUserAccessDenied, ua.StatusBadIdentityTokenRejected, ua.StatusBadIdentityTokenInvalid,
	ua.StatusBadCertificateUntrusted, ua.StatusBadSecurityChecksFailed, ua.StatusBadUserSignatureInvalid,
}

func isReluctance(err error) bool {
	for _, s := range reluctance {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}
