package uplink

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Reason codes of MQTT 5 (2.4) that something follows from.
const (
	codeNormal           = 0x00
	codeDisconnectWill   = 0x04
	codeUnspecified      = 0x80
	codeMalformed        = 0x81
	codeProtocol         = 0x82
	codeImplementation   = 0x83
	codeVersion          = 0x84
	codeClientID         = 0x85
	codeBadUser          = 0x86
	codeNotAuthorised    = 0x87
	codeBusy             = 0x89
	codeBanned           = 0x8A
	codeTakenOver        = 0x8E
	codeTopicInvalid     = 0x90
	codeIdentifierInUse  = 0x91
	codeTopicAlias       = 0x94
	codePacketTooLarge   = 0x95
	codeQuota            = 0x97
	codePayloadFormat    = 0x99
	codeRetain           = 0x9A
	codeQoS              = 0x9B
	codeUseAnotherServer = 0x9C
	codeServerMoved      = 0x9D
)

var codeNames = map[byte]string{
	codeUnspecified: "unspecified error", codeMalformed: "malformed packet", codeProtocol: "protocol error",
	codeImplementation: "implementation specific error", codeVersion: "unsupported protocol version: the broker must speak MQTT 5",
	codeClientID: "client identifier not valid", codeBadUser: "bad user name or password", codeNotAuthorised: "not authorized",
	codeBusy: "server busy", codeBanned: "banned", codeTakenOver: "session taken over: another client uses this client id",
	codeTopicInvalid: "topic name invalid", codeIdentifierInUse: "packet identifier in use", codeTopicAlias: "topic alias invalid",
	codePacketTooLarge: "packet too large", codeQuota: "quota exceeded", codePayloadFormat: "payload format invalid",
	codeRetain: "retain not supported", codeQoS: "QoS not supported",
	codeUseAnotherServer: "use another server", codeServerMoved: "server moved",
}

func codeText(code byte) string {
	if n, ok := codeNames[code]; ok {
		return fmt.Sprintf("%s (0x%02X)", n, code)
	}
	return fmt.Sprintf("reason 0x%02X", code)
}

// verdict is what a PUBACK means for its record.
type verdict uint8

const (
	delivered verdict = iota
	setAside          // this record will never be taken; the rest can be
	rest              // not now
	doubtful          // not now, and maybe never
)

func judge(code byte) verdict {
	switch code {
	case codeTopicInvalid, codePacketTooLarge, codePayloadFormat:
		return setAside
	case codeNotAuthorised, codeQuota:
		return rest
	}
	if code < codeUnspecified {
		return delivered
	}
	return doubtful
}

// blamesPacket reports whether a DISCONNECT with that code is about a packet
// that was sent, so that sending it again ends the same way.
func blamesPacket(code byte) bool {
	switch code {
	case codeMalformed, codeProtocol, codeTopicInvalid, codePacketTooLarge, codePayloadFormat:
		return true
	}
	return false
}

// brokerError is a reason code with which a broker refused a connection or ended
// it.
type brokerError struct {
	doing string
	code  byte
	text  string // the broker's own words, or where to go instead
}

func (e *brokerError) Error() string {
	s := e.doing + ": " + codeText(e.code)
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

// refusedError ends a pass over the outbox: the broker took the connection and
// not the record.
type refusedError struct {
	rec  Record
	code byte
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the broker refused record %d: %s", e.rec.Seq, codeText(e.code))
}

var errStalled = errors.New("the broker stopped answering: no PUBACK within the acknowledgement timeout")

// stateOf names the state that a failure leaves the uplink in. A certificate that
// is not valid yet says more about the gateway's clock than about the broker: a
// machine without a battery clock starts in 1970.
func stateOf(err error, wallNS int64) (State, string) {
	var b *brokerError
	var r *refusedError
	var cert x509.CertificateInvalidError
	switch {
	case errors.As(err, &cert) && cert.Reason == x509.Expired && wallNS < cert.Cert.NotBefore.UnixNano():
		return StateClock, fmt.Sprintf("the gateway's clock says %s, before the broker's certificate begins (%s): the uplink waits for the time",
			time.Unix(0, wallNS).UTC().Format(time.RFC3339), cert.Cert.NotBefore.UTC().Format(time.RFC3339))
	case errors.As(err, &r):
		return codeState(r.code), err.Error()
	case errors.As(err, &b):
		return codeState(b.code), err.Error()
	}
	return StateWaiting, err.Error()
}

func codeState(code byte) State {
	switch code {
	case codeNotAuthorised, codeBadUser, codeBanned:
		return StateNotAuthorised
	case codeQuota:
		return StateQuota
	case codeTakenOver:
		return StateTakenOver
	}
	return StateWaiting
}
