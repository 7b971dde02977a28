package uplink

import (
	"errors"
	"fmt"

	"tidemark/internal/broker"
)

// verdict is what a PUBACK means for its record.
type verdict uint8

const (
	delivered verdict = iota
	setAside          // this record will never be taken; the rest can be
	rest              // not now
	doubtful          // not now, and maybe never
)

func judge(code broker.Code) verdict {
	switch code {
	case broker.TopicInvalid, broker.PacketTooLarge, broker.PayloadFormat:
		return setAside
	case broker.NotAuthorized, broker.Quota:
		return rest
	}
	if code.Failed() {
		return doubtful
	}
	return delivered
}

// blamesPacket reports whether a DISCONNECT with that code is about a packet
// that was sent, so that sending it again ends the same way.
func blamesPacket(code broker.Code) bool {
	switch code {
	case broker.Malformed, broker.Protocol, broker.TopicInvalid, broker.PacketTooLarge, broker.PayloadFormat:
		return true
	}
	return false
}

// refusedError ends a pass over the outbox: the broker took the connection and
// not the record.
type refusedError struct {
	cargo
	code broker.Code
}

func (e *refusedError) Error() string {
	if e.count > 1 {
		return fmt.Sprintf("the broker refuses a batch of %d records: %s", e.count, e.code)
	}
	return fmt.Sprintf("the broker refuses record %d: %s", e.last.Seq, e.code)
}

var errStalled = errors.New("the broker stopped answering: no PUBACK within the acknowledgement timeout")

// stateOf names the state that a failure leaves the uplink in.
func stateOf(err error) State {
	var a *broker.Answer
	var r *refusedError
	var c *broker.ClockError
	switch {
	case errors.As(err, &c):
		return StateClock
	case errors.As(err, &r):
		return codeState(r.code)
	case errors.As(err, &a):
		return codeState(a.Code)
	}
	return StateWaiting
}

func codeState(code broker.Code) State {
	switch code {
	case broker.NotAuthorized, broker.BadLogin, broker.Banned:
		return StateNotAuthorised
	case broker.Quota:
		return StateQuota
	case broker.TakenOver:
		return StateTakenOver
	}
	return StateWaiting
}
