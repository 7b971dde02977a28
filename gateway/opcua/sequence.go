package opcua

import (
	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// message is one notification message of a subscription.
type message struct {
	seq       uint32
	publishNS int64 // by the server's clock; reading.NoTime if it says none
	at        reading.Instant
	data      []*ua.ExtensionObject
	again     bool // from a Republish
}

// sequence puts the messages of a subscription in order and knows what is missing
// (OPC UA Part 4 §5.13.1). Numbers begin at 1, grow by one with each message
// that brings news, and go from the largest on to 1. The answers to several
// requests overtake each other, so that the first to come need not be the first.
// It is pure.
type sequence struct {
	next   uint32 // of the message that is due
	ahead  uint32 // a number that the server has reached, as known from a keep-alive; 0: none
	held   map[uint32]*message
	lastNS int64 // publish time of the newest message or keep-alive taken
}

// newSequence is that of a new subscription.
func newSequence() sequence { return sequence{next: 1} }

// resumeAfter returns the sequence of a subscription whose messages up to n are
// safe.
func resumeAfter(n uint32) sequence { return sequence{next: succ(n)} }

func succ(n uint32) uint32 {
	if n++; n == 0 {
		return 1
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

// farBack is further back than a message can be overtaken.
const farBack = 1000

// countsAnew reports whether a number before the one that is due can only come
// from a server that has begun to count from the start: it was published after
// everything that we have, and is the first number or older than anything still
// on its way.
func (s *sequence) countsAnew(n uint32, publishNS int64) bool {
	d := distance(s.next, n)
	return d < 0 && publishNS > s.lastNS && (n == 1 && d < -1 || d < -farBack)
}

// put takes a message in.
func (s *sequence) put(m *message) fate {
	f := accepted
	switch {
	case !m.again && s.countsAnew(m.seq, m.publishNS):
		clear(s.held)
		s.next, s.ahead, f = m.seq, 0, anew
	case distance(s.next, m.seq) < 0 || s.held[m.seq] != nil:
		return repeated
	}
	if s.held == nil {
		s.held = map[uint32]*message{}
	}
	s.held[m.seq] = m
	s.lastNS = max(s.lastNS, m.publishNS)
	return f
}

// alive takes in a keep-alive, whose number is that of the message to come. It
// reports whether the server counts anew.
func (s *sequence) alive(n uint32, publishNS int64) (again bool) {
	switch {
	case s.countsAnew(n, publishNS) && len(s.held) == 0:
		s.next, s.ahead, again = n, 0, true
	case n != 0 && distance(s.next, n) > 0:
		s.ahead = n
	}
	s.lastNS = max(s.lastNS, publishNS)
	return again
}

// pop returns the message that is due, nil if it is not there.
func (s *sequence) pop() *message {
	m := s.held[s.next]
	if m != nil {
		delete(s.held, s.next)
		s.skip()
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

// skip goes on to the next number, whether or not the message that is due came.
func (s *sequence) skip() { s.jump(1) }

// jump goes n numbers on.
func (s *sequence) jump(n int64) {
	next := s.next + uint32(n)
	if next < s.next {
		next++ // 0 is no number
	}
	s.next = next
	if s.ahead != 0 && distance(s.next, s.ahead) <= 0 {
		s.ahead = 0
	}
}
