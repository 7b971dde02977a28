package uplink

import (
	"sync"
	"sync/atomic"

	"tidemark/reading"
)

// State is what an uplink is doing. The zero State is not connected.
type State uint8

const (
	StateConnecting    State = iota // for the first time, or again
	StateOnline                     // connected; records go as they come
	StateWaiting                    // the broker is away or unwilling; tried again with back-off
	StateNotAuthorised              // the broker refuses us or a topic; tried again with back-off
	StateQuota                      // the broker asks for a rest
	StateTakenOver                  // another client uses our client id
	StateClock                      // TLS cannot be: the gateway's clock is before the certificate
	StateStopped                    // Run has returned
)

// String returns connecting, online, waiting, not_authorised, quota_exceeded,
// taken_over, clock_not_set or stopped.
func (s State) String() string {
	return [...]string{"connecting", "online", "waiting", "not_authorised", "quota_exceeded", "taken_over", "clock_not_set", "stopped"}[min(s, StateStopped)]
}

// Status is an uplink at one moment.
type Status struct {
	Name   string
	State  State
	Reason string // why it is not online; empty if it is

	LastAckNS  int64  // wall time of the last PUBACK; 0 before the first
	InFlight   int    // sent and not answered
	Backlog    int64  // records that are not delivered
	Sent       uint64 // records, every sending counted
	Resent     uint64 // of these, records that had been sent before
	Acked      uint64 // records that the broker took, every time counted
	SetAside   uint64 // records that the broker can never take
	Connects   uint64
	Failures   uint64 // connections that could not be made or were lost
	ReceiveMax int    // records in flight that the broker allows; 0 before the first connection
	MaxPacket  uint32 // bytes; 0 is no limit

	// CertificateEndNS is when the broker's certificate or the one that is shown to it
	// ends, whichever is first, Unix; reading.NoTime without any.
	CertificateEndNS int64
}

// counters are written by the sender and by whoever brings the answers.
type counters struct {
	lastAck                                           atomic.Int64
	sent, resent, acked, setAside, connects, failures atomic.Uint64

	mu      sync.Mutex // guards what follows
	state   State
	reason  string
	greeted bool // it was said that the uplink works
	conn    conn // the connection in use, nil if there is none
	window  *window
}

// Status returns the uplink as it is now. It is safe to call at any time.
func (u *Uplink) Status() Status {
	c := &u.counters
	s := Status{
		Name: u.cfg.Name, LastAckNS: c.lastAck.Load(), Backlog: u.src.Waiting(),
		Sent: c.sent.Load(), Resent: c.resent.Load(), Acked: c.acked.Load(), SetAside: c.setAside.Load(),
		Connects: c.connects.Load(), Failures: c.failures.Load(), CertificateEndNS: reading.NoTime,
	}
	if end, ok := u.peer.CertificateEnd(); ok {
		s.CertificateEndNS = end
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.State, s.Reason = c.state, c.reason
	if c.window != nil {
		s.InFlight, _ = c.window.unanswered()
		l := c.conn.limits()
		s.ReceiveMax, s.MaxPacket = l.receiveMax, l.maxPacket
	}
	return s
}

// enter changes the state. It says once that the uplink works; what is wrong
// stands in the status, for whoever watches over the gateway to log.
func (u *Uplink) enter(s State, reason string) {
	c := &u.counters
	c.mu.Lock()
	changed := c.state != s
	c.state, c.reason = s, reason
	first := s == StateOnline && !c.greeted
	c.greeted = c.greeted || first
	c.mu.Unlock()
	if !changed {
		return
	}
	if first {
		u.log.Info().Str("broker", u.cfg.URL.Host).Msg("the uplink is online")
		return
	}
	u.log.Debug().Stringer("state", s).Str("reason", reason).Uint64("connects", c.connects.Load()).
		Uint64("failures", c.failures.Load()).Uint64("acked", c.acked.Load()).Msg("the uplink's state changed")
}

// attach shows a connection in the status; nil takes it out again.
func (u *Uplink) attach(c conn, w *window) {
	u.counters.mu.Lock()
	u.counters.conn, u.counters.window = c, w
	u.counters.mu.Unlock()
}
