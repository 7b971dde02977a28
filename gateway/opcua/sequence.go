package opcua

import (
	"github.com/gopcua/opcua/ua"
)

// message is one notification message of a subscription.
type message struct {
	seq       uint32
	publishNS int64 // by the server's clock; reading.NoTime if it says none
	at        Instant
	data      []*ua.ExtensionObject
	again     bool // from a Republish
}

// sequence puts the messages of a subscription in order and knows what is missing
// (OPC UA Part 4 §5.13.1). Numbers begin at 1, grow by one with each message
// that brings news, and go from the largest on to 1. It is pure. The zero sequence
// is that of a new subscription and takes the first number that it sees.
type sequence struct {
	known bool
	next  uint32 // of the message that is due, if known
	ahead uint32 // a number that the server has reached, as known from a keep-alive; 0: none
	held  map[uint32]*message
	last  int64 // publish time of the newest message taken, 0 before the first
}

// resumeAfter returns the sequence of a subscription whose messages up to n are
// safe.
func resumeAfter(n uint32) sequence { return sequence{known: true, next: succ(n)} }

func succ(n uint32) uint32 {
	if n++; n == 0 {
		return 1
	}
	return n
}

func pred(n uint32) uint32 {
	if n--; n == 0 {
		return 1<<32 - 1
	}
	return n
}

// distance is how far b lies after a, negative if before.
func distance(a, b uint32) int64 {
	d := int64(int32(b - a))
	switch {
	case d > 0 && b < a:
		d-- // 0 is no number
	case d < 0 && b > a:
		d++
	}
	return d
}

// fate is what becomes of a message.
type fate uint8

const (
	accepted fate = iota // it is due, or waits for those before it
	repeated             // it was taken before
	anew                 // the server counts anew; what lay between is lost to us
)

// put takes a message in.
func (s *sequence) put(m *message) fate {
	f := accepted
	switch d := distance(s.next, m.seq); {
	case !s.known:
		s.known, s.next = true, m.seq
	case d < 0 && (m.again || m.publishNS <= s.last || d > -farBack && m.seq != 1):
		return repeated
	case d < 0:
		// Not a repetition: it was published after everything that we have, and its
		// number is the first one, or older than anything still on its way.
		clear(s.held)
		s.next, s.ahead, f = m.seq, 0, anew
	}
	if s.held == nil {
		s.held = map[uint32]*message{}
	}
	if s.held[m.seq] != nil {
		return repeated
	}
	s.held[m.seq] = m
	s.last = max(s.last, m.publishNS)
	return f
}

// farBack is further back than a message can be overtaken.
const farBack = 1000

// alive takes in a keep-alive, whose number is that of the message to come. It
// reports whether the server counts anew.
func (s *sequence) alive(n uint32) (again bool) {
	switch d := distance(s.next, n); {
	case !s.known:
		s.known, s.next = true, n
	case d > 0:
		s.ahead = n
	case d < 0 && len(s.held) == 0:
		s.next, s.ahead = n, 0
		return true
	}
	return false
}

// pop returns the message that is due, nil if it is not there.
func (s *sequence) pop() *message {
	m := s.held[s.next]
	if m != nil {
		delete(s.held, s.next)
		s.next = succ(s.next)
	}
	if s.ahead != 0 && distance(s.next, s.ahead) <= 0 {
		s.ahead = 0
	}
	return m
}

// hole returns how many messages are missing before the first that is there or
// known to have been sent.
func (s *sequence) hole() int64 {
	var n int64
	if s.ahead != 0 {
		n = distance(s.next, s.ahead)
	}
	for seq := range s.held {
		if d := distance(s.next, seq); n == 0 || d < n {
			n = d
		}
	}
	return max(n, 0)
}

// skip gives up on the message that is due.
func (s *sequence) skip() {
	s.next = succ(s.next)
	if s.ahead != 0 && distance(s.next, s.ahead) <= 0 {
		s.ahead = 0
	}
}
