package clock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/beevik/ntp"
)

// reply is a valid answer of an NTP server. Offsets are server − gateway.
type reply struct {
	thetaNS      int64
	rttNS        int64
	rootDelayNS  int64
	rootDispNS   int64
	precisionNS  int64
	stratum      uint8
	refID        uint32
	leapPending  bool
	bootNS       int64 // CLOCK_BOOTTIME when it came
	wallMinusBNS int64 // wall − boottime at that moment
}

// fault is why a query gave no usable answer, as status shows and counts it.
type fault string

const (
	faultDNS       fault = "dns"          // the name resolves to nothing
	faultTimeout   fault = "timeout"      // no answer
	faultNetwork   fault = "network"      // refused, unreachable
	faultMalformed fault = "malformed"    // short, wrong mode or version
	faultOrigin    fault = "wrong_origin" // no answer to what was asked
	faultTransmit  fault = "bad_transmit" // transmit time zero or before receive time
	faultLeap      fault = "leap_alarm"   // the server says that it is not synchronized
	faultStratum   fault = "stratum"      // 16 or above
	faultStale     fault = "stale"        // its own reference is a day and a half old, or after its time
	faultDistance  fault = "distance"     // root distance above 16 s
	faultKiss      fault = "kiss"         // kiss-o'-death; the code stands beside it
	faultStepped   fault = "stepped"      // our own clock was set during the query
)

// silence reports whether the fault says nothing about the server's clock: its
// last answer still votes, with an error that grows (as RFC 5905 keeps a server
// for eight polls). A kiss code is about how often we ask, not about the time
// (RFC 5905 §7.4: what is no DENY, RSTR or RATE has no significance).
func (f fault) silence() bool {
	return f == faultDNS || f == faultTimeout || f == faultNetwork || f == faultStepped || f == faultKiss
}

// queryError is a query without a usable answer.
type queryError struct {
	fault fault
	kiss  string // with faultKiss
	err   error
}

func (e *queryError) Error() string {
	if e.kiss != "" {
		return "the server answers with kiss code " + e.kiss
	}
	return e.err.Error()
}

func (e *queryError) Unwrap() error { return e.err }

const (
	queryTimeout = 2 * time.Second // from request to answer
	dialTimeout  = 2 * time.Second // for looking up the name
	// shortUnit is the resolution of root delay and root dispersion on the wire,
	// 2^-16 s; one unit is added for what a server may have rounded off.
	shortUnit = 15_259
)

// queryNTP asks one server. It returns a *queryError for whatever is no usable
// answer, and gives up when ctx ends.
func queryNTP(ctx context.Context, server string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout+queryTimeout)
	defer cancel()
	dial := func(_, remote string) (net.Conn, error) {
		d := net.Dialer{Timeout: dialTimeout} // beevik/ntp leaves looking up the name without a limit
		conn, err := d.DialContext(ctx, "udp", remote)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		}
		return conn, err
	}
	host, port, err := splitServer(server)
	if err != nil {
		return reply{}, &queryError{fault: faultDNS, err: err}
	}
	wall0, boot0 := tightPair(wallNow, bootNow)
	r, err := ntp.QueryWithOptions(net.JoinHostPort(host, port), ntp.QueryOptions{Timeout: queryTimeout, Dialer: dial})
	wall1, boot1 := tightPair(wallNow, bootNow)
	if err != nil {
		return reply{}, &queryError{fault: classify(err), err: err}
	}
	if abs((wall1-boot1)-(wall0-boot0)) > stepAbove {
		return reply{}, &queryError{fault: faultStepped, err: errors.New("the wall clock was set during the query")}
	}
	if r.IsKissOfDeath() {
		return reply{}, stratumZero(r)
	}
	if err := r.Validate(); err != nil {
		return reply{}, &queryError{fault: classify(err), err: err}
	}
	return reply{
		thetaNS: r.ClockOffset.Nanoseconds(), rttNS: r.RTT.Nanoseconds(),
		rootDelayNS: r.RootDelay.Nanoseconds() + shortUnit, rootDispNS: r.RootDispersion.Nanoseconds() + shortUnit,
		precisionNS: max(r.Precision.Nanoseconds(), 1), stratum: r.Stratum, refID: r.ReferenceID,
		leapPending: r.Leap == ntp.LeapAddSecond, bootNS: boot1, wallMinusBNS: wall1 - boot1,
	}, nil
}

// stratumZero is the error of an answer without a stratum: a kiss-o'-death, or that of
// a server which is not synchronized and says so, with a code of its own or none.
func stratumZero(r *ntp.Response) *queryError {
	switch r.KissCode {
	case kissRate, kissDeny, kissRestrict:
		return &queryError{fault: faultKiss, kiss: r.KissCode, err: ntp.ErrKissOfDeath}
	case "":
		return &queryError{fault: faultLeap, err: ntp.ErrInvalidLeapSecond}
	}
	if r.Leap == ntp.LeapNotInSync {
		return &queryError{fault: faultLeap, err: fmt.Errorf("the server is not synchronized (%s)", r.KissCode)}
	}
	return &queryError{fault: faultKiss, kiss: r.KissCode, err: ntp.ErrKissOfDeath}
}

// Kiss codes that ask for something (RFC 5905 §7.4).
const (
	kissRate     = "RATE"
	kissDeny     = "DENY"
	kissRestrict = "RSTR"
)

func classify(err error) fault {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return faultDNS
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return faultTimeout
	case errors.Is(err, ntp.ErrServerResponseMismatch):
		return faultOrigin
	case errors.Is(err, ntp.ErrInvalidTransmitTime), errors.Is(err, ntp.ErrServerTickedBackwards):
		return faultTransmit
	case errors.Is(err, ntp.ErrInvalidLeapSecond):
		return faultLeap
	case errors.Is(err, ntp.ErrInvalidStratum):
		return faultStratum
	case errors.Is(err, ntp.ErrServerClockFreshness):
		return faultStale
	case errors.Is(err, ntp.ErrInvalidDispersion):
		return faultDistance
	case errors.Is(err, ntp.ErrInvalidMode), errors.Is(err, ntp.ErrInvalidTime):
		return faultMalformed
	}
	return faultNetwork
}

// lambda is half the width of the interval that the answer gives at bootNS
// (SEMANTICS K1). Since then the server may have drifted by phi and we by rho.
func (r reply) lambda(bootNS, rhoPPB int64) int64 {
	l := add(half(max(r.rootDelayNS, 0)), max(r.rootDispNS, 0))
	l = add(l, half(max(r.rttNS, 0)))
	return grow(add(l, r.precisionNS), bootNS-r.bootNS, phi+rhoPPB)
}

// local reports whether the server's time comes from nowhere but its own clock:
// reference id LOCL or 127.127.1.x, or stratum 10 and above.
func (r reply) local() bool {
	const locl = 'L'<<24 | 'O'<<16 | 'C'<<8 | 'L'
	return r.refID == locl || r.refID>>8 == chronyLocal>>8 || r.stratum >= localStratum
}

// theta returns server − gateway for the wall clock of an epoch.
func (r reply) theta(wallMinusBootNS int64) int64 {
	return r.thetaNS + r.wallMinusBNS - wallMinusBootNS
}

// asQueryError gives err a fault if it has none.
func asQueryError(err error) *queryError {
	var q *queryError
	if errors.As(err, &q) {
		return q
	}
	return &queryError{fault: faultNetwork, err: fmt.Errorf("cannot ask: %w", err)}
}
